/** The client library's types, as a TypeScript program with the installed package sees them. */
import { execFile } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { temporaryDirectory } from "../support/clean-up.js";

const program = `
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
// @ts-expect-error: an operation has one of get, put, delete, move and copy
await client.batch([{ path: "a" }]);
// @ts-expect-error: a deletion cannot ask for a missing secret
await client.delete("a", { ifAbsent: true });
// @ts-expect-error: no such type of secret
export const wrong: SecretType = "key";
// @ts-expect-error: no such type of secret
await client.put("a", "v", { type: "key" });
// @ts-expect-error: the value is not a property
console.log((await client.get("a")).value);
`;

describe("the client library's types", () => {
  it("are found by the package's name, accept valid calls and reject invalid ones", async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, "node_modules"));
    symlinkSync(resolve("."), join(directory, "node_modules", "strongroom"));
    writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
    writeFileSync(join(directory, "program.ts"), program);
    const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2023", "--types", "node"];
    const types = ["--typeRoots", resolve("node_modules/@types")];
    const tsc = promisify(execFile)(resolve("node_modules/.bin/tsc"), [...options, ...types, "program.ts"], {
      cwd: directory,
    });
    const output = await tsc.then(
      ({ stdout }) => stdout,
      ({ stdout }: { stdout: string }) => stdout,
    );
    expect(output).to.equal("");
  });
});
