/** The store contract on a real PostgreSQL; a fault is a connection that breaks before, or in, a message to it. */
import { createLog } from "../../../src/log.js";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.js";
import { later, shared, temporaryDirectory } from "../../support/clean-up.js";
import { faults } from "../../support/failing-files.js";
import { startFragileProxy } from "../../support/fragile-proxy.js";
import { needsPostgres, startPostgres, urlOf } from "../../support/postgres.js";
import type { Engine, Rule } from "../contract-engine.js";
import { rules } from "../store-contract.js";

const silent = createLog("error", () => {}, Date.now);

/** Disks fail in more ways than connections do. */
function isForDatabases({ name }: Rule): boolean {
  return !faults.some((fault) => name.includes(` ${fault} `) && !["EIO", "SHORT"].includes(fault));
}

describe("the store contract in PostgreSQL", () => {
  before(function () {
    needsPostgres(this);
  });
  const database = shared(async () => {
    const cluster = await startPostgres();
    return { cluster, name: await cluster.database(), proxy: await startFragileProxy(cluster.port) };
  });

  async function postgresEngine(): Promise<Engine> {
    const { cluster, name, proxy } = database();
    await cluster.sql(name, "DROP SCHEMA IF EXISTS strongroom CASCADE");
    const snapshotsAt = temporaryDirectory();
    const opened: PostgresStore[] = [];
    const close = async (from: number, count: number) => {
      for (const store of opened.splice(from, Math.max(0, count))) await store.close();
    };
    later(() => close(0, opened.length));
    return {
      failOnce: (k, fault) => proxy.breakAt(k, fault === "SHORT" ? "half" : "before"),
      failFrom: (k) => proxy.breakFrom(k),
      repair: () => proxy.repair(),
      /** The first and the one before stay open: servers share a database. */
      async open() {
        const store = await PostgresStore.open({ url: urlOf(proxy.port, name), poolSize: 4, log: silent, snapshotsAt });
        opened.push(store);
        await close(1, opened.length - 3);
        return store;
      },
    };
  }

  for (const { name, check } of rules.filter(isForDatabases)) it(name, async () => check(await postgresEngine()));
});
