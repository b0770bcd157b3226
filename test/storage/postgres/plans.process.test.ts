/** Plans of the statements on a table that grew after the database last analyzed it: the number of rows that each reads. */
import { expect } from "chai";
import { createLog } from "../../../src/log.js";
import { readConnectionUrl } from "../../../src/storage/postgres/connection-url.js";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.js";
import { later, shared } from "../../support/clean-up.js";
import { needsPostgres, startPostgres, urlOf } from "../../support/postgres.js";
import { bytes } from "../contract-engine.js";

const secrets = 20_000;

describe("a statement on a table that has just grown", () => {
  before(function () {
    needsPostgres(this);
  });
  const cluster = shared(startPostgres);

  /** Returns the number of rows that the work reads after the table grew, on a connection that had planned it before. */
  async function rowsRead(work: (store: PostgresStore) => Promise<unknown>): Promise<number> {
    const name = await cluster().database();
    const target = readConnectionUrl(urlOf(cluster().port, name));
    const log = createLog("error", () => {}, Date.now);
    const store = await PostgresStore.open({ target, poolSize: 1, log, snapshotsAt: null, creates: true });
    later(() => store.close().catch(() => {})); // it was closed, unless the test failed
    await store.startNewVault(bytes("header"));
    await cluster().sql(name, "ALTER TABLE strongroom.secret SET (autovacuum_enabled = false)");
    for (let i = 0; i < 3; i++)
      await store.commit([{ path: `first/${i}`, blob: bytes("a sealed secret, of any kind") }]);
    await cluster().sql(name, "VACUUM ANALYZE");
    for (let i = 0; i < 10; i++) await work(store); // from the sixth time on, with a plan for all parameters
    await cluster().sql(
      name,
      `INSERT INTO strongroom.secret SELECT 1, 'app/' || i, decode(repeat(md5(i::text), 4), 'hex')
        FROM generate_series(1, ${secrets}) i ORDER BY md5(i::text); SELECT pg_stat_force_next_flush()`,
    );
    const before = await counted(name);
    await work(store);
    await store.close(); // the end of its session makes its counts visible
    return (await counted(name)) - before;
  }

  async function counted(name: string): Promise<number> {
    const [row] = await cluster().sql(
      name,
      "SELECT (seq_tup_read + idx_tup_fetch)::integer AS rows FROM pg_stat_user_tables WHERE relname = 'secret'",
    );
    return Number(row?.["rows"]);
  }

  const blob = bytes("another sealed secret, of any kind");
  const works: readonly (readonly [name: string, most: number, work: (store: PostgresStore) => Promise<unknown>])[] = [
    ["get", 100, (store) => store.read("app/1")],
    ["get of a head", 100, (store) => store.read("app/1", 21)],
    ["put", 100, (store) => store.commit([{ path: "first/0", blob, expected: "present" }])],
    ["delete", 100, (store) => store.commit([{ path: "app/1", blob: null }])],
    ["page of a list", 2_500, (store) => store.list("", "", 1_000)],
    ["page with a prefix", 2_500, (store) => store.list("app/1", "", 1_000)],
    ["page with metadata", 2_500, (store) => store.listWithHeads("", "", 1_000, 4_096)],
    ["page with a prefix and metadata", 2_500, (store) => store.listWithHeads("app/1", "", 1_000, 4_096)],
  ];
  for (const [name, most, work] of works)
    it(`reads at most ${most} of ${secrets} rows: ${name}`, async () => {
      expect(await rowsRead(work)).to.be.at.most(most);
    });
});
