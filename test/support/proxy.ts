/** A TCP proxy between client and server that counts connections and can break them. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { later } from "../../tools/rig/clean-up.js";
import type { TestServer } from "../../tools/rig/server.js";

export type Proxy = {
  readonly port: number;
  /** `https://localhost:port` */
  readonly url: string;
  /** Connections accepted so far. */
  readonly connections: () => number;
  /** Resets each open connection on its next data. */
  breakKept(): void;
  /** Drops everything that the server sends from now on. */
  silence(): void;
};

export async function startProxy(server: TestServer, host = "127.0.0.1"): Promise<Proxy> {
  const clients = new Set<Socket>();
  let connections = 0;
  let silent = false;
  const listener = createServer((client) => {
    connections++;
    const upstream = connect(server.port, "127.0.0.1");
    clients.add(client);
    client.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", (chunk) => silent || client.write(chunk));
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on("error", () => {});
      one.on("close", () => other.destroy());
    }
  });
  listener.listen(0, host);
  await once(listener, "listening");
  later(async () => {
    for (const client of clients) client.destroy();
    await new Promise((resolve) => listener.close(resolve));
  });
  const { port } = listener.address() as AddressInfo;
  return {
    port,
    url: `https://localhost:${port}`,
    connections: () => connections,
    breakKept() {
      for (const client of clients) client.removeAllListeners("data").once("data", () => client.resetAndDestroy());
    },
    silence() {
      silent = true;
    },
  };
}
