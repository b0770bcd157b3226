/** The client's package, installed from its archive, and the types of the client as a strict TypeScript program sees them. */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { environment, node } from "../../tools/rig/process.js";
import { shareTestServer } from "../../tools/rig/server.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";

const execute = promisify(execFile);

const program = `
import { type Secret, StrongroomClient, StrongroomError } from "strongroom-client";

const client = new StrongroomClient({ timeoutMs: 10_000 });
const secret: Secret = await client.get("app/key");
const missing: unknown = await client.get("app/none").catch((error: unknown) => error);
const shown: string = secret.reveal();
console.log(shown, missing instanceof StrongroomError && missing.code);
await client.close();
`;

const validCalls = `
import { type ErrorCode, type SecretType, StrongroomClient, StrongroomError } from "strongroom/client";

const client = new StrongroomClient({ timeoutMs: 1000 });
const value: string = (await client.get("a")).reveal();
const bytes: number = (await client.put("a", new Uint8Array(1), { type: "api-key" })).bytes;
const locked: boolean = (await client.status()).locked;
for await (const { entries, next } of client.pages()) console.log(entries[0]?.metadata.type, next?.length);
const code: ErrorCode | undefined = new StrongroomError("TIMEOUT", "late").code;
const type: SecretType = "api-key";
const found: string | undefined = (await client.getOrUndefined("a"))?.reveal();
console.log(value, bytes, locked, code, type, found);
const { etag, version }: { etag: string; version: number } = await client.get("a");
await client.put("a", "v", { ifMatch: etag, description: null, replaceMetadata: version > 1 });
await client.delete("a", { ifMatch: (await client.undo("a", 1, { ifMatch: etag })).etag });
const many: readonly (string | undefined)[] = (await client.getMany(["a", "b"])).map((secret) => secret?.reveal());
const [result] = await client.batch([{ put: "a", value: "v", ifAbsent: true }, { move: "b", to: "c", ifMatch: etag }]);
console.log(many, result);
`;

/** TypeScript's errors of the lines: 2322, the wrong type; 2339, no such member; 2353, a member that the type does not have. */
const invalidCalls = `import { type SecretType, StrongroomClient } from "strongroom/client";
const client = new StrongroomClient();
await client.batch([{ path: "a" }]); // 2353
await client.delete("a", { ifAbsent: true }); // 2353
export const wrong: SecretType = "key"; // 2322
await client.put("a", "v", { type: "key" }); // 2322
console.log((await client.get("a")).value); // 2339
`;

describe("the client's package", () => {
  const server = shareTestServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/key", "s3cr3t");
  });
  let directory = "";
  before(async () => {
    const root = temporaryDirectory();
    directory = join(root, "program");
    mkdirSync(directory);
    const npm = (args: readonly string[], cwd: string) => execute("npm", args, { cwd, env: environment({}) });
    await npm(["run", "--silent", "copy", "--workspace", "strongroom-client"], ".");
    const pack = ["pack", "--silent", "--ignore-scripts", "--workspace", "strongroom-client", "--pack-destination"];
    const { stdout } = await npm([...pack, directory], ".");
    writeFileSync(join(directory, "package.json"), '{ "private": true, "type": "module" }');
    await npm(["install", "--offline", "--silent", join(directory, stdout.trim())], directory);
  });

  it("the client's package is less than 320 KiB, without dependencies, sources and maps", () => {
    const modules = join(directory, "node_modules");
    expect(readdirSync(modules).filter((name) => !name.startsWith("."))).to.deep.equal(["strongroom-client"]);
    const names = readdirSync(modules, { recursive: true, encoding: "utf8" });
    const files = names.filter((name) => statSync(join(modules, name)).isFile());
    const bytes = files.reduce((sum, name) => sum + statSync(join(modules, name)).size, 0);
    expect(bytes).to.be.within(20_000, 320 * 1024);
    expect(files.filter((name) => /\.map$|(?<!\.d)\.ts$|test/.test(name))).to.deep.equal([]);
    expect(files).to.include.members(["LICENSE", "README.md"].map((name) => join("strongroom-client", name)));
  });

  it("the types accept valid calls and reject invalid ones, and the compiled program runs", async () => {
    mkdirSync(join(directory, "..", "node_modules"));
    symlinkSync(resolve("."), join(directory, "..", "node_modules", "strongroom"));
    const programs = { program, valid: validCalls, invalid: invalidCalls };
    for (const [name, text] of Object.entries(programs)) writeFileSync(join(directory, `${name}.ts`), text);
    const lib = ["--lib", "es2023,dom,esnext.disposable", "--types", ""];
    const strict = [
      "--strict",
      "--exactOptionalPropertyTypes",
      "--noUncheckedIndexedAccess",
      "--skipLibCheck",
      "false",
    ];
    const options = ["--module", "nodenext", "--target", "es2023", ...lib, ...strict];
    const files = Object.keys(programs).map((name) => `${name}.ts`);
    const { stdout: errors } = await execute(resolve("node_modules/.bin/tsc"), [...options, ...files], {
      cwd: directory,
    }).catch((error: { stdout: string }) => error);
    const found = [...errors.matchAll(/^(\w+)\.ts\((\d+),\d+\): error TS(\d+)/gm)].map((error) => error.slice(1));
    const wanted = invalidCalls.split("\n").map((line, n) => ["invalid", `${n + 1}`, line.split("// ")[1]]);
    expect(found, errors).to.deep.equal(wanted.filter(([, , error]) => error !== undefined));
    const env = environment({ STRONGROOM_HOME: server().home });
    const { stdout } = await execute(node, ["program.js"], { cwd: directory, env });
    expect(stdout).to.equal("s3cr3t NOT_FOUND\n");
  });
});
