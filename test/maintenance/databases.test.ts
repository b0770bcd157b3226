/** Servers and maintenance on a real PostgreSQL: settings, migration, backup, restore and doctor. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { refuseServed } from "../../src/engines/engine.js";
import { databaseEngine } from "../../src/engines/postgres.js";
import { restoreIntoStore } from "../../src/maintenance/backup/restore-backup.js";
import { migrate } from "../../src/maintenance/migrate.js";
import { isUnfinished } from "../../src/storage/unfinished-vault.js";
import { shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { databaseUrl, needsPostgres, startPostgres } from "../../tools/rig/postgres.js";
import type { Ended } from "../../tools/rig/process.js";
import { passphrase, realScryptCost, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  mustCount,
  mustCreateToken,
  mustGet,
  mustInit,
  mustList,
  mustPut,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { bytes } from "../support/bytes.js";
import { run } from "../support/command-here.js";
import { MemoryStore, nothingKept } from "../support/memory-store.js";
import { headerOfVersion1 } from "../vectors/frozen-headers.js";

function passphraseFile(text = passphrase): string {
  const file = join(temporaryDirectory(), "passphrase");
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

function must({ code, stdout, stderr }: Ended): string {
  expect([code, stderr]).to.deep.equal([0, ""]);
  return stdout;
}

describe("vaults in databases", () => {
  before(function () {
    needsPostgres(this);
  });
  const postgres = shared(startPostgres);

  it("a vault in a database is not refused for the connection of a server that has just ended", async () => {
    const { url } = await emptyDatabase();
    const store = await databaseEngine.open(url, null, { creates: true });
    try {
      const other = new Client({ connectionString: url, application_name: "strongroom server" });
      await other.connect();
      expect(await store.shared?.serverConnections()).to.equal(1);
      const judged = refuseServed(store);
      await other.end();
      await judged;
      expect(await store.shared?.serverConnections()).to.equal(0);
    } finally {
      await store.close();
    }
  });

  async function emptyDatabase(): Promise<{ readonly name: string; readonly url: string }> {
    const name = await postgres().database();
    return { name, url: databaseUrl(postgres().port, name) };
  }

  it("a vault in a database is migrated to and back byte for byte, and an interrupted migration continues", async () => {
    const { url } = await emptyDatabase();
    const paths = Array.from({ length: 250 }, (_, i) => `app/${i}`);
    const source = new MemoryStore({
      header: bytes(headerOfVersion1.text),
      blobs: new Map(paths.map((path) => [path, bytes(`sealed secret of ${path}`)])),
      beside: new Map(["trash/app/1", "trash/gone", "keys/signing"].map((key) => [key, bytes(`sealed ${key}`)])),
      documents: new Map([["tokens", bytes("tokens")]]),
      generations: 1,
    });
    const database = await databaseEngine.open(url, null, { creates: true });
    try {
      const checks = { isUsable: async () => true, refuseServed };
      const stopping = new AbortController();
      const stopLate = { tick: (_: string, done: number) => done > 150 && stopping.abort(), signal: stopping.signal };
      const interrupted = await migrate(source, database, checks, stopLate).catch((error: Error) => error);
      expect(String(interrupted)).to.contain("run the same command again");
      expect(isUnfinished((await database.header()) ?? bytes(""))).to.equal(true);
      expect(await database.count()).to.be.within(1, 249);
      const watch = { tick: () => {}, signal: new AbortController().signal };
      const { secrets, copied } = await migrate(source, database, checks, watch);
      expect(secrets).to.equal(250);
      expect(copied).to.be.within(1, 252);
      const back = nothingKept();
      await migrate(database, new MemoryStore(back), checks, watch);
      expect(back).to.deep.equal(source.kept);
    } finally {
      await database.close();
    }
  });

  describe("two servers on one database", () => {
    const served = shared(async () => {
      const { name, url } = await emptyDatabase();
      const first = await startTestServer({ ...realScryptCost, store: url });
      await mustInit(first);
      for (const value of ["old", "s3cr3t"]) await mustPut(first, "app/db/password", value);
      await mustPut(first, "app/key", "k");
      const second = await startTestServer({ ...realScryptCost, store: url });
      await mustUnlock(second);
      return { name, url, first, second };
    });
    const environment = (server: TestServer) => ({ STRONGROOM_HOME: server.home, STRONGROOM_STORE: served().url });

    it("a secret stored by one server is returned by the other one", async () => {
      const { first, second } = served();
      await mustPut(second, "app/new", "from the second");
      expect((await mustGet(first, "app/new"))["value"]).to.equal("from the second");
      await mustPut(first, "app/new", "from the first");
      expect((await mustGet(second, "app/new"))["value"]).to.equal("from the first");
      expect(await mustCount(second)).to.include({ secretCount: 3, vaultPath: servedPath() });
    });

    it("a client token is known to both servers, from its creation to its revocation", async () => {
      const { first, second } = served();
      const { token } = await mustCreateToken(first, { name: "both", paths: ["app/"] });
      const get = (server: TestServer, text = token) => send(server, { path: "/v1/secrets/app%2Fkey", token: text });
      expect((await get(second)).status).to.equal(200);
      const rotated = await send(second, { method: "POST", path: "/v1/tokens/both", body: { overlapSeconds: 0 } });
      const ended = await get(first);
      expect([ended.status, ended.json["reason"]]).to.deep.equal([401, "rotated"]);
      const renewed = String(rotated.json["token"]);
      expect((await get(first, renewed)).status).to.equal(200);
      expect((await send(first, { path: "/v1/tokens" })).json["tokens"]).to.have.length(1);
      expect((await send(first, { method: "DELETE", path: "/v1/tokens/both" })).status).to.equal(200);
      const revoked = await get(second, renewed);
      expect([revoked.status, revoked.json["reason"]]).to.deep.equal([401, "revoked"]);
      expect((await send(second, { path: "/v1/tokens" })).json["tokens"]).to.have.length(0);
    });

    it("a server writes neither URL nor user into the log, and only host and database into the status", async () => {
      const { url, first } = served();
      expect(first.vaultPath).to.equal(servedPath());
      for (const part of [url, "strongroom@"]) expect(first.logged()).not.to.contain(part);
    });

    it("a backup by a server or without one is restored into an empty database", async () => {
      const { first, second } = served();
      const files = ["served.tar", "unserved.tar"].map((name) => join(temporaryDirectory(), name));
      const [byServer = "", without = ""] = files;
      must(await run(["backup", byServer], environment(first)));
      const home = join(temporaryDirectory(), "home");
      must(await run(["backup", without], { ...environment(first), STRONGROOM_HOME: home }));
      const { url } = await emptyDatabase();
      await interruptedRestore(byServer, url);
      const dryRun = await run(["restore", byServer, "--dry-run", "--store", url, "--home", home]);
      expect(must(dryRun)).to.contain("nothing was written");
      must(await run(["restore", byServer, "--store", url, "--home", home]));
      expect((await run(["restore", without, "--store", url, "--home", home])).code).to.equal(7);
      const restored = await startTestServer({ store: url });
      await mustUnlock(restored);
      expect(await mustList(restored)).to.deep.equal(await mustList(second));
      expect((await mustGet(restored, "app/db/password"))["value"]).to.equal("s3cr3t");
      const version = await send(restored, { path: "/v1/versions/app%2Fdb%2Fpassword?version=1" });
      expect(version.json["value"]).to.equal("old");
      await restored.stop();
    });

    /** It ends after the archive was verified, when secrets are being written. */
    async function interruptedRestore(file: string, url: string): Promise<void> {
      const store = await databaseEngine.open(url, null, { creates: true });
      try {
        const stopping = new AbortController();
        let furthest = 0;
        const tick = (_: string, done: number) => {
          if (done < furthest) stopping.abort();
          furthest = done;
        };
        const watch = { tick, signal: stopping.signal };
        const ended = await restoreIntoStore(file, store, async () => true, watch).catch((error: Error) => error);
        expect(String(ended)).to.contain("interrupted: run the same command again to continue");
        expect(isUnfinished((await store.header()) ?? bytes(""))).to.equal(true);
      } finally {
        await store.close();
      }
    }

    it("a migration of a served database exits 1 and writes nothing", async () => {
      const to = join(temporaryDirectory(), "home");
      const { code, stderr } = await run(["migrate", "--from", served().url, "--to", to]);
      expect([code, stderr]).to.deep.equal([
        1,
        `strongroom: servers are connected to ${servedPath()}: stop all of them, then run the command again\n`,
      ]);
    });

    it("a second server on one home is refused with the first one's pid", async () => {
      const { first, url } = served();
      const refused = await startTestServer({ home: first.home, store: url }).catch((error: Error) => error.message);
      expect(refused).to.match(/another server \(pid \d+\) already serves/);
    });

    it("audit verify --open checks a server's log with the header in the database", async () => {
      const { first, url } = served();
      const verify = (...flags: string[]) => run(["audit", "verify", ...flags], { STRONGROOM_HOME: first.home });
      const open = ["--passphrase-file", passphraseFile()];
      const { ok, covered } = JSON.parse(must(await verify(...open, "--json", "--store", url)));
      expect(ok).to.equal(true);
      expect(covered).to.be.above(0);
      const empty = await emptyDatabase();
      const outcomes = [
        await verify(...open), // the home's files have no vault
        await verify(...open, "--store", empty.url),
        await verify("--passphrase-file", passphraseFile("wrong"), "--store", url),
        await verify("--store", url),
      ];
      expect(outcomes.map(({ code }) => code)).to.deep.equal([8, 8, 9, 2]);
    });

    it("doctor of a server's home without a vault of its own names the database", async () => {
      const { first } = served();
      const doctor = (...flags: string[]) => run(["doctor", "--home", first.home, ...flags]);
      const text = must(await doctor());
      expect(text).to.contain(`its server keeps the vault in ${servedPath()}, 3 secrets\n`);
      expect(text).to.contain(
        `no problems found in the home; check the database with  strongroom --home ${first.home} doctor --store URL\n`,
      );
      const found = JSON.parse(must(await doctor("--json")));
      const vault = { vaultPath: servedPath(), initialized: true, secrets: 3, problem: null };
      expect(found).to.deep.include({ ok: true, vault: null, served: vault, findings: [] });
    });

    it("doctor finds nothing in a sound database, then each change made by hand", async () => {
      const { first, name } = served();
      const doctor = async () => run(["doctor", "--json", "--passphrase-file", passphraseFile()], environment(first));
      const sound = JSON.parse(must(await doctor()));
      expect(sound).to.include({ ok: true, secrets: 3, opened: true, vault: servedPath() });
      await postgres().sql(
        name,
        `UPDATE strongroom.secret SET blob = substring(blob FROM 1 FOR 40) WHERE path = 'app/new';
         UPDATE strongroom.secret SET blob = (SELECT blob FROM strongroom.secret WHERE path = 'app/key')
           WHERE path = 'app/db/password';
         INSERT INTO strongroom.secret SELECT vault, '../odd', blob FROM strongroom.secret WHERE path = 'app/key';
         UPDATE strongroom.document SET bytes = '{}'`,
      );
      const { code, stdout } = await doctor();
      expect(code).to.equal(12);
      const codes = (JSON.parse(stdout).findings as { code: string }[]).map((finding) => finding.code);
      expect(codes).to.have.members([
        "blob-damaged",
        "secret-damaged",
        "forbidden-path",
        "tokens-damaged",
        "count-wrong",
      ]);
    });

    function servedPath(): string {
      return `postgres://127.0.0.1:${postgres().port}/${served().name}`;
    }
  });

  it("a vault in a database is not migrated to itself under another name of its host", async () => {
    const cluster = await startPostgres();
    const store = databaseUrl(cluster.port, await cluster.database());
    const server = await startTestServer({ ...realScryptCost, store });
    await mustInit(server);
    await server.stop();
    const other = store.replace("127.0.0.1", "localhost");
    const { code, stderr } = await run(["migrate", "--from", store, "--to", other]);
    expect(code).not.to.equal(0);
    expect(stderr).to.match(/ and postgres:.* are the same database: choose another target/);
  });

  it("doctor and status of a server's home report a database that does not respond", async () => {
    const cluster = await startPostgres();
    const store = databaseUrl(cluster.port, await cluster.database());
    const server = await startTestServer({ ...realScryptCost, store });
    await mustInit(server);
    await cluster.kill();
    const problem = "the database does not answer or refuses: try again, and check the server's log and the database";
    const doctor = await run(["doctor", "--home", server.home]);
    expect(doctor.code).to.equal(1);
    expect(doctor.stdout).to.contain(`the server cannot use the database: ${problem}\n`);
    const status = await run(["status", "--home", server.home]);
    expect(status.code).to.equal(1);
    expect(status.stdout).to.contain(`the storage does not respond: ${problem}\n`);
  });

  describe("an empty database", () => {
    const backedUp = shared(async () => {
      const source = await startTestServer(realScryptCost);
      await mustInit(source);
      const file = join(temporaryDirectory(), "backup.tar");
      must(await run(["backup", file], { STRONGROOM_HOME: source.home }));
      return file;
    });

    const commands: readonly (readonly [line: string, code: number, says: RegExp])[] = [
      ["doctor --store URL --home HOME", 8, /there is no vault in postgres:/],
      ["restore FILE --dry-run --store URL --home HOME", 0, /0 secrets could be restored into postgres:/],
      ["migrate --from URL --to HOME", 8, /there is no vault in .*: nothing to migrate/],
      ["backup HOME.tar --store URL --home HOME", 8, /there is no vault in .*: nothing to save/],
    ];
    for (const [line, code, says] of commands) {
      it(`an empty database stays without tables after ${line}`, async () => {
        const { name, url } = await emptyDatabase();
        const home = join(temporaryDirectory(), "home");
        const given = line.replaceAll("URL", url).replaceAll("HOME", home).replace("FILE", backedUp());
        const ended = await run(given.split(" "));
        expect(ended.stdout + ended.stderr).to.match(says);
        expect(ended.code).to.equal(code);
        expect(await hasTables(name)).to.equal(false);
        expect(existsSync(home)).to.equal(line.startsWith("backup"));
      });
    }

    it("doctor --fix gives an empty database its tables", async () => {
      const { name, url } = await emptyDatabase();
      const made = await doctor(url, "--fix");
      expect(made).to.include({ code: 8, stderr: "" });
      expect(made.stdout).to.match(/the tables in postgres:.* are ready: start a server/);
      expect(await hasTables(name)).to.equal(true);
    });

    it("doctor refuses a database with tables of an earlier version", async () => {
      const { name, url } = await emptyDatabase();
      await (await databaseEngine.open(url, null, { creates: true })).close();
      await postgres().sql(name, "UPDATE strongroom.schema_version SET version = version - 1");
      const home = temporaryDirectory();
      const { code, stderr } = await run(["doctor", "--store", url, "--home", home]);
      expect([code, stderr]).to.deep.equal([
        1,
        "strongroom: the database belongs to an earlier strongroom: start a server of this version on it, " +
          `or run strongroom --home ${home} doctor --fix\n`,
      ]);
    });

    function doctor(url: string, ...flags: readonly string[]) {
      return run(["doctor", "--store", url, "--home", temporaryDirectory(), ...flags]);
    }

    async function hasTables(name: string): Promise<unknown> {
      const [row] = await postgres().sql(name, "SELECT to_regnamespace('strongroom') IS NOT NULL AS found");
      return row?.["found"];
    }
  });

  it("a vault in a database refuses a start on a migration that has not ended, and doctor says so", async () => {
    const { url } = await emptyDatabase();
    const database = await databaseEngine.open(url, null, { creates: true });
    await database.startNewVault(bytes('{"format":"strongroom unfinished vault","source":"x"}\n'));
    await database.close();
    const message = await startTestServer({ store: url }).catch((error: Error) => error.message);
    expect(message).to.contain("holds an unfinished migration or restore: run the same command again");
    const { stdout } = await run(["doctor", "--store", url, "--home", temporaryDirectory()]);
    expect(stdout).to.contain("has not ended: it cannot be used yet (header-damaged)");
  });
});
