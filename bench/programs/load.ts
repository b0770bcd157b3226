/**
 * Throughput load: autocannon in a process of its own. It counts responses once all connections are open and warm, and
 * reads what the measured process used in that time. Each connection waits for its response before it sends again, so
 * these latencies leave out what would have been sent during a stall: latencies come from paced-load.ts.
 */
import { setTimeout as sleep } from "node:timers/promises";
import autocannon from "autocannon";
import { type Usage, type Watched, watch } from "../process-usage.js";
import { shareRequests } from "./shares.js";

export type Request = {
  readonly method: "GET" | "PUT" | "POST";
  readonly path: string;
  readonly body?: string;
};

/** Requests that connections send in turn; each connection has its share of them. */
export type Stream = {
  readonly connections: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly requests: readonly Request[];
};

export type Load = Stream & {
  readonly url: string;
  /** The process whose CPU and memory are read at the beginning and end of the measurement. */
  readonly watched: Watched;
  /** Length of the measurement; longer until there is a response. */
  readonly seconds: number;
};

/** `failed`: responses other than 2xx, broken connections, time-outs. */
export type LoadReport = {
  readonly count: number;
  readonly perSecond: number;
  readonly failed: number;
  readonly usage: Usage;
};

const warmMs = 500;

process.on("message", async (load: Load) => process.send?.(await run(load)));
process.send?.({ ready: true });

async function run({ url, watched, connections, headers, requests, seconds }: Load): Promise<LoadReport> {
  const counted = { on: false, count: 0, failed: 0 };
  const setupClient = shareRequests(requests, connections);
  const duration = warmMs / 1000 + seconds + 600;
  const instance = autocannon(
    { url, connections, headers, setupClient, duration, sampleInt: 50, timeout: 600 },
    () => {},
  );
  const done = new Promise<void>((resolve) => instance.once("done", () => resolve()));
  instance.on("reqError", () => {
    if (counted.on) counted.failed++;
  });
  instance.on("response", (_client, status) => {
    if (!counted.on) return;
    if (status < 200 || status > 299) counted.failed++;
    counted.count++;
  });
  await sleep(warmMs);
  counted.on = true;
  const used = watch(watched);
  await sleep(seconds * 1000);
  while (counted.count === 0) await sleep(10);
  const usage = used();
  counted.on = false;
  instance.stop();
  await done;
  return { count: counted.count, perSecond: counted.count / usage.seconds, failed: counted.failed, usage };
}
