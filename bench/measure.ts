/** Measurements: a load on a subject for some seconds, alternated with others in rounds. */
import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { type Finding, found, ratios } from "./figures.js";
import { type Cpu, perRequest, processCpu, totalCpu } from "./process-usage.js";
import type { Load, LoadReport, Request } from "./programs/load.js";
import type { PacedLoad, PacedReport, PacedStream } from "./programs/paced-load.js";
import { type Subject, startProgram } from "./subjects.js";

export type Pace = { readonly rounds: number; readonly seconds: number };

/** `perSecond`: the fixed rate for latencies, which every contender sustains; without it none are taken. */
export type Workload = {
  readonly connections: number;
  readonly requests: readonly Request[];
  readonly perSecond?: number | undefined;
};

/** One subject in one round; times in milliseconds, CPU in microseconds a request, memory in MiB. */
export type Sample = {
  readonly perSecond: number;
  readonly failed: number;
  readonly cpu: Cpu;
  readonly peak: number;
  readonly latency: PacedReport | null;
};

export type Series = { readonly name: string; readonly samples: readonly Sample[] };

/** Two processes that send: one as fast as it gets responses, one at a fixed rate. */
export type Loaders = { readonly loader: ChildProcess; readonly pacer: ChildProcess };

export async function startLoaders(): Promise<Loaders> {
  return { loader: (await startProgram("load.js")).child, pacer: (await startProgram("paced-load.js")).child };
}

export function sendLoad(loader: ChildProcess, subject: Subject, workload: Workload, seconds: number) {
  const { url, pid, threads, headers } = subject;
  const { connections, requests } = workload;
  const load = { url, watched: { pid, threads }, headers, connections, requests, seconds } satisfies Load;
  return loadReport(loader, load, "usage") as Promise<LoadReport>;
}

/** Sends streams at fixed rates; `opened` is called once all their connections are open. */
export async function sendPaced(
  pacer: ChildProcess,
  load: PacedLoad,
  opened: () => void = () => {},
): Promise<readonly PacedReport[]> {
  const { reports } = (await loadReport(pacer, load, "reports", opened)) as { reports: PacedReport[] };
  return reports;
}

export function pacedStream({ headers }: Subject, { connections, requests }: Workload, perSecond: number): PacedStream {
  return { headers, connections, requests, perSecond };
}

function loadReport(child: ChildProcess, load: object, member: string, opened = () => {}): Promise<object> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new Error("the load's process ended"));
    const take = (message: object) => {
      if ("opened" in message) opened();
      if (!(member in message)) return;
      child.off("message", take).off("exit", gone);
      resolve(message);
    };
    child.on("message", take).once("exit", gone);
    child.send(load);
  });
}

/**
 * Waits until the subject is idle: unfinished work of one load must not slow down the next one. On a busy machine one calm
 * tenth of a second may only mean that the subject had no CPU.
 */
export async function settle({ pid, threads }: Subject): Promise<void> {
  let calm = 0;
  for (let tries = 0; tries < 600; tries++) {
    const before = totalCpu(processCpu(pid, threads));
    await sleep(100);
    calm = totalCpu(processCpu(pid, threads)) - before < 5_000 ? calm + 1 : 0;
    if (calm === 3) return;
  }
  throw new Error("a measured process does not become idle");
}

/** Takes one sample: first as fast as possible, then at the fixed rate. A durable loop is its own loader. */
export async function takeSample(
  { loader, pacer }: Loaders,
  subject: Subject,
  workload: Workload,
  seconds: number,
): Promise<Sample> {
  const { count, perSecond, failed, usage } = await sendLoad(loader, subject, workload, seconds);
  await settle(subject);
  let latency: PacedReport | null = null;
  if (workload.perSecond !== undefined && subject.url !== "") {
    const paced = [pacedStream(subject, workload, workload.perSecond)];
    [latency = null] = await sendPaced(pacer, { url: subject.url, paced, seconds });
    await settle(subject);
  }
  return { perSecond, failed, cpu: perRequest(usage.cpu, count), peak: usage.peak, latency };
}

/** A B C A B C …: changes of the machine's speed affect all of them. The first round is warm-up and dropped. */
export async function alternate(
  loaders: Loaders,
  subjects: readonly Subject[],
  workload: Workload,
  { rounds, seconds }: Pace,
): Promise<Series[]> {
  const series = subjects.map(({ name }) => ({ name, samples: [] as Sample[] }));
  for (let round = -1; round < rounds; round++) {
    for (const [i, subject] of subjects.entries()) {
      const own = subject.url === "" ? { ...loaders, loader: subject.child } : loaders;
      const sample = await takeSample(own, subject, workload, round < 0 ? Math.min(1, seconds) : seconds);
      if (round >= 0) series[i]?.samples.push(sample);
    }
  }
  return series;
}

const figures = {
  throughput: ["/s", ({ perSecond }: Sample) => perSecond],
  p50: ["ms", ({ latency }: Sample) => latency?.p50 ?? Number.NaN],
  p99: ["ms", ({ latency }: Sample) => latency?.p99 ?? Number.NaN],
  "CPU a request": ["µs", ({ cpu }: Sample) => totalCpu(cpu)],
  "CPU a request, main thread": ["µs", ({ cpu }: Sample) => cpu.main],
  "CPU a request, key worker": ["µs", ({ cpu }: Sample) => cpu.worker],
  "CPU a request, thread pool": ["µs", ({ cpu }: Sample) => cpu.pool],
  "peak memory": ["MiB", ({ peak }: Sample) => peak],
  failed: ["", ({ failed }: Sample) => failed],
} as const;

/** The first series' figures, and their ratios to those of each other series. */
export function compareSeries([first, ...others]: readonly Series[]): Finding[] {
  if (first === undefined) return [];
  return Object.entries(figures).flatMap(([what, [unit, figure]]) => {
    const ours = first.samples.map(figure);
    if (ours.every((value) => Number.isNaN(value))) return [];
    const own = found(`${what}, ${first.name}`, ours, unit);
    if (what === "failed") return [own];
    return [own, ...others.flatMap((other) => ratioFindings(what, ours, other, figure))];
  });
}

/** Returns no finding for a figure that another server lacks, such as a key thread's CPU. */
function ratioFindings(
  what: string,
  ours: readonly number[],
  { name, samples }: Series,
  figure: (sample: Sample) => number,
): Finding[] {
  const ratio = ratios(ours, samples.map(figure));
  return ratio.every(Number.isFinite) ? [found(`${what}, of ${name}'s`, ratio, "×")] : [];
}
