/** Settings that an operator has made for a database, or for all of a cluster: none changes what is stored, read or refused. */
import { expect } from "chai";
import { Client } from "pg";
import { shared } from "../../../tools/rig/clean-up.js";
import { databaseUrl, needsPostgres, startPostgres } from "../../../tools/rig/postgres.js";
import { startTestServer, type TestServer } from "../../../tools/rig/server.js";
import {
  mustGet,
  mustInit,
  mustListPaths,
  mustPut,
  mustRefuse,
  mustSucceed,
  send,
} from "../../../tools/rig/test-client.js";
import { mustRotate, untilRotated } from "../../support/key-requests.js";

const settings = [
  "bytea_output = escape",
  "array_nulls = off",
  "quote_all_identifiers = on",
  "standard_conforming_strings = off",
  "DateStyle = 'SQL, DMY'",
  "TimeZone = 'Asia/Kolkata'",
  "IntervalStyle = sql_standard",
  "transform_null_equals = on",
  "extra_float_digits = -15",
  "default_transaction_isolation = serializable",
  "plpgsql.variable_conflict = use_column",
  "row_security = off",
] as const;

describe("vaults in databases with unusual settings", () => {
  before(function () {
    needsPostgres(this);
  });
  const cluster = shared(startPostgres);

  async function startWith(...wanted: readonly string[]): Promise<{ server: TestServer; url: string }> {
    const name = await cluster().database();
    for (const setting of wanted) await cluster().sql(name, `ALTER DATABASE ${name} SET ${setting}`);
    const url = databaseUrl(cluster().port, name);
    const server = await startTestServer({ store: url });
    await mustInit(server);
    return { server, url };
  }

  for (const half of [0, 1]) {
    const some = settings.filter((_, n) => n % 2 === half);
    it(`a database with ${some[0]} and ${some.length - 1} more settings serves a vault as any other one`, async () => {
      const { server } = await startWith(...some);
      const post = async (path: string, body?: object) =>
        mustSucceed(await send(server, { method: "POST", path, ...(body && { body }) }));
      for (const value of ["one", "two"]) await mustPut(server, "a", value);
      await post("/v1/batch", {
        operations: [
          { put: "b", value: "b" },
          { move: "a", to: "c" },
        ],
      });
      await post("/v1/trash/c");
      await post("/v1/untrash/c");
      expect((await mustGet(server, "c"))["value"]).to.equal("two");
      expect(await mustListPaths(server, "")).to.deep.equal(["b", "c"]);
      expect(await post("/v1/snapshot")).to.include({ secretCount: 2 });
      await mustRotate(server);
      await untilRotated(server);
      expect((await mustGet(server, "c"))["value"]).to.equal("two");
    });
  }

  it("a write refused by a database with Indian times and dates never takes effect later", async () => {
    const { server, url } = await startWith("TimeZone = 'Asia/Kolkata'", "DateStyle = 'SQL, DMY'");
    await mustPut(server, "a", "before");
    const holder = new Client({ connectionString: url });
    await holder.connect();
    await holder.query("BEGIN; SELECT FROM strongroom.secret FOR UPDATE");
    const put = await send(server, { method: "PUT", path: "/v1/secrets/a", body: { value: "late" } });
    mustRefuse(put, 503, "UNAVAILABLE");
    const waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    expect((await holder.query(waiting)).rows).to.deep.equal([]);
    await holder.query("COMMIT");
    await holder.end();
    expect((await mustGet(server, "a"))["value"]).to.equal("before");
  });
});
