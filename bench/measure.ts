/** Measurements: a load on a subject for some seconds, alternated with others in rounds. */
import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Load, LoadReport, Request, Stream, StreamReport } from "./programs/load.js";
import { type Subject, startProgram } from "./subjects.js";
import { type Cpu, cpuOf, perRequest, totalCpu } from "./usage.js";

/** One subject in one round; times in milliseconds, CPU in microseconds per request, memory in MiB. */
export type Sample = Omit<StreamReport, "timeline"> & {
  readonly cpu: Cpu;
  readonly peak: number;
  /** Near 1, the load process was the limit. */
  readonly loadBusy: number;
};

export type Series = { readonly subject: string; readonly samples: readonly Sample[] };

export type Pace = { readonly rounds: number; readonly seconds: number };

const warmMs = 500;

/** A process that sends loads, one at a time. */
export type Loader = ChildProcess;

export async function startLoader(): Promise<Loader> {
  return (await startProgram("load.js")).child;
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

/** Waits until the subject is idle: unfinished work of one load must not slow down the next one. */
export async function settle({ pid, threads }: Subject): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const before = totalCpu(cpuOf(pid, threads));
    await sleep(100);
    if (totalCpu(cpuOf(pid, threads)) - before < 5_000) return;
  }
  throw new Error("a measured process does not become idle");
}

/** Sends one load and waits for its report. */
export function sendLoad(
  loader: Loader,
  { url, pid, threads }: Subject,
  load: Pick<Load, "streams" | "warmMs" | "seconds">,
): Promise<LoadReport> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new Error("the load's process ended"));
    const take = (message: LoadReport | object) => {
      if (!("streams" in message)) return;
      loader.off("message", take).off("exit", gone);
      resolve(message);
    };
    loader.on("message", take).once("exit", gone);
    loader.send({ url, watched: { pid, threads }, atLeast: 1, ...load });
  });
}

export type Requests = {
  readonly connections: number;
  readonly requests: readonly Request[];
  /** A round lasts until there is at least one response, however long that takes. */
  readonly slow?: true;
};

export function stream(subject: Subject, { connections, requests }: Requests): Stream {
  return { connections, headers: subject.headers, requests };
}

/** A subject to alternate: its name, and how to take one sample. */
export type Contender = { readonly name: string; sample(seconds: number): Promise<Sample> };

/** A subject under one stream of requests. */
export function contender(loader: Loader, subject: Subject, requests: Requests): Contender {
  return {
    name: subject.name,
    async sample(seconds) {
      const { streams, usage } = await measure(loader, subject, [stream(subject, requests)], seconds, requests.slow);
      await settle(subject);
      const [report] = streams;
      if (report === undefined) throw new Error(`${subject.name} sent no response`);
      const { timeline: _, ...figures } = report;
      const cpu = perRequest(usage.cpu, report.count);
      return { ...figures, cpu, peak: usage.peak, loadBusy: usage.watcherBusy };
    },
  };
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
