/** Servers in the tests' own process that share one database, through a proxy that can break. */
import { randomBytes } from "node:crypto";
import { type FragileProxy, startFragileProxy } from "./fragile-proxy.js";
import { startPostgres, type TestPostgres, urlOf } from "./postgres.js";
import { startTestServer, type TestOptions, type TestServer } from "./server.js";

export type SharedDatabase = {
  readonly cluster: TestPostgres;
  readonly name: string;
  readonly proxy: FragileProxy;
};

export async function startSharedDatabase(): Promise<SharedDatabase> {
  const cluster = await startPostgres();
  return { cluster, name: await cluster.database(), proxy: await startFragileProxy(cluster.port) };
}

/** Empties the database, and starts so many servers on it, all with the same token. */
export async function startSharedServers(
  { cluster, name, proxy }: SharedDatabase,
  count: number,
  options: TestOptions = {},
): Promise<[TestServer, TestServer, ...TestServer[]]> {
  await cluster.sql(name, "DROP SCHEMA IF EXISTS strongroom CASCADE");
  const token = randomBytes(24).toString("hex");
  const start = () => startTestServer({ store: urlOf(proxy.port, name), token, ...options });
  const [first, second, ...others] = await Promise.all(Array.from({ length: count }, start));
  if (first === undefined || second === undefined) throw new Error("one server shares nothing");
  return [first, second, ...others];
}
