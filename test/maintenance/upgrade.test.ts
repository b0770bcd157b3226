/** Upgrades and downgrades: homes of earlier versions open and serve; what a later version wrote is refused clearly. */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { StartError } from "../../src/errors.js";
import { encodeJournal } from "../../src/storage/files/journal.js";
import { preparedHome } from "../../tools/rig/prepared-home.js";
import { NotStarted, startProcess } from "../../tools/rig/process.js";
import { passphrase, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  mustGet,
  mustLock,
  mustPut,
  mustRefuse,
  mustSucceed,
  mustUnlock,
  secretTarget,
  send,
} from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";
import { unlockWith } from "../support/key-requests.js";
import { type FrozenHome, frozenHomes } from "../vectors/frozen-homes.js";

function writeHome({ files }: FrozenHome): string {
  const home = preparedHome();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, name)), { recursive: true, mode: 0o700 });
    writeFileSync(join(home, name), Buffer.from(content, "base64"), { mode: 0o600 });
  }
  return home;
}

/** Programs that do not know trash and transit keys would rotate the master key without them: they must refuse it. */
function readHeader(home: string): string {
  return readFileSync(join(home, "vault", "gen-1", "header.json"), "utf8");
}

async function mustHoldAll(server: TestServer, { versions, spaces }: FrozenHome): Promise<void> {
  const metadata = { type: "password", description: "of the database" };
  expect(await mustGet(server, "app/db/password")).to.deep.include({ value: "second value", metadata });
  expect(await mustGet(server, "Ümlaut B")).to.deep.include({ value: "värde ☃" });
  if (!versions) return;
  const first = await send(server, { path: "/v1/versions/app/db/password?version=1" });
  expect(mustSucceed(first)["value"]).to.equal("first value");
  if (spaces === undefined) return;
  expect(mustSucceed(await send(server, { path: "/v1/trash" }))["entries"]).to.have.nested.property(
    "[0].path",
    "old/key",
  );
  const post = async (path: string, body: object) =>
    mustSucceed(await send(server, { method: "POST", path: `/v1/transit/${path}`, body }));
  const { plaintext } = await post("decrypt/seal", { ciphertext: spaces.ciphertext });
  expect(Buffer.from(String(plaintext), "base64").toString()).to.equal("plain ☃");
  const input = Buffer.from("signed").toString("base64");
  expect(await post("verify/sign", { input, signature: spaces.signature })).to.include({ valid: true });
}

describe("homes of earlier versions", () => {
  for (const frozen of frozenHomes) {
    it(`a home of ${frozen.made} opens, serves, and opens again after changes`, async () => {
      const home = writeHome(frozen);
      const server = await startTestServer({ home });
      await mustUnlock(server);
      await mustHoldAll(server, frozen);
      expect(readHeader(home)).to.contain('"version":2,').and.to.contain('"spaces":["secrets","trash","keys"],');
      await mustPut(server, "app/new", "new value");
      if (frozen.key !== null) {
        await mustLock(server);
        mustSucceed(await send(server, unlockWith(frozen.key)));
      }
      await server.stop();
      const { code, stdout } = await run(["doctor"], { STRONGROOM_HOME: home });
      expect(code, stdout).to.equal(0);
      const again = await startTestServer({ home });
      await mustUnlock(again);
      await mustHoldAll(again, frozen);
      expect((await mustGet(again, "app/new"))["value"]).to.equal("new value");
    });
  }
});

describe("files of a later version", () => {
  const [, frozen] = frozenHomes;

  it("a header of a later version stops the start and stays as it is", async () => {
    const home = writeHome(frozen ?? { made: "", key: null, versions: false, files: {} });
    const header = join(home, "vault", "gen-1", "header.json");
    const later = readFileSync(header, "utf8").replace('"version":2', '"version":3');
    writeFileSync(header, later);
    const failed = await startProcess([], { STRONGROOM_HOME: home }).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(NotStarted);
    expect((failed as NotStarted).ended.stderr).to.match(/newer version/);
    expect(readFileSync(header, "utf8")).to.equal(later);
  });

  it("a header that names other spaces than its MAC covers does not open the vault", async () => {
    const home = writeHome(frozenHomes[2] ?? { made: "", key: null, versions: false, files: {} });
    const header = join(home, "vault", "gen-1", "header.json");
    const before = readFileSync(header, "utf8");
    for (const spaces of ["", '"spaces":["secrets"],', '"spaces":["secrets","keys","trash"],']) {
      writeFileSync(header, before.replace('"spaces":["secrets","trash","keys"],', spaces));
      try {
        const server = await startTestServer({ home });
        mustRefuse(await send(server, unlockWith(passphrase)), 500, "INTEGRITY");
        await server.stop();
      } catch (error) {
        expect(error, spaces).to.be.instanceOf(StartError);
        expect((error as StartError).message).to.match(/header/);
      }
    }
  });

  it("a secret of a later version is refused by its name, and the others are served", async () => {
    const home = writeHome(frozen ?? { made: "", key: null, versions: false, files: {} });
    const file = join(home, "vault/gen-1/secrets/app/db/password.sealed");
    const blob = readFileSync(file);
    blob[4] = 4;
    writeFileSync(file, blob);
    const server = await startTestServer({ home });
    await mustUnlock(server);
    const answer = await send(server, { path: secretTarget("app/db/password") });
    mustRefuse(answer, 500, "INTEGRITY");
    expect(answer.text).to.contain("newer version");
    expect((await mustGet(server, "Ümlaut B"))["value"]).to.equal("värde ☃");
    expect(readFileSync(file).equals(blob)).to.equal(true);
  });

  const journal = encodeJournal([{ space: "secrets", path: "a", blob: null }]).subarray(0, -32);
  journal[4] = 9;
  const laterJournal = Buffer.concat([journal, createHash("sha256").update(journal).digest()]);
  const audit = (version: number) =>
    `{"format":"strongroom audit","version":${version},"file":1,"log":"YZe8ulrMPFTImRiJ7RU5yA","seq":1}\n`;
  for (const [what, name, bytes, says] of [
    [
      "the client tokens",
      "vault/gen-1/tokens.document",
      '{"format":"strongroom tokens","version":9,"tokens":[]}\n',
      "tokens-damaged",
    ],
    ["the journal of a batch", "vault/gen-1/journal-1", laterJournal, "journal-damaged"],
    ["the audit log", "audit/audit-000001.jsonl", audit(9), "audit-changed"],
  ] as const) {
    it(`doctor names ${what} of a later version and leaves it as it is`, async () => {
      const home = writeHome(frozen ?? { made: "", key: null, versions: false, files: {} });
      const file = join(home, name);
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      writeFileSync(file, bytes, { mode: 0o600 });
      const { code, stdout } = await run(["doctor", "--fix"], { STRONGROOM_HOME: home });
      expect(code, stdout).to.equal(12);
      expect(stdout)
        .to.match(/(?:of|by) a later version/)
        .and.to.contain(says);
      expect(readFileSync(file).equals(Buffer.from(bytes))).to.equal(true);
    });
  }

  it("a batch's journal of a later version stops the start with the file's name", async () => {
    const home = writeHome(frozen ?? { made: "", key: null, versions: false, files: {} });
    writeFileSync(join(home, "vault/gen-1/journal-1"), laterJournal, { mode: 0o600 });
    const failed = await startProcess([], { STRONGROOM_HOME: home }).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(NotStarted);
    expect((failed as NotStarted).ended.stderr).to.match(/journal-1, .* newer version/);
  });
});
