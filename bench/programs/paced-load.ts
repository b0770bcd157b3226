/**
 * Fixed-rate load: each request is due at its own moment, whatever became of the ones before it, and its latency counts
 * from that moment. A request waits here while all connections are busy, and that wait is part of its latency.
 *
 * autocannon's own rate is no substitute. It sends a second's requests of a connection one after another as fast as they
 * are answered and then pauses until the next second. Its correction of the histogram takes `Math.ceil(1 / rate)`, one
 * second divided by the rate and rounded up to 1, for an interval in milliseconds: at 200 requests a second it adds five
 * samples for each one that a stall left out.
 */
import { createHistogram } from "node:perf_hooks";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { type Usage, type Watched, watch } from "../usage.js";
import type { Stream } from "./load.js";
import { PacedConnection } from "./paced-connection.js";
import { bodyOf } from "./request.js";

export type PacedStream = Stream & { readonly perSecond: number };

export type PacedLoad = {
  readonly url: string;
  readonly watched: Watched;
  readonly paced: readonly PacedStream[];
  readonly seconds: number;
};

/** Times in milliseconds. */
export type Latencies = {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
};

export type PacedReport = Latencies & {
  readonly count: number;
  /** Responses other than 2xx, and broken connections. */
  readonly failed: number;
  /** How late this program itself was, p99: latencies include it. */
  readonly lateness: number;
  /** The slowest response to the requests due in each tenth of a second; 0 when none was due. */
  readonly timeline: readonly number[];
};

export type PacedLoadReport = { readonly paced: readonly PacedReport[]; readonly usage: Usage };

const bucketMs = 100;
const handshakesAtOnce = 32;

/** Rounded up to whole microseconds, the least that a histogram takes being 1. */
function micros(ms: number): number {
  return Math.max(1, Math.ceil(ms * 1000));
}

class Pacer {
  readonly #stream: PacedStream;
  readonly #requests: readonly string[];
  readonly #idle: PacedConnection[];
  readonly #connections: readonly PacedConnection[];
  readonly #latencies = createHistogram();
  readonly #lateness = createHistogram();
  readonly #timeline: number[] = [];
  /** Moments at which requests were due that no connection has taken yet. */
  readonly #waiting: number[] = [];
  #began = 0;
  #due = 0;
  #sent = 0;
  #open = 0;
  #failed = 0;

  constructor(url: string, stream: PacedStream) {
    this.#stream = stream;
    this.#requests = stream.requests.map((request) => messageOf(url, stream, bodyOf(request) ?? "", request));
    this.#connections = Array.from({ length: stream.connections }, () => new PacedConnection(url));
    this.#idle = [...this.#connections];
  }

  /** Opens every connection with a request of its own, so that the server counts none as unused. */
  async warm(): Promise<void> {
    const rest = this.#connections.entries();
    const openNext = async () => {
      for (const [i, connection] of rest) await this.#warmOne(connection, i);
    };
    await Promise.all(Array.from({ length: handshakesAtOnce }, openNext));
  }

  begin(at: number): void {
    this.#began = at;
  }

  get nextDue(): number {
    return this.#began + (this.#due * 1000) / this.#stream.perSecond;
  }

  sendDue(now: number): void {
    for (; this.nextDue <= now; this.#due++) {
      this.#lateness.record(micros(now - this.nextDue));
      this.#waiting.push(this.nextDue);
    }
    this.#sendWaiting();
  }

  get isDone(): boolean {
    return this.#open === 0 && this.#waiting.length === 0;
  }

  report(): PacedReport {
    const at = (percent: number) => this.#latencies.percentile(percent) / 1000;
    return {
      count: this.#latencies.count,
      failed: this.#failed,
      ...{ p50: at(50), p99: at(99), p999: at(99.9), max: this.#latencies.max / 1000 },
      lateness: this.#lateness.percentile(99) / 1000,
      timeline: Array.from(this.#timeline, (ms) => ms ?? 0),
    };
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  #warmOne(connection: PacedConnection, i: number): Promise<void> {
    return new Promise((resolve) => connection.send(this.#request(i), () => resolve()));
  }

  /** The connection that has been idle longest takes the next request, so that all are in use. */
  #sendWaiting(): void {
    while (this.#waiting.length > 0) {
      const connection = this.#idle.shift();
      if (connection === undefined) return;
      this.#sendOne(connection, this.#waiting.shift() ?? 0);
    }
  }

  #sendOne(connection: PacedConnection, due: number): void {
    this.#open++;
    connection.send(this.#request(this.#sent++), (status) => {
      this.#open--;
      this.#count(due, performance.now() - due, status);
      this.#idle.push(connection);
      this.#sendWaiting();
    });
  }

  #request(n: number): string {
    return this.#requests[n % this.#requests.length] ?? "";
  }

  #count(due: number, ms: number, status: number): void {
    if (status < 200 || status > 299) this.#failed++;
    this.#latencies.record(micros(ms));
    const bucket = Math.floor((due - this.#began) / bucketMs);
    this.#timeline[bucket] = Math.max(this.#timeline[bucket] ?? 0, ms);
  }
}

function messageOf(
  url: string,
  { headers }: Stream,
  body: string,
  { method, path }: Stream["requests"][number],
): string {
  const all = { Host: new URL(url).host, ...headers, "Content-Length": String(Buffer.byteLength(body)) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}

async function run({ url, watched, paced, seconds }: PacedLoad): Promise<PacedLoadReport> {
  const pacers = paced.map((stream) => new Pacer(url, stream));
  for (const pacer of pacers) await pacer.warm();
  process.send?.({ opened: true });
  const used = watch(watched);
  await pace(pacers, seconds);
  const usage = used();
  while (pacers.some((pacer) => !pacer.isDone)) await sleep(1);
  for (const pacer of pacers) pacer.close();
  return { paced: pacers.map((pacer) => pacer.report()), usage };
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

process.on("message", async (load: PacedLoad) => {
  if ("paced" in load) process.send?.(await run(load));
});
process.send?.({ ready: true });
