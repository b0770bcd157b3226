/** A database that becomes unfit while a server runs: requests, status and log say why, until it is fit again. */
import { rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { systemClock } from "../../../src/clock.js";
import { databaseEngine } from "../../../src/engines/postgres.js";
import { shared, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { databaseUrl, needsPostgres, startPostgres } from "../../../tools/rig/postgres.js";
import { startTestServer, type TestServer } from "../../../tools/rig/server.js";
import { type Json, mustGet, mustInit, mustPut, mustRefuse, mustStatus, send } from "../../../tools/rig/test-client.js";

async function untilStatus(server: TestServer, isAsWanted: (status: Json) => boolean): Promise<Json> {
  for (;;) {
    const status = await mustStatus(server);
    if (isAsWanted(status)) return status;
    await sleep(50);
  }
}

describe("databases that become unfit while a server runs", () => {
  before(function () {
    needsPostgres(this);
  });
  const cluster = shared(startPostgres);
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };

  const rows = [
    {
      what: "that loses secrets in a crash",
      begin: () => cluster().start(["fsync=off"]),
      end: () => cluster().start(),
      reason: "the database runs with fsync=off and may lose secrets: set fsync=on",
    },
    {
      what: "whose clock differs by more than an hour",
      begin: () => {
        aheadMs = 2 * 3_600_000;
        return cluster().start();
      },
      end: () => {
        aheadMs = 0;
        return cluster().start();
      },
      reason: "clock skew with the database exceeds one hour: synchronize the clocks",
    },
  ] as const;

  for (const { what, begin, end, reason } of rows) {
    it(`a database ${what} refuses every request with the reason, which status and log show once`, async () => {
      const store = databaseUrl(cluster().port, await cluster().database());
      const server = await startTestServer({ store, clock, idleTimeoutMs: 0 });
      await mustInit(server);
      await mustPut(server, "a", "v");
      await cluster().kill();
      await begin();
      const status = await untilStatus(server, (each) => String(each["storageProblem"]).includes(reason));
      expect(status).to.include({ storageAvailable: false, storageProblem: reason });
      const get = await send(server, { path: "/v1/secrets/a" });
      mustRefuse(get, 503, "UNAVAILABLE");
      expect(get.json["error"]).to.equal(reason);
      const logged = server.logged().split('"event":"database-unusable"');
      expect(logged).to.have.length(2);
      expect(logged[1]).to.contain(reason);
      await cluster().kill();
      await end();
      const after = await untilStatus(server, (each) => each["storageAvailable"] !== false);
      expect(after).not.to.have.property("storageProblem");
      expect((await mustGet(server, "a"))["value"]).to.equal("v");
      await server.stop();
    });
  }

  it("a new password in the password file takes effect without a restart", async () => {
    const [hba, file] = [fileWith("host all keeper all scram-sha-256\nhost all all all trust\n"), fileWith("first")];
    for (const path of [hba, dirname(hba)]) cluster().give(path);
    await cluster().kill();
    await cluster().start([`hba_file=${hba}`]);
    const name = await cluster().database();
    const sql = (text: string) => cluster().sql(name, text);
    await sql(`CREATE ROLE keeper LOGIN PASSWORD 'first'; ALTER DATABASE ${name} OWNER TO keeper`);
    const store = databaseUrl(cluster().port, name).replace("strongroom", "keeper");
    const server = await startTestServer({ store, storePasswordFile: file });
    await mustInit(server);
    await mustPut(server, "a", "v");
    await sql("ALTER ROLE keeper PASSWORD 'second'");
    await sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keeper'");
    const refused = await send(server, { path: "/v1/secrets/a" });
    mustRefuse(refused, 503, "UNAVAILABLE");
    expect(refused.json["error"]).to.match(
      /\(28P01\): the password is wrong or has expired: correct the password file$/,
    );
    writeFileSync(file, "second");
    expect((await mustGet(server, "a"))["value"]).to.equal("v");
    rmSync(file);
    await sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keeper'");
    expect((await mustGet(server, "a"))["value"]).to.equal("v");
  });

  describe("refusals of the database", () => {
    const server = shared(async () => {
      const name = await cluster().database();
      await (await databaseEngine.open(databaseUrl(cluster().port, name), null, { creates: true })).close();
      const rights = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA strongroom";
      const granted = `GRANT USAGE ON SCHEMA strongroom TO server; GRANT ${rights} TO server`;
      await cluster().sql(name, `CREATE ROLE server LOGIN; ${granted}`);
      const started = await startTestServer({
        store: databaseUrl(cluster().port, name).replace("strongroom", "server"),
      });
      await mustInit(started);
      await mustPut(started, "a", "v");
      return { ...started, name };
    });
    const left = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'server'";
    const readOnly = "default_transaction_read_only";

    /** `edit` in the vault's database or, where that is named DB, in another one. */
    // biome-ignore format: the formatter would give each member a line of its own
    const refusals: readonly (readonly [what: string, edit: string, undo: string, error: RegExp])[] = [
      ["read-only by a setting", `ALTER DATABASE DB SET ${readOnly} = on; ${left}`, `ALTER DATABASE DB RESET ${readOnly}`, /\(25006\): it is read-only: connect to the primary, or reset default_transaction_read_only$/],
      ["without a right that the user had", "REVOKE SELECT ON strongroom.secret FROM server", "GRANT SELECT ON strongroom.secret TO server", /\(42501\): the user's rights do not suffice: .* and grant what/],
      ["without its tables", "ALTER SCHEMA strongroom RENAME TO elsewhere", "ALTER SCHEMA elsewhere RENAME TO strongroom", /\(42P01\): its tables were changed by hand: /],
      ["with too many connections", `ALTER ROLE server CONNECTION LIMIT 0; ${left}`, "ALTER ROLE server CONNECTION LIMIT -1", /\(53300\): it has too many connections: /],
      ["under another name", `${left}; ALTER DATABASE DB RENAME TO elsewhere`, "ALTER DATABASE elsewhere RENAME TO DB", /\(3D000\): there is no such database: /],
      ["closed to new connections", `ALTER DATABASE DB ALLOW_CONNECTIONS false; ${left}`, "ALTER DATABASE DB ALLOW_CONNECTIONS true", /\(55000\): it accepts no connections: /],
    ];

    async function sql(statements: string): Promise<void> {
      const { name } = server();
      const from = statements.includes("DB") || statements.includes("ROLE") ? "postgres" : name;
      for (const statement of statements.replaceAll("DB", name).split("; ")) await cluster().sql(from, statement);
    }

    for (const [what, edit, undo, error] of refusals) {
      it(`a put is refused with the reason when the database is ${what}`, async () => {
        await sql(edit);
        const refused = await send(server(), { method: "PUT", path: "/v1/secrets/a", body: { value: "w" } });
        await sql(undo);
        mustRefuse(refused, 503, "UNAVAILABLE");
        expect(refused.json["error"]).to.match(error);
        await mustPut(server(), "a", "v");
      });
    }
  });
});

function fileWith(text: string): string {
  const file = join(temporaryDirectory(), "file");
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}
