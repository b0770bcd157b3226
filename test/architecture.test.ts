/** Which part of the source may import which (an allow-list: all else is denied), no cycles, one name a file. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect } from "chai";
import { keyWorkerFile } from "../src/program-files.js";

const leaves = ["src/*", "src/config", "src/paths", "src/files"];
const [protocol, schemas, keyText] = ["workers/protocol", "workers/body-schemas", "workers/crypto/key-text"];
const [replies, workerSettings] = ["workers/replies", "workers/worker-settings"];
const rules = "src/server/certificate-rules";
const entries = ["src/access", "src/audit", "src/client", "src/maintenance", "src/server", "src/storage"];

/** A row covers a folder and its subfolders, and what they import of each other; the row nearest to a file counts. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  "src/*": ["node:*"],
  "src/config": ["node:*", "env-paths", "src/*"],
  "src/paths": ["src/*"],
  "src/files": ["node:*", "src/*", "src/config", protocol],
  "src/client": ["node:*"],
  "src/contract": [
    "src/*",
    schemas,
    "src/access/scopes",
    "src/access/token-record",
    "src/access/token-request",
    "src/audit/audit-format",
  ],
  "src/storage": ["node:*", "p-limit", ...leaves, protocol],
  "src/storage/postgres": ["node:*", "pg", ...leaves, "src/storage", protocol],
  "src/vault": [
    "node:*",
    "p-map",
    "src/*",
    "src/paths",
    "src/storage/secret-store",
    "src/storage/blob-tag",
    protocol,
    replies,
    workerSettings,
  ],
  "src/vault/worker": ["node:*", "piscina", "src/*", protocol, replies, workerSettings],
  "src/access": ["node:*", "express", "express-rate-limit", ...leaves],
  "src/audit": ["node:*", ...leaves, protocol],
  "src/metrics": ["node:*", "prom-client", "src/*", "src/storage/secret-store"],
  "src/http": ["node:*", "express", "helmet", "src/*", "src/paths", "src/access", "src/audit", "src/vault", protocol],
  "src/server": [
    "node:*",
    "selfsigned",
    ...leaves,
    "src/access",
    "src/audit",
    "src/contract",
    "src/http",
    "src/metrics",
    "src/storage",
    "src/vault",
  ],
  "src/maintenance": [
    "node:*",
    "p-limit",
    "p-map",
    "tar",
    ...leaves,
    "src/audit",
    "src/storage",
    "src/vault/worker",
    "src/access/token-record",
    rules,
    protocol,
  ],
  "src/cli": [
    "node:*",
    "commander",
    "csv-parse/sync",
    "leven",
    "otpauth",
    "p-map",
    "shamir-secret-sharing",
    "smol-toml",
    "string-width",
    "@zxcvbn-ts/*",
    ...leaves,
    "src/client",
    keyText,
    protocol,
  ],
  "src/cli/commands": ["node:*", "commander", "@zxcvbn-ts/*", ...leaves, "src/cli", ...entries, protocol],
  workers: ["node:crypto", "node:buffer"],
  [schemas]: [],
};

type Import = readonly [from: string, to: string];

/** Files without their endings. Type imports count; a package keeps its name. */
function importsOf(file: string, code: string): Import[] {
  const statements = code.matchAll(/^(?:import|export) (?:[^;"]* from )?"([^"]+)";|\bimport\("([^"]+)"\)/gm);
  return [...statements].map(([, fixed, dynamic]) => {
    const to = fixed ?? dynamic ?? "";
    return [file, to.startsWith(".") ? join(dirname(file), to).replace(/\.c?js$/, "") : to];
  });
}

function covers(pattern: string, file: string): boolean {
  if (pattern === "src/*") return dirname(file) === "src";
  if (pattern.endsWith("*")) return file.startsWith(pattern.slice(0, -1));
  return file === pattern || file.startsWith(`${pattern}/`);
}

function isAllowed([from, to]: Import): boolean {
  const [row] = Object.keys(allowed)
    .filter((pattern) => covers(pattern, from))
    .sort((a, b) => b.length - a.length);
  return row !== undefined && [row, ...(allowed[row] ?? [])].some((pattern) => covers(pattern, to));
}

/** Drops files without imports of what is left, until none is: what remains is on a cycle, or leads to one. */
function cyclesIn(imports: readonly Import[]): readonly string[] {
  const left = imports.filter(([, to]) => imports.some(([from]) => from === to));
  return left.length === imports.length ? left.map(([from, to]) => `${from} → ${to}`) : cyclesIn(left);
}

describe("the source tree", () => {
  const files = ["src", "workers"].flatMap((root) =>
    readdirSync(root, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.c?ts$/.test(name))
      .map((name) => join(root, name)),
  );
  const imports = files.flatMap((path) => importsOf(path.replace(/\.c?ts$/, ""), readFileSync(path, "utf8")));

  it("imports only what the table allows", () => {
    expect(imports).to.have.length.above(500);
    expect(imports.filter((one) => !isAllowed(one)).map(([from, to]) => `${from} → ${to}`)).to.deep.equal([]);
  });

  const forbidden: readonly (readonly [file: string, code: string])[] = [
    ["workers/keyring", 'import { readFile } from "node:fs/promises";'],
    ["workers/crypto/xaes", 'import type { Log } from "../../src/log.js";'],
    ["src/http/routes", 'import { replaceFile } from "../files/durable.js";'],
    ["src/client/client", 'export { VaultError } from "../errors.js";'],
    ["src/vault/entries", 'const { FileStore } = await import("../storage/files/file-store.js");'],
    ["src/cli/session/output", 'import "../../server/service.js";'],
    ["src/new-room/file", 'import { VaultError } from "../errors.js";'],
  ];
  for (const [file, code] of forbidden) {
    it(`refuses ${code} in ${file}`, () => {
      expect(importsOf(file, code).map(isAllowed)).to.deep.equal([false]);
    });
  }

  it("has no import cycle, type imports included", () => {
    expect(cyclesIn(imports)).to.deep.equal([]);
    expect(
      cyclesIn([
        ["a", "b"],
        ["b", "a"],
        ["b", "c"],
      ]),
    ).to.deep.equal(["a → b", "b → a"]);
  });

  it("gives the key worker's thread one file, which loads the system's crypto and buffers alone", () => {
    expect(keyWorkerFile).to.match(/\/workers\/key-worker\.cjs$/);
    const code = readFileSync("dist/workers/key-worker.cjs", "utf8");
    const loaded = [...code.matchAll(/\b(?:require|import)\((.*?)\)/g)].map(([, name]) => name);
    expect([...new Set(loaded)].sort()).to.deep.equal(['"node:buffer"', '"node:crypto"']);
  });

  it("has at most 20 files in a folder and no file name twice, commands aside", () => {
    const others = files.filter((path) => dirname(path) !== "src/cli/commands");
    const counted = (key: (path: string) => string, most: number) => [
      ...new Set(others.map(key).filter((name, _, all) => all.filter((other) => other === name).length > most)),
    ];
    expect(counted(dirname, 20)).to.deep.equal([]);
    expect(counted((path) => basename(path), 1)).to.deep.equal([]);
  });
});
