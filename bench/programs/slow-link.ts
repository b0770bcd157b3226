/** A TCP proxy on loopback that delays what comes back: a network to the database with that much more round-trip time. */
import { type AddressInfo, connect, createServer } from "node:net";
import { mustHave } from "./listen.js";

const [port, delayMs] = [Number(mustHave("BENCH_PORT")), Number(mustHave("BENCH_DELAY_MS"))];

const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ port, host: "127.0.0.1", noDelay: true });
  client.on("data", (chunk) => upstream.write(chunk));
  upstream.on("data", (chunk) => setTimeout(() => client.writable && client.write(chunk), delayMs)); // in order: all wait equally long
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.on("error", () => {});
    one.on("close", () => setTimeout(() => other.destroy(), delayMs));
  }
});
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
