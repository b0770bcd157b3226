/**
 * Throughput load: autocannon in a process of its own. It counts responses once all connections are open and warm, and
 * reads what the measured process used meanwhile. Each connection waits for its response before it sends again, so these
 * latencies leave out what would have been sent during a stall: latencies come from paced-load.ts.
 */
import { setTimeout as sleep } from "node:timers/promises";
import autocannon from "autocannon";
import { type Usage, type Watched, watch } from "../usage.js";
import { bodyOf, type Request } from "./request.js";

/** Requests that connections send in turn; each connection has its share of them. */
export type Stream = {
  readonly connections: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly requests: readonly Request[];
};

export type Load = {
  readonly url: string;
  /** The process whose CPU and memory are read at the beginning and end of the measurement. */
  readonly watched: Watched;
  readonly streams: readonly Stream[];
  /** Pause after the start of each stream: a server cuts handshakes that take too long, as thousands at once would. */
  readonly rampMs?: number;
  readonly warmMs: number;
  /** Length of the measurement; longer until there are `atLeast` responses. */
  readonly seconds: number;
  readonly atLeast: number;
};

export type StreamReport = {
  readonly count: number;
  readonly perSecond: number;
  /** Responses other than 2xx, broken connections, time-outs. */
  readonly failed: number;
};

export type LoadReport = { readonly streams: readonly StreamReport[]; readonly usage: Usage };

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

async function run({ url, watched, streams, rampMs = 0, warmMs, seconds, atLeast }: Load): Promise<LoadReport> {
  const running: Running[] = [];
  for (const stream of streams) {
    running.push(start(url, stream, (rampMs * streams.length + warmMs) / 1000 + seconds + 600));
    await sleep(rampMs);
  }
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
  let counting = false;
  let count = 0;
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
  instance.on("response", (_client, status) => {
    if (!counting) return;
    if (status < 200 || status > 299) failed++;
    count++;
  });
  return {
    begin() {
      counting = true;
    },
    count: () => count,
    end() {
      counting = false;
    },
    async stop() {
      instance.stop();
      await done;
    },
    report: (seconds) => ({ count, perSecond: count / seconds, failed }),
  };
}

function asAutocannon(request: Request): autocannon.Request {
  const { method, path } = request;
  const body = bodyOf(request);
  return { method, path, ...(body !== undefined && { body }) };
}
