/** Servers in the tests' own process that share one database, through a proxy that can break. */
import { randomBytes } from "node:crypto";
import { databaseUrl, startPostgres, type TestPostgres } from "../../tools/rig/postgres.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { type FragileProxy, startFragileProxy } from "./fragile-proxy.js";

export type SharedDatabase = {
  readonly cluster: TestPostgres;
  readonly name: string;
  readonly proxy: FragileProxy;
};

export type SharedServers = [TestServer, ...TestServer[]];

export async function startSharedDatabase(): Promise<SharedDatabase> {
  const cluster = await startPostgres();
  return { cluster, name: await cluster.database(), proxy: await startFragileProxy(cluster.port) };
}

/** Returns the setting of a server that uses it. */
export function sharedStoreUrl({ name, proxy }: SharedDatabase): string {
  return databaseUrl(proxy.port, name);
}

/** Empties the database, and starts so many servers on it, all with the same token. */
export async function startSharedServers(database: SharedDatabase, count: number): Promise<SharedServers> {
  const { cluster, name } = database;
  await cluster.sql(name, "DROP SCHEMA IF EXISTS strongroom CASCADE");
  const token = randomBytes(24).toString("hex");
  const start = () => startTestServer({ store: sharedStoreUrl(database), token });
  const [first, ...others] = await Promise.all(Array.from({ length: count }, start));
  if (first === undefined) throw new Error("no server was asked for");
  return [first, ...others];
}

const tables = ["vault", "current", "secret", "secret_count", "document"];

/** Keeps a copy of all tables in the same database. */
export async function keepCopy({ cluster, name }: SharedDatabase): Promise<void> {
  const copies = tables.map((table) => `CREATE TABLE copy.${table} AS SELECT * FROM strongroom.${table}`);
  await cluster.sql(name, ["DROP SCHEMA IF EXISTS copy CASCADE", "CREATE SCHEMA copy", ...copies].join(";"));
}

/** Restores the copy and ends all connections, as a failover to a database that lacks the last commits. */
export async function goBackToCopy({ cluster, name, proxy }: SharedDatabase): Promise<void> {
  const emptied = `TRUNCATE ${tables.map((table) => `strongroom.${table}`).join()}`;
  const filled = tables.map((table) => `INSERT INTO strongroom.${table} SELECT * FROM copy.${table}`);
  await cluster.sql(name, ["BEGIN", emptied, ...filled, "COMMIT"].join(";"));
  proxy.cut();
}
