/** Which part of the source may import which, and by which files a folder is entered (all else is denied); no cycles. */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { expect } from "chai";
import { keyWorkerFile } from "../src/program-files.js";

/** Mocha's own search for the files of a pattern. */
const { lookupFiles } = createRequire(import.meta.url)("mocha/lib/cli/lookup-files.js") as {
  readonly lookupFiles: (pattern: string, extensions: readonly string[]) => string[];
};

const leaves = ["src/*", "src/config", "src/paths", "src/files"];
const [protocol, registers, keyText] = ["workers/protocol", "workers/registers", "workers/crypto/key-text"];
/** `import` reads seeds as `otp` does. */
const seeds = ["workers/memory", "workers/transit/one-time-code"];
const rules = "src/server/certificate-rules";
/** The client is published alone, and so has the rules that all share. */
const [ownership, defaultHome] = ["src/client/ownership", "src/client/default-home"];
const served = ["src/access", "src/audit", "src/client", "src/engines", "src/maintenance", "src/server", "src/storage"];

/** A row covers a folder and its subfolders, and what they import of each other; the row nearest to a file counts. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  "src/*": ["node:*", protocol, registers, "prove/weaknesses"],
  "src/config": ["node:*", "src/*", defaultHome],
  "src/paths": ["node:path", "src/*"],
  "src/files": ["node:*", "src/*", "src/config", ownership],
  "src/client": ["node:*"],
  "src/contract": ["src/*"],
  "src/storage": ["node:*", ...leaves, protocol],
  "src/storage/postgres": ["node:*", "pg", ...leaves, "src/storage", protocol],
  "src/engines": ["node:*", ...leaves, "src/storage", protocol],
  "src/vault": [
    "node:*",
    "p-map",
    "piscina",
    "src/*",
    "src/paths",
    "src/storage/secret-store",
    "src/storage/blob-tag",
    "src/storage/trashed-blob",
    "@zxcvbn-ts/*",
    "workers/check/words",
    protocol,
    registers,
  ],
  "src/access": ["node:*", "express-rate-limit", ...leaves, "src/contract"],
  "src/audit": ["node:*", ...leaves, "src/contract", protocol],
  "src/metrics": ["node:*", "src/*", "src/storage/secret-store"],
  "src/http": [
    "node:*",
    "express",
    "helmet",
    "src/*",
    "src/paths",
    "src/access",
    "src/audit",
    "src/broker",
    "src/contract",
    "src/vault",
    protocol,
    registers,
  ],
  "src/vault-api": [
    "node:*",
    "src/*",
    "src/paths",
    "src/access",
    "src/audit",
    "src/contract",
    "src/http",
    "src/vault",
    protocol,
    "workers/go-values",
    "workers/vault-members",
  ],
  "src/server": [
    "node:*",
    "selfsigned",
    ...leaves,
    "src/access",
    "src/audit",
    "src/broker",
    "src/contract",
    "src/engines",
    "src/http",
    "src/metrics",
    "src/storage",
    "src/vault",
    "src/vault-api",
  ],
  "src/maintenance": [
    "node:*",
    "p-map",
    "tar",
    ...leaves,
    "src/audit",
    ownership,
    "src/storage",
    "src/vault/key-worker",
    "src/access/stored-tokens",
    "src/access/token-record",
    rules,
    protocol,
  ],
  "src/broker": [
    "node:*",
    "@peculiar/x509",
    "src/*",
    "src/access",
    "src/audit",
    "src/vault",
    protocol,
    registers,
    "workers/binding-members",
    "workers/use-rules",
  ],
  "src/cli": [
    "node:*",
    "commander",
    "csv-parse/sync",
    "p-map",
    "smol-toml",
    ...leaves,
    "src/client",
    protocol,
    ...seeds,
  ],
  "src/cli/kit": [
    "node:*",
    "bcrypt-pbkdf",
    "commander",
    "fast-string-width",
    "leven",
    "shamir-secret-sharing",
    "smol-toml",
    "@scure/base",
    "@zxcvbn-ts/*",
    ...leaves,
    "src/client",
    "src/storage/files/claim",
    keyText,
    protocol,
  ],
  "src/cli/command-table": ["src/cli", "src/extras"],
  "src/extras": ["node:*", "@scure/base", "commander", "src/program-files", "src/client", "src/cli/kit"],
  "src/cli/commands": [
    "node:*",
    "commander",
    "@zxcvbn-ts/*",
    ...leaves,
    "src/cli",
    "src/contract",
    ...served,
    "prove",
    protocol,
  ],
  workers: ["node:crypto", "node:buffer"],
  "workers/transit": ["node:crypto", "@scure/base", "workers"],
  prove: ["node:*", "@scure/base"],
};

/** Files that may see a request or a response: the adapter, what it works with, and what comes before it. No handler. */
const withRequests: readonly string[] = [
  ...[
    "adapter",
    "app",
    "body",
    "connections",
    "guards",
    "list-method",
    "listener",
    "malformed",
    "request",
    "response",
  ].map((name) => `src/http/${name}`),
  ...["src/http/sending", "src/vault-api/api"],
  "src/http/storm-gets", // it sends requests, and sees no caller's
];

/** The files by which a room is entered from outside it; a folder that stands here whole is open. */
const entrances: readonly string[] = [
  "src/*",
  "src/config",
  "src/files",
  "src/paths",
  "src/access/lockout",
  "src/access/tokens",
  "src/access/credentials",
  "src/access/review",
  "src/access/rights",
  "src/access/root-token",
  "src/access/scopes",
  "src/access/stored-tokens",
  "src/access/token-record",
  "src/access/token-request",
  "src/access/token-value",
  "src/audit/check",
  "src/audit/format",
  "src/audit/audit-log",
  "src/audit/record",
  "src/audit/files",
  "src/audit/verify",
  "src/broker/binding",
  "src/broker/broker",
  "src/broker/host-name",
  "src/broker/session-request",
  "src/cli/kit",
  "src/client/batch",
  defaultHome,
  "src/client/client",
  "src/client/discovery",
  "src/client/fields",
  ownership,
  "src/contract/audit-events",
  "src/contract/document",
  "src/contract/names",
  "src/contract/operations",
  "src/engines/engine",
  "src/engines/engines",
  "src/http/adapter",
  "src/http/app",
  "src/http/body",
  "src/http/endpoint",
  "src/http/endpoints",
  "src/http/transit-facts",
  "src/http/guards",
  "src/http/listener",
  "src/http/request",
  "src/http/response",
  "src/http/routes",
  "src/maintenance/backup/archive",
  "src/maintenance/backup/format",
  "src/maintenance/backup/restore-backup",
  "src/maintenance/backup/write-backup",
  "src/maintenance/doctor/finding",
  "src/maintenance/doctor/inspect-home",
  "src/maintenance/migrate",
  "src/maintenance/offline-keys",
  "src/metrics/instruments",
  "src/metrics/measured-store",
  "src/metrics/server-metrics",
  rules,
  "src/server/server-handle",
  "src/server/strongroom",
  "src/storage/blob-tag",
  "src/storage/trashed-blob",
  "src/storage/files/claim",
  "src/storage/files/documents",
  "src/storage/files/file-store",
  "src/storage/files/generations",
  "src/storage/files/journal",
  "src/storage/postgres/open-database",
  "src/storage/secret-store",
  "src/storage/unfinished-vault",
  "src/vault/check",
  "src/vault/conditions",
  "src/vault/key-worker",
  "src/vault/list",
  "src/vault/secrets",
  "src/vault/uses",
  "src/vault/status",
  "src/vault/vault",
  "src/vault-api/api",
  keyText,
  protocol,
  registers,
  ...seeds,
  "workers/check/words",
  "workers/go-values",
  "workers/binding-members",
  "workers/use-rules",
  "workers/vault-members",
];

type Import = readonly [from: string, to: string];

/** Files without their endings. Type imports count; a package keeps its name. */
function parseImports(file: string, code: string): Import[] {
  const statements = code.matchAll(/^(?:import|export) (?:[^;"]* from )?"([^"]+)";|\bimport\("([^"]+)"\)/gm);
  return [...statements].map(([, fixed, dynamic]) => {
    const to = fixed ?? dynamic ?? "";
    return [file, to.startsWith(".") ? join(dirname(file), to).replace(/\.c?js$/, "") : to];
  });
}

function sourcesIn(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.c?ts$/.test(name))
    .map((name) => join(root, name));
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

/** The name of the extra that a file belongs to. */
function extraName(file: string): string | null {
  return /^src\/extras\/([^/]+)\//.exec(file)?.[1] ?? null;
}

function joinsExtras([from, to]: Import): boolean {
  const [importer, imported] = [extraName(from), extraName(to)];
  return importer !== null && imported !== null && importer !== imported;
}

function roomName(file: string): string {
  const [root = "", room = "", ...rest] = file.split("/");
  return root === "workers" || rest.length === 0 ? root : `${root}/${room}`;
}

function entersRoom([from, to]: Import): boolean {
  return /^(?:src|workers)\//.test(to) && roomName(from) !== roomName(to);
}

function isByEntrance(one: Import): boolean {
  if (one[0] === "src/cli/command-table" && extraName(one[1]) !== null) return true; // an extra comes and goes with its row
  return !entersRoom(one) || entrances.some((pattern) => covers(pattern, one[1]));
}

/** Uses of the process or the machine that bypass Io. */
const globals: Readonly<Record<string, RegExp>> = {
  process: /(?<![-/\w])process[.[]|= process\b|"node:process"/,
  console: /\bconsole\./,
  clock: /\bDate\.now\b|\bnew Date\(\)|\bperformance\./,
  timer: /(?<![.\w])set(?:Timeout|Interval|Immediate)\(|"node:timers/,
  machine: /^import (?!\{ constants \} from).*"node:os"/m,
  terminal: /"\/dev\/tty"/,
  chance: /\bMath\.random\b/,
  global: /\bglobalThis\b/,
};

function globalsIn(source: string): readonly string[] {
  const code = source.replace(/\/\*.*?\*\/|(?<![:"])\/\/ .*$/gms, "");
  return Object.entries(globals).flatMap(([name, pattern]) => (pattern.test(code) ? [name] : []));
}

function mutualIn(imports: readonly Import[]): readonly string[] {
  const ways = new Set(imports.map(([from, to]) => `${dirname(from)} ↔ ${dirname(to)}`));
  return [...ways].filter((way) => {
    const [a = "", b = ""] = way.split(" ↔ ");
    return a < b && ways.has(`${b} ↔ ${a}`);
  });
}

/** Drops files without imports of what is left, until none is: what remains is on a cycle, or leads to one. */
function cyclesIn(imports: readonly Import[]): readonly string[] {
  const left = imports.filter(([, to]) => imports.some(([from]) => from === to));
  return left.length === imports.length ? left.map(shown) : cyclesIn(left);
}

function shown([from, to]: Import): string {
  return `${from} → ${to}`;
}

describe("architecture", () => {
  const files = ["src", "workers", "prove"].flatMap(sourcesIn);
  const others = [...files, ...["bench", "packaging", "tools", "packages/mcp/src"].flatMap(sourcesIn)];
  const imports = files.flatMap((path) => parseImports(path.replace(/\.c?ts$/, ""), readFileSync(path, "utf8")));

  it("the source tree imports only what the table allows", () => {
    expect(imports).to.have.length.above(500);
    expect(imports.filter((one) => !isAllowed(one)).map(shown)).to.deep.equal([]);
  });

  it("the source tree keeps each extra apart from the others", () => {
    expect(imports.filter(([from]) => extraName(from) !== null)).to.have.length.above(50);
    expect(imports.filter(joinsExtras).map(shown)).to.deep.equal([]);
  });

  it("the source tree touches nothing of its process or machine in a command or an extra but by Io", () => {
    const ofCommands = files.filter((file) => /^src\/(?:cli\/commands|extras)\//.test(file));
    const commands = ofCommands.filter((file) => !file.endsWith("-thread.ts")); // a thread has no Io
    const touched = commands.map((file) => [file, globalsIn(readFileSync(file, "utf8"))] as const);
    expect(commands).to.have.length.above(60);
    expect(touched.filter(([, found]) => found.length > 0)).to.deep.equal([]);
  });

  const uses: readonly (readonly [code: string, ...found: string[]])[] = [
    ['process.stdout.write("x");', "process"],
    ["const { execve } = process;", "process"],
    ['import { env } from "node:process";', "process"],
    ['import { runChild } from "../kit/programs/child-process.js";'],
    ['const text = "a process of its own"; // of process.env'],
    ["/** Ends this process: process.exit */"],
    ["console.log(value);", "console"],
    ["const now = Date.now();", "clock"],
    ["const now = new Date();", "clock"],
    ["const at = new Date(text).getTime() - Date.parse(other);"],
    ["const began = performance.now();", "clock"],
    ["const began = io.clock.now();"],
    ["setTimeout(end, 100);", "timer"],
    ['import { setTimeout as sleep } from "node:timers/promises";', "timer"],
    ["io.clock.after(100, end);"],
    ['import { constants } from "node:os";'],
    ['import { constants, homedir } from "node:os";', "machine"],
    ['import os from "node:os";', "machine"],
    ['openSync("/dev/tty", "r");', "terminal"],
    ["const order = Math.random();", "chance"],
    ["globalThis.fetch(url);", "global"],
  ];
  for (const [code, ...found] of uses) {
    it(`the scan finds ${found.join() || "no global"} in ${code}`, () => expect(globalsIn(code)).to.deep.equal(found));
  }

  it("the source tree enters a folder only by the files that the table names", () => {
    expect(imports.filter((one) => !isByEntrance(one)).map(shown)).to.deep.equal([]);
  });

  it("the source tree shows no handler a request or a response", () => {
    const sources = ["express", "node:http", "node:https", "src/http/request", "src/http/response"];
    const seeing = imports.filter(([from, to]) => /^src\/(?:http|vault-api)\//.test(from) && sources.includes(to));
    expect([...new Set(seeing.map(([from]) => from))].sort()).to.deep.equal([...withRequests].sort());
  });

  it("the source tree has no entrance that is unused", () => {
    const used = imports.filter(entersRoom);
    expect(entrances.filter((pattern) => !used.some(([, to]) => covers(pattern, to)))).to.deep.equal([]);
  });

  const forbidden: readonly (readonly [file: string, code: string])[] = [
    ["workers/crypto/keyring", 'import { readFile } from "node:fs/promises";'],
    ["workers/crypto/xaes", 'import type { Log } from "../../src/log.js";'],
    ["src/http/secrets", 'import { replaceFile } from "../files/durable.js";'],
    ["src/client/client", 'export { VaultError } from "../errors.js";'],
    ["src/vault/secrets", 'const { FileStore } = await import("../storage/files/file-store.js");'],
    ["src/cli/kit/output", 'import "../../server/service.js";'],
    ["src/cli/kit/output", 'import { launch } from "../run/launch.js";'],
    ["src/cli/commands/run", 'import { agentServer } from "../../extras/ssh-agent/agent.js";'],
    ["src/extras/browse/browse", 'import { homeAt } from "../../files/home.js";'],
    ["src/extras/check/scan", 'import { launch } from "../../cli/run/launch.js";'],
    ["prove/attacker", 'import { parseHeader } from "../workers/crypto/header.js";'],
    ["prove/server", 'import { StrongroomClient } from "../src/client/client.js";'],
    ["src/new-room/file", 'import { VaultError } from "../errors.js";'],
  ];
  for (const [file, code] of forbidden) {
    it(`the import rules refuse ${code} in ${file}`, () => {
      expect(parseImports(file, code).map(isAllowed)).to.deep.equal([false]);
    });
  }

  it("the source tree refuses an import from one extra to another", () => {
    const [made = ["", ""]] = parseImports("src/extras/mcp/mcp", 'import { Screen } from "../browse/screen.js";');
    expect(joinsExtras(made)).to.equal(true);
  });

  it("the source tree refuses an import past a folder's entrances", () => {
    expect(
      parseImports("src/server/strongroom", 'import { hidden } from "../vault/hidden.js";').map(isByEntrance),
    ).to.deep.equal([false]);
  });

  it("the source tree imports nothing of test outside of test", () => {
    const inTest = others.filter((name) => /(?:from |import\()"(?:\.\.\/)+test\//.test(readFileSync(name, "utf8")));
    expect(others).to.have.lengthOf.above(400);
    expect(inTest).to.deep.equal([]);
  });

  it("the source tree names no function, constant or method with Of at its end", () => {
    const words = ["indexOf", "lastIndexOf", "instanceOf", "valueOf", "lengthOf", "oneOf", "anyOf", "setPrototypeOf"];
    const names = [...others, ...sourcesIn("test")].flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/\b[a-z]\w+Of\b/g)].map(([name]) => `${name} in ${file}`),
    );
    expect(names.filter((name) => !words.includes(name.split(" ")[0] ?? ""))).to.deep.equal([]);
  });

  it("the source tree runs each test file once, in the order of .mocharc.json, which mocha does not see to in parallel", () => {
    const { spec } = JSON.parse(readFileSync(".mocharc.json", "utf8")) as { spec: readonly string[] };
    const named = spec.flatMap((pattern) => lookupFiles(pattern, ["js"]));
    const all = readdirSync("dist/test", { recursive: true, encoding: "utf8" }).map((name) => join("dist/test", name));
    expect(named.map((file) => relative(".", file)).sort()).to.deep.equal(
      all.filter((file) => /\.test\.js$/.test(file)).sort(),
    );
  });

  it("the source tree skips tests only by `needs`, so that the report says what was missing", () => {
    const sources = readdirSync("test", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
    const skipping = sources.filter((name) =>
      /(?:it|describe)\.skip\b|\.skip\(\)/.test(readFileSync(join("test", name), "utf8")),
    );
    expect(skipping).to.deep.equal([]);
  });

  it("the source tree has no two folders that import each other", () => {
    expect(mutualIn(imports)).to.deep.equal([]);
    expect(
      mutualIn([
        ["a/x", "a/b/y"],
        ["a/b/z", "a/w"],
        ["a/b/z", "c/v"],
      ]),
    ).to.deep.equal(["a ↔ a/b"]);
  });

  it("the source tree has no import cycle, type imports included", () => {
    expect(cyclesIn(imports)).to.deep.equal([]);
    expect(
      cyclesIn([
        ["a", "b"],
        ["b", "a"],
        ["b", "c"],
      ]),
    ).to.deep.equal(["a → b", "b → a"]);
  });

  it("the source tree gives the key worker's thread one file, which loads only the system's crypto and buffers", () => {
    expect(keyWorkerFile).to.match(/\/workers\/key-worker\.cjs$/);
    const code = readFileSync("dist/workers/key-worker.cjs", "utf8");
    const loaded = [...code.matchAll(/\b(?:require|import)\((.*?)\)/g)].map(([, name]) => name);
    expect([...new Set(loaded)].sort()).to.deep.equal(['"node:buffer"', '"node:crypto"']);
  });
});
