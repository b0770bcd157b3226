/**
 * Fixed-rate load: each request is due at its own moment, whatever became of the ones before it, and its latency counts
 * from that moment. A request waits here while all connections are busy, and that wait is part of its latency.
 *
 * autocannon's own rate is no substitute: it sends a second's requests one after another and then pauses, and its correction
 * adds five samples for each sample that a stall left out at 200 requests a second.
 */
import { createHistogram } from "node:perf_hooks";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import type { Request, Stream } from "./load.js";

export type PacedStream = Stream & { readonly perSecond: number };

export type PacedLoad = { readonly url: string; readonly paced: readonly PacedStream[]; readonly seconds: number };

/** Times in milliseconds; `failed`: responses other than 2xx, and broken connections. */
export type PacedReport = {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
  readonly count: number;
  readonly failed: number;
};

/** Called with the status; 0 when the connection broke before the whole response was there. */
type Done = (status: number) => void;

/** One keep-alive HTTPS connection with at most one request at a time, on a bare TLS socket. */
class Connection {
  readonly #url: URL;
  #socket: TLSSocket | null = null;
  #head = "";
  /** Bytes of the body that are still missing; null while the head is incomplete. */
  #missing: number | null = null;
  #done: Done | null = null;

  constructor(url: string) {
    this.#url = new URL(url);
  }

  /** A broken connection is opened again by the next request. */
  send(bytes: string, done: Done): void {
    this.#done = done;
    this.#socket ??= this.#open();
    this.#socket.write(bytes);
  }

  close(): void {
    this.#socket?.destroy();
  }

  #open(): TLSSocket {
    const { hostname: host, port } = this.#url;
    const socket = connect({ host, port: Number(port), servername: "localhost", rejectUnauthorized: false });
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", () => {}); // followed by close
    socket.once("close", () => {
      this.#socket = null;
      this.#end(0);
    });
    return socket;
  }

  #take(chunk: Buffer): void {
    if (this.#missing === null) this.#takeHead(chunk);
    else this.#missing -= chunk.length;
    if (this.#missing !== null && this.#missing <= 0) this.#end(Number(this.#head.slice(9, 12)));
  }

  #takeHead(chunk: Buffer): void {
    this.#head += chunk.toString("latin1");
    const bodyAt = this.#head.indexOf("\r\n\r\n") + 4;
    if (bodyAt < 4) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.#head)?.[1]);
    if (Number.isNaN(length))
      this.close(); // no server of the benchmark sends chunks
    else this.#missing = length - (this.#head.length - bodyAt);
  }

  #end(status: number): void {
    const done = this.#done;
    [this.#head, this.#missing, this.#done] = ["", null, null];
    done?.(status);
  }
}

/** Sends one stream's requests when they are due. */
class Pacer {
  readonly #perSecond: number;
  readonly #requests: readonly string[];
  readonly #connections: readonly Connection[];
  readonly #idle: Connection[];
  readonly #latencies = createHistogram();
  /** Moments at which requests were due that no connection has taken yet. */
  readonly #waiting: number[] = [];
  #began = 0;
  #due = 0;
  #sent = 0;
  #open = 0;
  #failed = 0;

  constructor(url: string, { connections, headers, requests, perSecond }: PacedStream) {
    this.#perSecond = perSecond;
    this.#requests = requests.map((request) => requestMessage(url, headers, request));
    this.#connections = Array.from({ length: connections }, () => new Connection(url));
    this.#idle = [...this.#connections];
  }

  /** Opens every connection with a request of its own, so that the server counts none as unused. */
  async warm(): Promise<void> {
    const warmOne = (one: Connection, i: number) =>
      new Promise((resolve) => one.send(this.#request(i), () => resolve(null)));
    await Promise.all(this.#connections.map(warmOne));
  }

  begin(at: number): void {
    this.#began = at;
  }

  get nextDue(): number {
    return this.#began + (this.#due * 1000) / this.#perSecond;
  }

  get isDone(): boolean {
    return this.#open === 0 && this.#waiting.length === 0;
  }

  sendDue(now: number): void {
    for (; this.nextDue <= now; this.#due++) this.#waiting.push(this.nextDue);
    this.#sendWaiting();
  }

  report(): PacedReport {
    const at = (percent: number) => this.#latencies.percentile(percent) / 1000;
    const { count, max } = this.#latencies;
    return { p50: at(50), p99: at(99), p999: at(99.9), max: max / 1000, count, failed: this.#failed };
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  /** The connection that has been idle longest takes the next request, so that all are in use. */
  #sendWaiting(): void {
    while (this.#waiting.length > 0) {
      const connection = this.#idle.shift();
      if (connection === undefined) return;
      this.#sendOne(connection, this.#waiting.shift() ?? 0);
    }
  }

  #sendOne(connection: Connection, due: number): void {
    this.#open++;
    connection.send(this.#request(this.#sent++), (status) => {
      this.#open--;
      if (status < 200 || status > 299) this.#failed++;
      this.#latencies.record(Math.max(1, Math.ceil((performance.now() - due) * 1000)));
      this.#idle.push(connection);
      this.#sendWaiting();
    });
  }

  #request(n: number): string {
    return this.#requests[n % this.#requests.length] ?? "";
  }
}

function requestMessage(url: string, headers: Stream["headers"], { method, path, body = "" }: Request): string {
  const all = { Host: new URL(url).host, ...headers, "Content-Length": String(Buffer.byteLength(body)) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}

async function run({ url, paced, seconds }: PacedLoad): Promise<PacedReport[]> {
  const pacers = paced.map((stream) => new Pacer(url, stream));
  for (const pacer of pacers) await pacer.warm();
  process.send?.({ opened: true });
  await pace(pacers, seconds);
  while (pacers.some((pacer) => !pacer.isDone)) await sleep(1);
  for (const pacer of pacers) pacer.close();
  return pacers.map((pacer) => pacer.report());
}

async function pace(pacers: readonly Pacer[], seconds: number): Promise<void> {
  const began = performance.now() + 1;
  for (const pacer of pacers) pacer.begin(began);
  const end = began + seconds * 1000;
  for (;;) {
    const next = Math.min(...pacers.map(({ nextDue }) => nextDue));
    if (next >= end) return;
    await until(next);
    const now = Math.min(performance.now(), end - 1e-6); // what is due after the end is not sent
    for (const pacer of pacers) pacer.sendDue(now);
  }
}

/** Timers count whole milliseconds: the last fraction of one is spent turning. */
async function until(moment: number): Promise<void> {
  const ms = Math.floor(moment - performance.now());
  if (ms > 0) await sleep(ms);
  while (performance.now() < moment) await nextTurn();
}

process.on("message", async (load: PacedLoad) => process.send?.({ reports: await run(load) }));
process.send?.({ ready: true });
