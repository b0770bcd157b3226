/** Deleted secrets and transit keys through backup, restore, migration, forced init, a change of the passphrase, and doctor. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { databaseUrl, needsPostgres, startPostgres } from "../../tools/rig/postgres.js";
import type { Ended } from "../../tools/rig/process.js";
import { passphrase, realScryptCost, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  type Json,
  mustGet,
  mustInit,
  mustPut,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";
import { changing } from "../support/key-requests.js";

const plaintext = Buffer.from("kept").toString("base64");
const key = "/v1/transit/keys/app/key";
const encryption = "/v1/transit/encrypt/app/key";

async function must(server: TestServer, request: Send): Promise<Json> {
  return mustSucceed(await send(server, request));
}

function succeeded({ code, stdout, stderr }: Ended): string {
  expect(code, stdout + stderr).to.equal(0);
  return stdout;
}

/** Returns a ciphertext of the key. */
async function fill(server: TestServer): Promise<string> {
  await mustInit(server);
  for (const value of ["one", "two"]) await mustPut(server, "app/gone", { value, description: "d" });
  await must(server, { method: "DELETE", path: "/v1/versions/app/gone?version=1" });
  await must(server, { method: "POST", path: "/v1/trash/app/gone" });
  await mustPut(server, "app/gone", "again");
  await must(server, { method: "POST", path: key });
  return String((await must(server, { method: "POST", path: encryption, body: { plaintext } }))["ciphertext"]);
}

async function mustHaveAll(server: TestServer, ciphertext: string, text = passphrase): Promise<void> {
  await mustUnlock(server, text);
  const decrypted = await must(server, { method: "POST", path: "/v1/transit/decrypt/app/key", body: { ciphertext } });
  expect(decrypted["plaintext"]).to.equal(plaintext);
  expect((await mustGet(server, "app/gone"))["value"]).to.equal("again");
  await must(server, { method: "DELETE", path: "/v1/secrets/app/gone" });
  await must(server, { method: "POST", path: "/v1/untrash/app/gone" });
  expect(await mustGet(server, "app/gone")).to.include({ value: "two", version: 2 });
  const { versions } = await must(server, { path: "/v1/versions/app/gone" });
  expect((versions as Json[])[1]).to.include({ version: 1, destroyed: true });
}

function passphraseFile(): string {
  const file = join(temporaryDirectory(), "passphrase");
  writeFileSync(file, passphrase, { mode: 0o600 });
  return file;
}

describe("deleted secrets and transit keys in files", () => {
  const newHome = () => join(temporaryDirectory(), "home");

  async function startFilled() {
    const server = await startTestServer(realScryptCost);
    return { server, ciphertext: await fill(server) };
  }

  it("deleted secrets and transit keys are in a backup, and in the restored vault", async () => {
    const { server, ciphertext } = await startFilled();
    const [archive, home] = [join(temporaryDirectory(), "backup.tar"), newHome()];
    succeeded(await run(["backup", archive], { STRONGROOM_HOME: server.home }));
    succeeded(await run(["restore", archive, "--home", home]));
    await mustHaveAll(await startTestServer({ ...realScryptCost, home }), ciphertext);
  });

  it("doctor finds deleted secrets and transit keys sound, and names damaged ones", async () => {
    const { server } = await startFilled();
    await server.stop();
    const open = ["doctor", "--json", "--home", server.home, "--passphrase-file", passphraseFile()];
    expect(JSON.parse(succeeded(await run(open)))).to.include({ ok: true, secrets: 1 });
    for (const [file, at, code] of [
      ["trash/app/gone.sealed", 0, "blob-damaged"],
      ["trash/app/gone.sealed", -1, "secret-damaged"],
      ["keys/app/key.sealed", 0, "blob-damaged"],
      ["keys/app/key.sealed", -1, "secret-damaged"],
    ] as const) {
      const path = join(server.home, "vault", "gen-1", file);
      const sound = readFileSync(path);
      const bytes = Buffer.from(sound);
      bytes.writeUInt8((bytes.at(at) ?? 0) ^ 1, (bytes.length + at) % bytes.length);
      writeFileSync(path, bytes);
      const { code: exit, stdout } = await run(open);
      const { findings } = JSON.parse(stdout) as { findings: Json[] };
      expect([exit, ...findings.map((finding) => [finding["code"], finding["path"]])]).to.deep.equal([
        12,
        [code, path],
      ]);
      writeFileSync(path, sound);
    }
  });

  it("deleted secrets and transit keys stay with the vault that a forced init replaces", async () => {
    const { server } = await startFilled();
    await mustInit(server, { passphrase, force: true });
    expect((await must(server, { path: "/v1/trash" }))["entries"]).to.deep.equal([]);
    expect((await must(server, { path: "/v1/transit/keys" }))["keys"]).to.deep.equal([]);
    for (const file of ["trash/app/gone.sealed", "keys/app/key.sealed"])
      expect(readFileSync(join(server.home, "vault", "gen-1", file)).length).to.be.above(0);
  });

  it("deleted secrets and transit keys open after a change of the passphrase and a restart", async () => {
    const { server, ciphertext } = await startFilled();
    await must(server, changing(passphrase, "another passphrase"));
    await server.stop();
    await mustHaveAll(
      await startTestServer({ ...realScryptCost, home: server.home }),
      ciphertext,
      "another passphrase",
    );
  });
});

describe("deleted secrets and transit keys in PostgreSQL", () => {
  before(function () {
    needsPostgres(this);
  });
  const postgres = shared(startPostgres);
  const newDatabase = async () => databaseUrl(postgres().port, await postgres().database());

  it("deleted secrets and transit keys are migrated, backed up, restored and checked with their database", async () => {
    const server = await startTestServer(realScryptCost);
    const ciphertext = await fill(server);
    await server.stop();
    const [url, another, home] = [await newDatabase(), await newDatabase(), join(temporaryDirectory(), "home")];
    succeeded(await run(["migrate", "--from", server.home, "--to", url]));
    const archive = join(temporaryDirectory(), "backup.tar");
    const environment = { STRONGROOM_HOME: temporaryDirectory(), STRONGROOM_STORE: url };
    succeeded(await run(["backup", archive], environment));
    succeeded(await run(["doctor", "--passphrase-file", passphraseFile()], environment));
    succeeded(await run(["restore", archive, "--store", another, "--home", temporaryDirectory()]));
    succeeded(await run(["migrate", "--from", another, "--to", home]));
    await mustHaveAll(await startTestServer({ ...realScryptCost, home }), ciphertext);
    await mustHaveAll(await startTestServer({ ...realScryptCost, store: url }), ciphertext);
  });

  it("deleted secrets and transit keys in a database stay with the vault that a forced init replaces", async () => {
    const server = await startTestServer({ ...realScryptCost, store: await newDatabase() });
    await fill(server);
    await mustInit(server, { passphrase, force: true });
    expect((await must(server, { path: "/v1/trash" }))["entries"]).to.deep.equal([]);
    expect((await must(server, { path: "/v1/transit/keys" }))["keys"]).to.deep.equal([]);
  });
});
