/** The package of the client alone, installed from its archive into a program that depends on nothing else. */
import { execFile } from "node:child_process";
import { readdirSync, statSync, writeFileSync } from "node:fs";
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

describe("the client's package", () => {
  const server = shareTestServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/key", "s3cr3t");
  });
  let directory = "";
  before(async () => {
    directory = temporaryDirectory();
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

  it("the package's types compile in strict TypeScript without other types, and the program runs", async () => {
    writeFileSync(join(directory, "program.ts"), `${program}`);
    const lib = ["--lib", "es2023,dom,esnext.disposable", "--types", ""];
    const strict = [
      "--strict",
      "--exactOptionalPropertyTypes",
      "--noUncheckedIndexedAccess",
      "--skipLibCheck",
      "false",
    ];
    const options = ["--module", "nodenext", "--target", "es2023", ...lib, ...strict, "program.ts"];
    const compiled = await execute(resolve("node_modules/.bin/tsc"), options, { cwd: directory }).catch(
      (error) => error,
    );
    expect(compiled.stdout).to.equal("");
    const env = environment({ STRONGROOM_HOME: server().home });
    const { stdout } = await execute(node, ["program.js"], { cwd: directory, env });
    expect(stdout).to.equal("s3cr3t NOT_FOUND\n");
  });
});
