/** Start of the servers that Strongroom is compared with: on its certificate and a free loopback port. */
import { readFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

/** Serves over HTTPS as Strongroom does, and sends the port to the benchmark. */
export function listen(handle: RequestListener): void {
  const [cert, key] = [mustHave("BENCH_CERT"), mustHave("BENCH_KEY")].map((file) => readFileSync(file));
  const server = createServer({ cert, key, minVersion: "TLSv1.2", keepAliveTimeout: 30_000 }, handle);
  server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
}

export function mustHave(variable: string): string {
  const value = process.env[variable];
  if (value === undefined) throw new Error(`${variable} is not set: this program is started by the benchmark`);
  return value;
}
