/** Each kind of damage is found with code and path; --fix repairs what is safe and leaves the rest untouched. */
import { spawnSync } from "node:child_process";
import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { generate } from "selfsigned";
import { type FindingCode, findingCodes } from "../../src/maintenance/doctor/finding.js";
import { encodeJournal } from "../../src/storage/files/journal.js";
import { cleanUpMark, cleanUpTo, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { needs } from "../../tools/rig/needs.js";
import { startTestServer } from "../../tools/rig/server.js";
import { parseLog, rebuilt } from "../audit/sample-log.js";
import { run } from "../support/command-here.js";
import { copyHome, inspect, makeHome, type Report, readContents } from "./doctor-homes.js";

const isRoot = process.getuid?.() === 0;
const secrets = "vault/gen-1/secrets";

/** `at`: where it is found; `damage` gets that path and the home. */
type Row = {
  readonly name: string;
  readonly code: FindingCode;
  readonly at: string;
  readonly damage: (at: string, home: string) => void | Promise<void>;
  readonly fixed: boolean;
  /** Found only with the passphrase. */
  readonly deep?: true;
  readonly kept?: true;
};

const remove = (at: string) => rmSync(at, { recursive: true });
const write = (text: string) => (at: string) => writeFileSync(at, text, { mode: 0o600 });
const mode = (bits: number) => (at: string) => chmodSync(at, bits);
const temp = ".tmp-0123456789abcdef";
const longAgo = new Date(Date.now() - 2 * 3600 * 1000);

function makeOld(at: string): void {
  mkdirSync(join(at, "inside"), { recursive: true, mode: 0o700 });
  utimesSync(at, longAgo, longAgo);
}

function replaceByLink(at: string): void {
  const target = join(temporaryDirectory(), "target");
  renameSync(at, target);
  symlinkSync(target, at);
}

function replaceIn(from: string, to: string): (at: string) => void {
  return (at) => writeFileSync(at, readFileSync(at, "utf8").replace(from, to));
}

function flip(offset: number, bits = 1): (at: string) => void {
  return (at) => {
    const bytes = readFileSync(at);
    const position = offset < 0 ? bytes.length + offset : offset;
    bytes[position] = (bytes[position] ?? 0) ^ bits;
    writeFileSync(at, bytes);
  };
}

const hours = 3600 * 1000;

/** A certificate with these names; `from` and `to` are its validity in hours from now. */
function certificate(names: readonly string[], from: number, to: number) {
  return async (at: string, home: string) => {
    const altNames = names.map((name) =>
      name === "127.0.0.1" ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
    );
    const { cert, private: key } = await generate([{ name: "commonName", value: "other" }], {
      keyType: "ec",
      algorithm: "sha256",
      notBeforeDate: new Date(Date.now() + from * hours),
      notAfterDate: new Date(Date.now() + to * hours),
      extensions: [{ name: "subjectAltName", altNames }],
    });
    writeFileSync(at, cert);
    writeFileSync(join(home, "tls/key.pem"), createPrivateKey(key).export({ type: "pkcs8", format: "pem" }));
  };
}

function swapKey(at: string): void {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(at, privateKey.export({ type: "pkcs8", format: "pem" }));
}

const both = ["localhost", "127.0.0.1"];

const rows: readonly Row[] = [
  ...(
    [
      ["", 0o750],
      ["tls", 0o755],
      ["vault", 0o770],
      ["token", 0o644],
      ["tls/key.pem", 0o640],
      ["tls/cert.pem", 0o666],
      ["tls/cert.pem", 0o664],
      ["vault/current", 0o604],
      ["vault/gen-1", 0o711],
      ["vault/gen-1/header.json", 0o660],
      [secrets, 0o701],
      [`${secrets}/a`, 0o755],
      [`${secrets}/a/b.sealed`, 0o640],
      [`${secrets}/a/b.sealed`, 0o200],
    ] as const
  ).map(([at, bits]): Row => {
    const name = `${at || "the home"} with mode ${bits.toString(8)}`;
    return { name, code: "wrong-mode", at, damage: mode(bits), fixed: true };
  }),
  ...["token", "tls/key.pem", "vault/current", "vault/gen-1/header.json", `${secrets}/a`, `${secrets}/a.sealed`].map(
    (at): Row => ({ name: `a link instead of ${at}`, code: "symlink", at, damage: replaceByLink, fixed: false }),
  ),
  ...["tls", "vault", secrets].map(
    (at): Row => ({ name: `a link instead of ${at}`, code: "symlink", at, damage: replaceByLink, fixed: false }),
  ),
  {
    name: "a directory instead of the token",
    code: "wrong-kind",
    at: "token",
    damage: (at) => {
      remove(at);
      mkdirSync(at, { mode: 0o700 });
    },
    fixed: false,
  },
  ...["", "tls", "vault", "vault/gen-1", secrets, `${secrets}/a`].map(
    (place): Row => ({
      name: `a temp file in ${place || "the home"}`,
      code: "stray-temp",
      at: join(place, temp),
      damage: write("half"),
      fixed: true,
    }),
  ),
  {
    name: "a temp file in a kept vault",
    code: "stray-temp",
    at: `${secrets}/${temp}`,
    damage: write("half"),
    fixed: true,
    kept: true,
  },
  {
    name: "an empty directory",
    code: "stray-directory",
    at: `${secrets}/c/empty`,
    damage: (at) => void mkdirSync(at, { mode: 0o700 }),
    fixed: true,
  },
  ...["snapshot", "restore"].map(
    (word): Row => ({
      name: `an old ${word} directory`,
      code: "stray-directory",
      at: `vault/${word}-0123456789abcdef`,
      damage: makeOld,
      fixed: true,
    }),
  ),
  {
    name: "an init interrupted before it wrote the header",
    code: "stray-directory",
    at: "vault/gen-2",
    damage: (at) => void mkdirSync(join(at, "secrets"), { recursive: true, mode: 0o700 }),
    fixed: true,
  },
  {
    name: "an init interrupted while it wrote the header",
    code: "stray-directory",
    at: "vault/gen-2",
    damage: (at) => {
      mkdirSync(join(at, "secrets"), { recursive: true, mode: 0o700 });
      write("half")(join(at, temp));
    },
    fixed: true,
  },
  ...["vault/notes.txt", "vault/gen-1/notes.txt", `${secrets}/notes.txt`, "vault/gen-01"].map(
    (at): Row => ({ name: `a foreign ${at}`, code: "foreign-file", at, damage: write("mine"), fixed: false }),
  ),
  {
    name: "a foreign directory in the vault",
    code: "foreign-file",
    at: "vault/old",
    damage: (at) => void mkdirSync(at, { mode: 0o700 }),
    fixed: false,
  },
  ...["vault/snapshot-of-mine", "vault/restore-notes"].map(
    (at): Row => ({
      name: `a directory of the user, ${at}`,
      code: "foreign-file",
      at,
      damage: (path) => {
        mkdirSync(path, { mode: 0o700 });
        write("mine")(join(path, "notes.txt"));
      },
      fixed: false,
    }),
  ),
  {
    name: "a file of the user in the tree with a name like a temp file",
    code: "foreign-file",
    at: `${secrets}/.tmp-notes`,
    damage: write("mine"),
    fixed: false,
  },
  {
    name: "a vault without a header that has a foreign file",
    code: "header-missing",
    at: "vault/gen-2/header.json",
    damage: (_at, home) => {
      mkdirSync(join(home, "vault/gen-2/secrets"), { recursive: true, mode: 0o700 });
      write("mine")(join(home, "vault/gen-2/notes.txt"));
    },
    fixed: false,
  },
  {
    name: "a damaged secret in a kept vault",
    code: "blob-damaged",
    at: `${secrets}/earlier.sealed`,
    damage: (at) => truncateSync(at, 20),
    fixed: false,
    kept: true,
  },
  ...["Upper.sealed", "%C3.sealed", "con.sealed"].map(
    (name): Row => ({
      name: `the file name ${name}`,
      code: name.startsWith("%") ? "foreign-file" : "foreign-name",
      at: `${secrets}/${name}`,
      damage: write("?"),
      fixed: false,
    }),
  ),
  {
    name: "the directory name Upper",
    code: "foreign-name",
    at: `${secrets}/Upper`,
    damage: (at, home) => {
      mkdirSync(at, { mode: 0o700 });
      copyFileSync(join(home, secrets, "a.sealed"), join(at, "a.sealed"));
    },
    fixed: false,
  },
  ...["%5c.sealed", "%20a.sealed", "e%cc%81.sealed"].map(
    (name): Row => ({
      name: `the file name ${name}`,
      code: "forbidden-path",
      at: `${secrets}/${name}`,
      damage: write("?"),
      fixed: false,
    }),
  ),
  {
    name: "a second file for one secret",
    code: "duplicate-secret",
    at: `${secrets}/%61.sealed`,
    damage: (at, home) => copyFileSync(join(home, secrets, "a.sealed"), at),
    fixed: false,
  },
  {
    name: "a second file for one secret, in a directory with another spelling",
    code: "duplicate-secret",
    at: `${secrets}/%61/b.sealed`,
    damage: (at, home) => {
      mkdirSync(join(home, secrets, "%61"), { mode: 0o700 });
      copyFileSync(join(home, secrets, "a/b.sealed"), at);
    },
    fixed: false,
  },
  { name: "a missing current", code: "current-missing", at: "vault/current", damage: remove, fixed: true },
  {
    name: "a missing current with two vaults to choose from",
    code: "current-missing",
    at: "vault/current",
    damage: remove,
    fixed: false,
    kept: true,
  },
  {
    name: "a missing current with two vaults, the later with a truncated header",
    code: "current-missing",
    at: "vault/current",
    damage: (at, home) => {
      remove(at);
      truncateSync(join(home, "vault/gen-2/header.json"), 9);
    },
    fixed: false,
    kept: true,
  },
  {
    name: "a missing current and a missing header",
    code: "current-missing",
    at: "vault/current",
    damage: (at, home) => {
      remove(at);
      remove(join(home, "vault/gen-1/header.json"));
    },
    fixed: false,
  },
  ...["../../etc\n", "gen-7\n", "gen-1\nx", ""].map(
    (text): Row => ({
      name: `current with ${JSON.stringify(text)}`,
      code: "current-damaged",
      at: "vault/current",
      damage: write(text),
      fixed: false,
    }),
  ),
  {
    name: "a client token with a wider scope",
    code: "token-refused",
    at: "vault/gen-1/tokens.document",
    damage: replaceIn('"list","get"', '"list","get","put"'),
    fixed: false,
    deep: true,
  },
  ...[
    ["an unknown member", '"name":"ci"', '"name":"ci","note":""'],
    ["an unknown scope", '"list"', '"everything"'],
  ].map(
    ([what, from = "", to = ""]): Row => ({
      name: `a client token with ${what}`,
      code: "token-refused",
      at: "vault/gen-1/tokens.document",
      damage: replaceIn(from, to),
      fixed: false,
    }),
  ),
  {
    name: "a record of the audit log that was changed",
    code: "audit-changed",
    at: "audit/audit-000001.jsonl",
    damage: (at) => writeFileSync(at, readFileSync(at, "utf8").replace('"event":"put"', '"event":"got"')),
    fixed: false,
  },
  {
    name: "a record of the audit log that was changed by someone who knows the format",
    code: "audit-changed",
    at: "audit/audit-000001.jsonl",
    damage: (at) => {
      const { header, groups } = parseLog(new Map([[1, readFileSync(at)]]));
      const edited = groups.map(({ file, lines }) => {
        return { file, lines: lines.map((line) => line.replace('"event":"put"', '"event":"get"')) };
      });
      writeFileSync(at, rebuilt(header, edited).get(1) ?? "");
    },
    fixed: false,
    deep: true,
  },
  {
    name: "a truncated document of client tokens",
    code: "tokens-damaged",
    at: "vault/gen-1/tokens.document",
    damage: (at) => truncateSync(at, 100),
    fixed: false,
  },
  {
    name: "a damaged document of changes without a document of client tokens",
    code: "tokens-damaged",
    at: "vault/gen-1/token-changes.document",
    damage: (at) => {
      remove(join(dirname(at), "tokens.document"));
      writeFileSync(at, "{}\n", { mode: 0o600 });
    },
    fixed: false,
  },
  { name: "a missing header", code: "header-missing", at: "vault/gen-1/header.json", damage: remove, fixed: false },
  {
    name: "a missing header of a kept vault",
    code: "header-missing",
    at: "vault/gen-1/header.json",
    damage: remove,
    fixed: false,
    kept: true,
  },
  ...[
    ["that is truncated", (at: string) => truncateSync(at, 100)] as const,
    ["that is longer", (at: string) => appendFileSync(at, " ")] as const,
    [
      "of a later version",
      (at: string) => writeFileSync(at, readFileSync(at, "utf8").replace('n":2', 'n":3')),
    ] as const,
    [
      "with a hostile cost",
      (at: string) => writeFileSync(at, readFileSync(at, "utf8").replace('"logN":14', '"logN":31')),
    ] as const,
  ].map(
    ([what, damage]): Row => ({
      name: `a header ${what}`,
      code: "header-damaged",
      at: "vault/gen-1/header.json",
      damage,
      fixed: false,
    }),
  ),
  {
    name: "a damaged journal",
    code: "journal-damaged",
    at: "vault/gen-1/journal",
    damage: write("half"),
    fixed: false,
  },
  { name: "a missing directory of secrets", code: "secrets-missing", at: secrets, damage: remove, fixed: true },
  ...[
    ["that is empty", (at: string) => truncateSync(at, 0)] as const,
    ["that is truncated in its metadata", (at: string) => truncateSync(at, 60)] as const,
    [
      "that is no sealed secret",
      (at: string) => writeFileSync(at, "a text that is as long as any blob, and then some, and more"),
    ] as const,
    ["of a later version", flip(4, 0x80)] as const,
    ["with an inconsistent length", flip(6)] as const,
  ].map(
    ([what, damage]): Row => ({
      name: `a secret's file ${what}`,
      code: "blob-damaged",
      at: `${secrets}/c/d.sealed`,
      damage,
      fixed: false,
    }),
  ),
  ...[
    ["with a flipped bit in its metadata", flip(40)] as const,
    ["with a flipped bit in its value", flip(-1)] as const,
    ["that was moved", (at: string, home: string) => copyFileSync(join(home, secrets, "a.sealed"), at)] as const,
  ].map(
    ([what, damage]): Row => ({
      name: `a secret's file ${what}`,
      code: "secret-damaged",
      at: `${secrets}/c/d.sealed`,
      damage,
      fixed: false,
      deep: true,
    }),
  ),
  {
    name: "an earlier version of a secret with a flipped bit",
    code: "secret-damaged",
    at: `${secrets}/%42ig/%58.sealed`,
    damage: flip(-1),
    fixed: false,
    deep: true,
  },
  { name: "a token of two words", code: "token-damaged", at: "token", damage: write("two words\n"), fixed: false },
  { name: "a missing key", code: "certificate-damaged", at: "tls/key.pem", damage: remove, fixed: false },
  { name: "a missing certificate", code: "certificate-damaged", at: "tls/cert.pem", damage: remove, fixed: false },
  { name: "a damaged certificate", code: "certificate-damaged", at: "tls/cert.pem", damage: write("?"), fixed: false },
  {
    name: "the key of another certificate",
    code: "certificate-mismatch",
    at: "tls/key.pem",
    damage: swapKey,
    fixed: false,
  },
  ...[
    ["that has expired", certificate(both, -48, -24)] as const,
    ["that soon expires", certificate(both, -24, 29 * 24)] as const,
    ["that is not valid yet", certificate(both, 24, 1000)] as const,
  ].map(
    ([what, damage]): Row => ({
      name: `a certificate ${what}`,
      code: "certificate-expired",
      at: "tls/cert.pem",
      damage,
      fixed: false,
    }),
  ),
  {
    name: "a certificate for another name",
    code: "certificate-names",
    at: "tls/cert.pem",
    damage: certificate(["localhost"], -24, 1000),
    fixed: false,
  },
];

describe("doctor's findings", () => {
  const homes = { plain: "", kept: "" };
  let mark = 0;
  before(async () => {
    mark = cleanUpMark();
    homes.plain = await makeHome();
    homes.kept = await makeHome(true);
  });
  after(() => cleanUpTo(mark));

  const damagedHome = async ({ at, damage, kept }: Row) => {
    const home = copyHome(kept ? homes.kept : homes.plain);
    await damage(join(home, at), home);
    return { home, path: join(home, at), before: readContents(home) };
  };
  const foundAt = ({ findings }: Pick<Report, "findings">, code: string, path: string) =>
    findings.find((finding) => finding.code === code && finding.path === path);

  for (const row of rows.filter(({ fixed }) => fixed)) {
    it(`doctor --fix repairs ${row.name} (${row.code})`, async () => {
      const { home, path, before } = await damagedHome(row);
      const found = await inspect(home);
      expect(found.exit).to.equal(12);
      expect(foundAt(found, row.code, path)).to.include({ fixable: true, fixed: false, did: null });
      expect(readContents(home), "without --fix nothing is touched").to.deep.equal(before);
      const fixed = await inspect(home, { fix: true }); // inspects again after its fixes
      expect(fixed.exit).to.equal(0);
      expect(foundAt(fixed, row.code, path)?.did).to.be.a("string");
    });
  }

  for (const row of rows.filter(({ fixed }) => !fixed)) {
    it(`doctor --fix reports and leaves alone ${row.name} (${row.code})`, async () => {
      const { home, path, before } = await damagedHome(row);
      const { exit, findings } = await inspect(home, { fix: true, ...(row.deep && { open: true }) });
      expect(exit).to.equal(12);
      expect(foundAt({ findings }, row.code, path)).to.include({ fixable: false, fixed: false, did: null });
      expect(readContents(home)).to.deep.equal(before);
    });
  }

  it("doctor finds nothing in a sound home, with and without the passphrase, and with a kept vault", async () => {
    for (const home of [homes.plain, homes.kept]) {
      expect(await inspect(home)).to.deep.include({ exit: 0, findings: [] });
      const opened = await inspect(home, { open: true });
      expect(opened).to.deep.include({ exit: 0, findings: [] });
      expect(opened.json).to.include({ ok: true, opened: true, secrets: 4 });
    }
  });

  it("doctor reports another certificate's key, and suggests a restart only for a pair that the server made", async () => {
    const [ours, foreign] = [copyHome(homes.plain), copyHome(homes.plain)];
    await certificate(both, -24, 1000)(join(foreign, "tls/cert.pem"), foreign);
    for (const [home, remedy] of [
      [ours, /^restart the server/],
      [foreign, /^restore a matching pair/],
    ] as const) {
      const path = join(home, "tls/key.pem");
      swapKey(path);
      expect(foundAt(await inspect(home), "certificate-mismatch", path)?.remedy).to.match(remedy);
    }
  });

  it("doctor --fix keeps a young snapshot directory beside a server, and removes it without one", async () => {
    const home = copyHome(homes.plain);
    const server = await startTestServer({ home });
    const path = join(home, "vault", "snapshot-0123456789abcdef");
    mkdirSync(path, { mode: 0o700 });
    expect(await inspect(home, { fix: true })).to.deep.include({ exit: 0, findings: [] });
    await server.stop();
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const { exit, findings } = await inspect(home, { fix: true });
    expect([exit, findings.map(({ code, fixed }) => [code, fixed])]).to.deep.equal([0, [["stray-directory", true]]]);
    expect(existsSync(path)).to.equal(false);
  });

  it("doctor finds nothing wrong with the journal of a batch, or with a document", async () => {
    const home = copyHome(homes.plain);
    writeFileSync(join(home, "vault/gen-1/journal"), encodeJournal([]), { mode: 0o600 });
    writeFileSync(join(home, "vault/gen-1/other.document"), "{}", { mode: 0o600 });
    expect(await inspect(home)).to.deep.include({ exit: 0, findings: [] });
  });

  it("doctor finds a pipe in the tree, without waiting for its writer", async function () {
    const home = copyHome(homes.plain);
    const path = join(home, secrets, "pipe.sealed");
    needs(this, spawnSync("mkfifo", ["-m", "600", path]).status === 0, "mkfifo");
    const { exit, findings } = await inspect(home);
    expect(exit).to.equal(12);
    expect(findings.map(({ code, path }) => [code, path])).to.deep.equal([["wrong-kind", path]]);
  });

  it("doctor --fix finds all damage at once, fixes what it can, and reports the rest", async () => {
    const home = copyHome(homes.plain);
    rmSync(join(home, "vault/current"));
    chmodSync(join(home, secrets, "a"), 0o755);
    write("half")(join(home, secrets, "a", temp));
    truncateSync(join(home, secrets, "a.sealed"), 10);
    mkdirSync(join(home, secrets, "x/y/z"), { recursive: true, mode: 0o700 });
    const { exit, findings } = await inspect(home, { fix: true });
    expect(exit).to.equal(12);
    expect(findings.filter(({ fixed }) => !fixed).map(({ code }) => code)).to.deep.equal(["blob-damaged"]);
    expect(findings.filter(({ fixed }) => fixed)).to.have.lengthOf(6);
  });

  it("doctor finds files of another user", async function () {
    needs(this, isRoot, "root");
    const home = copyHome(homes.plain);
    const path = join(home, secrets, "a.sealed");
    chownSync(path, 12345, 12345);
    const { exit, findings } = await inspect(home, { fix: true });
    expect(exit).to.equal(12);
    expect(findings.map(({ code, path, fixed }) => ({ code, path, fixed }))).to.deep.equal([
      { code: "foreign-owner", path, fixed: false },
    ]);
  });

  it("doctor run by root finds nothing wrong in another user's home, and leaves --fix to its owner", async function () {
    needs(this, isRoot, "root");
    const home = copyHome(homes.plain);
    for (const path of [home, ...Object.keys(readContents(home))]) chownSync(path, 12345, 12345);
    expect(await inspect(home)).to.deep.include({ exit: 0, findings: [] });
    const { code, stderr } = await run(["doctor", "--fix", "--home", home]);
    expect(code).to.equal(2);
    expect(stderr).to.contain("12345");
  });

  it("doctor finds files that their owner may not read", async function () {
    needs(this, !isRoot, "another user than root");
    const home = copyHome(homes.plain);
    const path = join(home, secrets, "a");
    chmodSync(path, 0);
    const { findings } = await inspect(home);
    expect(findings.map(({ code }) => code)).to.include.members(["wrong-mode", "unreadable"]);
    expect(await inspect(home, { fix: true })).to.include({ exit: 0 });
  });

  it("every finding code has a row, and every row a known code", () => {
    const elsewhere: FindingCode[] = ["foreign-owner", "unreadable", "count-wrong", "foreign-row", "disk-full"];
    expect([...new Set([...rows.map(({ code }) => code), ...elsewhere])]).to.have.members(Object.keys(findingCodes));
  });

  it("doctor finds nothing in a copy of the home under another name", async () => {
    const copy = join(temporaryDirectory(), "restored");
    copyTree(homes.plain, copy);
    expect(await inspect(copy, { open: true })).to.deep.include({ exit: 0, findings: [] });
  });
});
