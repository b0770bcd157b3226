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

  type Work = (store: PostgresStore) => Promise<unknown>;

  /** Returns what each work reads after the table grew, on a connection of its own that had planned it before. */
  async function read(works: readonly Work[], count: number): Promise<readonly Figures[]> {
    const name = await cluster().database();
    const target = readConnectionUrl(databaseUrl(cluster().port, name));
    const log = createLog("error", () => {}, Date.now);
    const open = async () => {
      const options = { target, poolSize: 1, log, snapshotsAt: temporaryDirectory(), creates: true };
      const store = await PostgresStore.open(options);
      later(() => store.close().catch(() => {})); // it was closed, unless the test failed
      return store;
    };
    const first = await open();
    await first.startNewVault(bytes("header"));
    await cluster().sql(name, "ALTER TABLE strongroom.secret SET (autovacuum_enabled = false)");
    for (let i = 0; i < 3; i++)
      await first.commit([{ path: `first/${i}`, blob: bytes("a sealed secret, of any kind") }]);
    await cluster().sql(name, "VACUUM ANALYZE");
    const stores = [first, ...(await Promise.all(works.slice(1).map(open)))];
    for (const [n, work] of works.entries()) {
      for (let i = 0; i < 10; i++) await work(stores[n] ?? first); // from the sixth time on, with a plan for all parameters
    }
    await cluster().sql(
      name,
      `INSERT INTO strongroom.secret SELECT 1, 'app/' || i, decode(repeat(md5(i::text), 4), 'hex')
        FROM generate_series(1, ${count}) i ORDER BY md5(i::text); SELECT pg_stat_force_next_flush()`,
    );
    const figures: Figures[] = [];
    for (const [n, work] of works.entries()) {
      const store = stores[n] ?? first;
      const before = await counted(name);
      await work(store);
      await store.close(); // the end of its session makes its counts visible
      const { rows, pages } = await counted(name);
      figures.push({ rows: rows - before.rows, pages: pages - before.pages });
    }
    return figures;
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
  /** `most`: with what other connections read before the table grew, and report late. */
  const works: readonly (readonly [name: string, most: number, work: Work])[] = [
    ["get", 200, (store) => store.read("app/1")],
    ["get of a head", 200, (store) => store.read("app/1", 21)],
    ["put", 200, (store) => store.commit([{ path: "first/0", blob, expected: "present" }])],
    ["page of a list", 2_500, (store) => store.list("", "", 1_000)],
    ["page with a prefix", 2_500, (store) => store.list("app/1", "", 1_000)],
    ["page with metadata", 2_500, (store) => store.listWithHeads("", "", 1_000, 4_096)],
    ["page with a prefix and metadata", 2_500, (store) => store.listWithHeads("app/1", "", 1_000, 4_096)],
    ["delete", 200, (store) => store.commit([{ path: "app/1", blob: null }])], // last, since others read this path
  ];
  const figures = shared(() =>
    read(
      works.map(([, , work]) => work),
      secrets,
    ),
  );
  for (const [n, [name, most]] of works.entries())
    it(`a statement reads at most ${most} of ${secrets} rows: ${name}`, () => {
      expect(figures()[n]?.rows).to.be.within(1, most);
    });

  it("a snapshot reads each page about once, not once for each row", async () => {
    const [found] = await read([(store) => store.snapshot()], 3_000);
    expect(found?.rows).to.be.at.least(3_000);
    expect(found?.pages).to.be.at.most(300);
  });
});
