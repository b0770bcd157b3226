/**
 * Thread that listens on the sockets and accepts nothing until it is told to: of a Unix socket that was accepted only an end
 * can be sent, and an end without data is an empty credential. What is not accepted waits in the kernel's queue, and is reset
 * when its listener is closed or the process ends, `kill -9` included.
 */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";

/** `path`: where to bind; `wake`: set to 1 and notified after each order. */
export type ThreadStart = {
  readonly wake: Int32Array;
  readonly sockets: readonly { readonly name: string; readonly path: string }[];
};

/**
 * `serve`: accepts and sends the value; the thread wipes it. `look`: accepts what waits, and reports it. `end`: resets what
 * waits and ends the thread. DANGER: a terminated thread may poll once more, and accept what waits.
 */
export type Order =
  | { readonly order: "serve"; readonly name: string; readonly value: Uint8Array<ArrayBuffer> }
  | { readonly order: "look" }
  | { readonly order: "end" }
  | { readonly order: "close"; readonly name: string };

/** Names of sockets with connections that were accepted without a value. */
export type Report = { readonly held: readonly string[] };

/** Time in which everything that waits is accepted, in milliseconds. */
const acceptMs = 5;
/** How long other orders wait for programs that read, and how long a program may take to read a value, in milliseconds. */
const [sliceMs, readMs] = [50, 10_000];

const { wake, sockets } = workerData as ThreadStart;
const servers = new Map<string, Server>();
const held = new Map<string, Set<Socket>>();
const values = new Map<string, Uint8Array>();
/** The value that is sent on each connection. */
const sending = new Map<Socket, Uint8Array>();
let onIdle = (): void => {};

function accepted(name: string, socket: Socket): void {
  socket.on("error", () => socket.destroy());
  const value = values.get(name);
  const others = held.get(name) ?? new Set();
  if (value !== undefined) send(socket, value);
  else held.set(name, others.add(socket));
  socket.once("close", () => others.delete(socket));
}

/** Closes the connection once the kernel has the value for the program, or when the program has not read it in time. */
function send(socket: Socket, value: Uint8Array): void {
  sending.set(socket, value);
  const tooSlow = setTimeout(() => socket.destroy(), readMs);
  socket.once("close", () => {
    clearTimeout(tooSlow);
    sending.delete(socket);
    wipeUnused(value);
    if (sending.size === 0) onIdle();
  });
  socket.resume().end(value, () => socket.destroy());
}

function wipeUnused(value: Uint8Array): void {
  if (![...sending.values(), ...values.values()].includes(value)) value.fill(0);
}

/** Resets what waits, and leaves nothing that keeps the thread running. */
function end(): void {
  for (const server of servers.values()) server.close();
  for (const value of values.values()) value.fill(0);
  for (const socket of [...[...held.values()].flatMap((of) => [...of]), ...sending.keys()]) socket.destroy();
}

function obey(order: Exclude<Order, { readonly order: "end" }>): void {
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

/** Lets the event loop accept, and waits for programs that read, but not long for one that does not. */
async function acceptAndSend(): Promise<void> {
  await sleep(acceptMs);
  const sent = [...values.values()];
  values.clear();
  for (const value of sent) wipeUnused(value);
  if (sending.size === 0) return;
  const allSent = new Promise<void>((resolve) => {
    onIdle = resolve;
  });
  await Promise.race([allSent, sleep(sliceMs)]);
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
    if (sending.size === 0) Atomics.wait(wake, 0, 0); // connections that come while a slow program reads are accepted, and held
    Atomics.store(wake, 0, 0);
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      const order = next.message as Order;
      if (order.order === "end") return end();
      obey(order);
    }
    await acceptAndSend();
  }
}

if (parentPort !== null) void serve(parentPort);
