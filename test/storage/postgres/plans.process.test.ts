/** Plans of the statements on a table that grew after the database last analyzed it: the rows and pages that each reads. */
import { expect } from "chai";
import { createLog } from "../../../src/log.js";
import { readConnectionUrl } from "../../../src/storage/postgres/connection-url.js";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.js";
import { later, shared, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { databaseUrl, needsPostgres, startPostgres } from "../../../tools/rig/postgres.js";
import { bytes } from "../../support/bytes.js";

const secrets = 20_000;

type Figures = { readonly rows: number; readonly pages: number };

describe("a statement on a table that has just grown", () => {
  before(function () {
    needsPostgres(this);
  });
  const cluster = shared(startPostgres);

  /** Returns what the work reads after the table grew, on a connection that had planned it before. */
  async function read(work: (store: PostgresStore) => Promise<unknown>, count = secrets): Promise<Figures> {
    const name = await cluster().database();
    const target = readConnectionUrl(databaseUrl(cluster().port, name));
    const log = createLog("error", () => {}, Date.now);
    const store = await PostgresStore.open({
      target,
      poolSize: 1,
      log,
      snapshotsAt: temporaryDirectory(),
      creates: true,
    });
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
        FROM generate_series(1, ${count}) i ORDER BY md5(i::text); SELECT pg_stat_force_next_flush()`,
    );
    const before = await counted(name);
    await work(store);
    await store.close(); // the end of its session makes its counts visible
    const { rows, pages } = await counted(name);
    return { rows: rows - before.rows, pages: pages - before.pages };
  }

  async function counted(name: string): Promise<Figures> {
    const [row] = await cluster().sql(
      name,
      `SELECT seq_tup_read + idx_tup_fetch AS rows, heap_blks_read + heap_blks_hit AS pages
        FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid) WHERE relid = 'strongroom.secret'::regclass`,
    );
    return { rows: Number(row?.["rows"]), pages: Number(row?.["pages"]) };
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
    it(`a statement reads at most ${most} of ${secrets} rows: ${name}`, async () => {
      expect((await read(work)).rows).to.be.at.most(most);
    });

  it("a snapshot reads each page about once, not once for each row", async () => {
    const { rows, pages } = await read((store) => store.snapshot(), 3_000);
    expect(rows).to.be.at.least(3_000);
    expect(pages).to.be.at.most(300);
  });
});
