/** The client library's types, as a TypeScript program with the installed package sees them. */
import { execFile } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";

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
`;

const declarations = [
  'import { type SecretType, StrongroomClient } from "strongroom/client";',
  "const client = new StrongroomClient();",
];
const firstInvalid = declarations.length + 1;

/** With TypeScript's error: 2322, the wrong type; 2339, no such member; 2353, a member that the type does not have. */
const invalid = [
  { what: "an operation without a verb", line: 'await client.batch([{ path: "a" }]);', error: "TS2353" },
  { what: "a deletion of a missing secret", line: 'await client.delete("a", { ifAbsent: true });', error: "TS2353" },
  { what: "an unknown type of secret", line: 'export const wrong: SecretType = "key";', error: "TS2322" },
  { what: "a put of an unknown type", line: 'await client.put("a", "v", { type: "key" });', error: "TS2322" },
  { what: "a value read as a property", line: 'console.log((await client.get("a")).value);', error: "TS2339" },
] as const;

/** Line and code of each error in a program with the valid calls, and in one with the invalid ones. */
type Errors = { readonly valid: readonly string[]; readonly invalid: readonly string[] };

describe("the client library's types", () => {
  let errors: Errors = { valid: [], invalid: [] };
  before(async () => {
    errors = await compile();
  });

  it("the types accept valid calls by the package's name", () => {
    expect(errors.valid).to.deep.equal([]);
  });

  it(`the types reject ${invalid.map(({ what }) => what).join(", ")}`, () => {
    expect(errors.invalid).to.deep.equal(invalid.map(({ error }, n) => `line ${n + firstInvalid}: ${error}`));
  });
});

async function compile(): Promise<Errors> {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, "node_modules"));
  symlinkSync(resolve("."), join(directory, "node_modules", "strongroom"));
  writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
  writeFileSync(join(directory, "valid.ts"), program);
  writeFileSync(join(directory, "invalid.ts"), [...declarations, ...invalid.map(({ line }) => line)].join("\n"));
  const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2023", "--types", "node"];
  const types = ["--typeRoots", resolve("node_modules/@types")];
  const tsc = promisify(execFile)(resolve("node_modules/.bin/tsc"), [...options, ...types, "valid.ts", "invalid.ts"], {
    cwd: directory,
  });
  const output = await tsc.then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );
  const lines = output.split("\n").filter((line) => /^\S/.test(line)); // the others continue one
  const isExpected = (line: string) => line.startsWith("invalid.ts(");
  const short = (line: string) => line.replace(/^.*?\((\d+),\d+\): error (TS\d+): .*$/, "line $1: $2");
  return { valid: lines.filter((line) => !isExpected(line)), invalid: lines.filter(isExpected).map(short) };
}
