/** Measurements: a load on a subject for some seconds, alternated with others in rounds. */
import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Load, LoadReport, Stream, StreamReport } from "./programs/load.js";
import type { Latencies, PacedLoad, PacedLoadReport, PacedStream } from "./programs/paced-load.js";
import type { Request } from "./programs/request.js";
import { type Subject, startProgram } from "./subjects.js";
import { type Cpu, cpuOf, perRequest, totalCpu } from "./usage.js";

/** One subject in one round; times in milliseconds, CPU in microseconds per request, memory in MiB. */
export type Sample = StreamReport & {
  /** At a fixed rate; null when the workload has none. */
  readonly latency: Latencies | null;
  readonly cpu: Cpu;
  readonly peak: number;
  /** Near 1, the load process was the limit. */
  readonly loadBusy: number;
};

export type Series = { readonly subject: string; readonly samples: readonly Sample[] };

export type Pace = { readonly rounds: number; readonly seconds: number };

const warmMs = 500;

/** A process that sends loads as fast as they are answered, one load at a time. */
export type Loader = ChildProcess;

/** A process that sends loads at a fixed rate, one load at a time. */
export type PacedLoader = ChildProcess;

export type Loaders = { readonly loader: Loader; readonly pacer: PacedLoader };

export async function startLoader(): Promise<Loader> {
  return (await startProgram("load.js")).child;
}

export async function startLoaders(): Promise<Loaders> {
  return { loader: await startLoader(), pacer: (await startProgram("paced-load.js")).child };
}

/** Measures `subject` while `loader` sends the streams. A durable loop loads itself. */
export function measure(
  loader: Loader,
  subject: Subject,
  streams: readonly Stream[],
  seconds: number,
  slow = false,
): Promise<LoadReport> {
  return sendLoad(loader, subject, { streams, warmMs: slow ? 0 : warmMs, seconds });
}

/**
 * Waits until the subject is idle: unfinished work of one load must not slow down the next one. On a busy machine one calm
 * tenth of a second may only mean that the subject had no CPU.
 */
export async function settle({ pid, threads }: Subject): Promise<void> {
  let calm = 0;
  for (let tries = 0; tries < 600; tries++) {
    const before = totalCpu(cpuOf(pid, threads));
    await sleep(100);
    calm = totalCpu(cpuOf(pid, threads)) - before < 5_000 ? calm + 1 : 0;
    if (calm === 3) return;
  }
  throw new Error("a measured process does not become idle");
}

/** Sends one load and waits for its report. */
export function sendLoad(
  loader: Loader,
  { url, pid, threads }: Subject,
  load: Pick<Load, "streams" | "rampMs" | "warmMs" | "seconds">,
): Promise<LoadReport> {
  return reportOf(loader, { url, watched: { pid, threads }, atLeast: 1, ...load } satisfies Load, "streams");
}

/** Sends one load at a fixed rate; `opened` is called once all its connections are open. */
export function sendPaced(
  pacer: PacedLoader,
  { url, pid, threads }: Pick<Subject, "url" | "pid" | "threads">,
  load: Pick<PacedLoad, "paced" | "seconds">,
  opened: () => void = () => {},
): Promise<PacedLoadReport> {
  return reportOf(pacer, { url, watched: { pid, threads }, ...load } satisfies PacedLoad, "paced", opened);
}

function reportOf<T extends object>(
  child: ChildProcess,
  load: object,
  member: string,
  opened: () => void = () => {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new Error("the load's process ended"));
    const take = (message: object) => {
      if ("opened" in message) opened();
      if (!(member in message)) return;
      child.off("message", take).off("exit", gone);
      resolve(message as T);
    };
    child.on("message", take).once("exit", gone);
    child.send(load);
  });
}

export type Requests = {
  readonly connections: number;
  readonly requests: readonly Request[];
  /** The fixed rate for latencies, one that every contender sustains. */
  readonly perSecond?: number;
  /** A round lasts until there is at least one response, however long that takes. */
  readonly slow?: true;
};

export function stream(subject: Subject, { connections, requests }: Requests): Stream {
  return { connections, headers: subject.headers, requests };
}

/** A subject to alternate: its name, and how to take one sample. */
export type Contender = { readonly name: string; sample(seconds: number): Promise<Sample> };

/** A subject under one stream of requests: first as fast as possible, then at the fixed rate. */
export function contender({ loader, pacer }: Loaders, subject: Subject, requests: Requests): Contender {
  return {
    name: subject.name,
    async sample(seconds) {
      const { streams, usage } = await measure(loader, subject, [stream(subject, requests)], seconds, requests.slow);
      await settle(subject);
      const [report] = streams;
      if (report === undefined) throw new Error(`${subject.name} sent no response`);
      const cpu = perRequest(usage.cpu, report.count);
      const latency = await latencyOf(pacer, subject, requests, seconds);
      return { ...report, latency, cpu, peak: usage.peak, loadBusy: usage.watcherBusy };
    },
  };
}

async function latencyOf(
  pacer: PacedLoader,
  subject: Subject,
  requests: Requests,
  seconds: number,
): Promise<Latencies | null> {
  const { perSecond } = requests;
  if (perSecond === undefined) return null;
  const { paced } = await sendPaced(pacer, subject, { paced: [pacedStream(subject, requests, perSecond)], seconds });
  await settle(subject);
  return paced[0] ?? null;
}

export function pacedStream(subject: Subject, requests: Requests, perSecond: number): PacedStream {
  return { ...stream(subject, requests), perSecond };
}

/** A B C A B C …: changes of the machine's speed affect all of them. The first round is warm-up and dropped. */
export async function alternate(contenders: readonly Contender[], { rounds, seconds }: Pace): Promise<Series[]> {
  const taken = contenders.map(() => [] as Sample[]);
  for (const { sample } of contenders) await sample(Math.min(1, seconds));
  for (let round = 0; round < rounds; round++) {
    for (const [i, { sample }] of contenders.entries()) taken[i]?.push(await sample(seconds));
  }
  return contenders.map(({ name }, i) => ({ subject: name, samples: taken[i] ?? [] }));
}
