/** A connection to the database that is slow: what takes long is not taken for a database that does not answer. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect } from "chai";
import { createLog } from "../../../src/log.js";
import { readConnectionUrl } from "../../../src/storage/postgres/connection-url.js";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.js";
import { later, shared, temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { databaseUrl, needsPostgres, startPostgres } from "../../../tools/rig/postgres.js";
import { bytes } from "../../support/bytes.js";

/** Starts a proxy that passes on so many bytes of the database's in a millisecond; returns its port. */
async function startSlowProxy(to: number, bytesPerMs: number): Promise<number> {
  const proxy = createServer((client) => {
    const server = connect(to, "127.0.0.1");
    client.on("error", () => {}).on("close", () => server.destroy());
    server.on("error", () => {}).on("close", () => client.destroy());
    client.pipe(server);
    server.on("data", (chunk) => {
      server.pause();
      client.write(chunk);
      setTimeout(() => server.resume(), chunk.length / bytesPerMs);
    });
  }).listen(0, "127.0.0.1");
  later(() => void proxy.close());
  await once(proxy, "listening");
  return (proxy.address() as AddressInfo).port;
}

describe("snapshots over a slow connection", function () {
  this.timeout(120_000);
  before(function () {
    needsPostgres(this);
  });
  const cluster = shared(startPostgres);

  for (const [what, count, size] of [
    ["many large secrets", 64, 900_000],
    ["one very large secret", 1, 60_000_000],
  ] as const) {
    it(`a snapshot of ${what} over 120 Mbit/s is complete`, async () => {
      const name = await cluster().database();
      const port = await startSlowProxy(cluster().port, 15_000);
      const target = readConnectionUrl(databaseUrl(port, name));
      const log = createLog("error", () => {}, Date.now);
      const options = { target, poolSize: 2, log, snapshotsAt: temporaryDirectory(), creates: true };
      const store = await PostgresStore.open(options);
      later(() => store.close());
      await store.startNewVault(bytes("header"));
      await cluster().sql(
        name,
        `INSERT INTO strongroom.secret SELECT 1, 'a/' || i, decode(repeat('00', ${size}), 'hex') FROM generate_series(1, ${count}) i`,
      );
      expect((await store.snapshot()).count).to.equal(count);
    });
  }
});
