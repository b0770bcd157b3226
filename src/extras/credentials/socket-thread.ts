/**
 * Thread that listens on the sockets and accepts nothing until it is told to: of a Unix socket that was accepted only an end
 * can be sent, and an end without data is an empty credential. What is not accepted waits in the kernel's queue, and is reset
 * when its listener is closed or the process ends, `kill -9` included.
 */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";

/** `path`: where to bind; `wake`: set to 1 and notified after each order. */
export type ThreadStart = {
  readonly wake: Int32Array;
  readonly sockets: readonly { readonly name: string; readonly path: string }[];
};

/** `serve`: accepts and sends the value; the thread wipes it. `look`: accepts what waits, and reports it. */
export type Order =
  | { readonly order: "serve"; readonly name: string; readonly value: Uint8Array<ArrayBuffer> }
  | { readonly order: "look" }
  | { readonly order: "close"; readonly name: string };

/** Names of sockets with connections that were accepted without a value. */
export type Report = { readonly held: readonly string[] };

/** Time in which everything that waits is accepted, in milliseconds. */
const acceptMs = 5;

const { wake, sockets } = workerData as ThreadStart;
const servers = new Map<string, Server>();
const held = new Map<string, Set<Socket>>();
const values = new Map<string, Uint8Array>();
const sending = new Set<Promise<unknown>>();

function accepted(name: string, socket: Socket): void {
  socket.on("error", () => socket.destroy());
  const value = values.get(name);
  const others = held.get(name) ?? new Set();
  if (value !== undefined) send(socket, value);
  else held.set(name, others.add(socket));
  socket.once("close", () => others.delete(socket));
}

function send(socket: Socket, value: Uint8Array): void {
  const closed = once(socket, "close").catch(() => {});
  sending.add(closed);
  void closed.then(() => sending.delete(closed));
  socket.resume().end(value);
}

function obey(order: Order): void {
  if (order.order === "look") return;
  if (order.order === "close") {
    servers.get(order.name)?.close();
    for (const socket of held.get(order.name) ?? []) socket.destroy();
    return;
  }
  values.set(order.name, order.value);
  const waiting = [...(held.get(order.name) ?? [])];
  held.delete(order.name);
  for (const socket of waiting) send(socket, order.value);
}

/** Lets the event loop accept, and waits until all that is sent has been read. */
async function acceptAndSend(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, acceptMs));
  while (sending.size > 0) await Promise.all(sending);
  for (const value of values.values()) value.fill(0);
  values.clear();
}

async function serve(port: NonNullable<typeof parentPort>): Promise<void> {
  for (const { name, path } of sockets) {
    const server = createServer({ allowHalfOpen: true }, (socket) => accepted(name, socket));
    server.listen(path);
    await once(server, "listening");
    servers.set(name, server);
  }
  for (;;) {
    port.postMessage({ held: [...held].flatMap(([name, of]) => (of.size > 0 ? [name] : [])) } satisfies Report);
    Atomics.wait(wake, 0, 0);
    Atomics.store(wake, 0, 0);
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      obey(next.message as Order);
    }
    await acceptAndSend();
  }
}

if (parentPort !== null) void serve(parentPort);
