/**
 * The load: autocannon in a process of its own, so that it never shares an event loop with what it measures. It is told
 * what to send, and reports only what was answered once all connections were up and warm, and what the
 * other process used meanwhile. Times are taken in microseconds; autocannon's own report has whole milliseconds.
 */
import { createHistogram } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import autocannon from "autocannon";
import { type Usage, type Watched, watch } from "../usage.js";

export type Request = {
  readonly method: "GET" | "PUT" | "POST";
  readonly path: string;
  readonly body?: string;
  /** Instead of a body: a put of a value of this many bytes. */
  readonly valueBytes?: number;
};

/** Requests that some connections send in turn, without a pause; each connection has its share of them. */
export type Stream = {
  readonly connections: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly requests: readonly Request[];
};

export type Load = {
  readonly url: string;
  /** The process whose CPU and memory are read as it begins and ends to count. */
  readonly watched: Watched;
  readonly streams: readonly Stream[];
  readonly warmMs: number;
  /** How long it counts; longer when not enough has been answered by then. */
  readonly seconds: number;
  readonly atLeast: number;
};

/** Times are in milliseconds. */
export type StreamReport = {
  readonly count: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  /** Answers other than 2xx, broken connections, time-outs. */
  readonly failed: number;
  /** The slowest answer of each tenth of a second; 0 when there was none. */
  readonly timeline: readonly number[];
};

export type LoadReport = { readonly streams: readonly StreamReport[]; readonly usage: Usage };

const bucketMs = 100;

type Running = {
  begin(): void;
  count(): number;
  end(): void;
  stop(): Promise<void>;
  report(seconds: number): StreamReport;
};

process.on("message", async (load: Load) => {
  if ("streams" in load) process.send?.(await run(load));
});
process.send?.({ ready: true });

async function run({ url, watched, streams, warmMs, seconds, atLeast }: Load): Promise<LoadReport> {
  const running = streams.map((stream) => start(url, stream, warmMs / 1000 + seconds + 600));
  await sleep(warmMs);
  for (const stream of running) stream.begin();
  const used = watch(watched);
  await sleep(seconds * 1000);
  while (running.some((stream) => stream.count() < atLeast)) await sleep(10);
  const usage = used();
  for (const stream of running) stream.end();
  await Promise.all(running.map((stream) => stream.stop()));
  return { streams: running.map((stream) => stream.report(usage.seconds)), usage };
}

function start(url: string, { connections, headers, requests }: Stream, atMost: number): Running {
  const latencies = createHistogram();
  const timeline: number[] = [];
  let counting = false;
  let began = 0;
  let failed = 0;
  let next = 0;
  const setupClient = (client: autocannon.Client) => {
    const first = next++;
    const share = requests.filter((_, i) => i % connections === first % requests.length);
    client.setRequests(share.map(asAutocannon));
  };
  const options = { url, connections, headers, setupClient, duration: atMost, sampleInt: 50, timeout: 600 };
  const instance = autocannon(options, () => {});
  const done = new Promise<void>((resolve) => instance.once("done", () => resolve()));
  instance.on("reqError", () => {
    if (counting) failed++;
  });
  instance.on("response", (_client, status, _bytes, ms) => {
    if (!counting) return;
    if (status < 200 || status > 299) failed++;
    latencies.record(Math.max(1, Math.round(ms * 1000)));
    const bucket = Math.floor((performance.now() - began) / bucketMs);
    timeline[bucket] = Math.max(timeline[bucket] ?? 0, ms);
  });
  return {
    begin() {
      began = performance.now();
      counting = true;
    },
    count: () => latencies.count,
    end() {
      counting = false;
    },
    async stop() {
      instance.stop();
      await done;
    },
    report(seconds) {
      const { count } = latencies;
      const at = (percent: number) => latencies.percentile(percent) / 1000;
      const times = { p50: at(50), p99: at(99), p999: at(99.9) };
      return { count, perSecond: count / seconds, ...times, failed, timeline: Array.from(timeline, (ms) => ms ?? 0) };
    },
  };
}

function asAutocannon({ method, path, body, valueBytes }: Request): autocannon.Request {
  const content = valueBytes === undefined ? body : JSON.stringify({ value: "v".repeat(valueBytes), type: "api-key" });
  return { method, path, ...(content !== undefined && { body: content }) };
}
