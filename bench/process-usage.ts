/** CPU by thread and memory of a process, from proc(5). Linux. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

/** V8's helper threads and libuv's pool; the other threads are main and workers. */
export type Threads = { readonly engine: readonly number[]; readonly pool: readonly number[] };

/** Microseconds of CPU time, by kind of thread. `worker` is the key worker; `engine` is V8's compiler and collector. */
export type Cpu = { readonly main: number; readonly worker: number; readonly pool: number; readonly engine: number };

export function canMeasure(): boolean {
  return existsSync("/proc/self/schedstat") && existsSync("/proc/self/clear_refs");
}

/** All CPU time used so far. Time of ended threads counts as the workers', since only workers end. */
export function processCpu(pid: number, { engine, pool }: Threads): Cpu {
  const used = { main: 0, worker: 0, pool: 0, engine: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`).map(Number)) {
    const other = engine.includes(thread) ? "engine" : pool.includes(thread) ? "pool" : "worker";
    used[thread === pid ? "main" : other] += cpuOfThread(pid, thread);
  }
  const ended = cpuOfProcess(pid) - totalCpu(used);
  return { ...used, worker: used.worker + (ended > 2 * tickUs ? ended : 0) };
}

function difference(before: Cpu, after: Cpu): Cpu {
  const of = (kind: keyof Cpu) => after[kind] - before[kind];
  return { main: of("main"), worker: of("worker"), pool: of("pool"), engine: of("engine") };
}

/** CPU time per request. */
export function perRequest({ main, worker, pool, engine }: Cpu, count: number): Cpu {
  return { main: main / count, worker: worker / count, pool: pool / count, engine: engine / count };
}

export function totalCpu({ main, worker, pool, engine }: Cpu): number {
  return main + worker + pool + engine;
}

/** proc(5) has hundredths of a second, whatever the kernel's tick. */
const tickUs = 10_000;

/** CPU time of all threads, ended ones included, in ticks. */
function cpuOfProcess(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" "); // a name may contain spaces and parentheses
  return (Number(fields[11]) + Number(fields[12])) * tickUs;
}

/** The scheduler's own count, in nanoseconds; `stat` has hundredths of a second only. */
function cpuOfThread(pid: number, thread: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1000;
  } catch {
    return 0; // it has just ended
  }
}

/** A process and the kinds of its threads. */
export type Watched = { readonly pid: number; readonly threads: Threads };

/** Usage of a process while it was watched, and how busy the watcher was: 1 is one whole CPU. */
export type Usage = {
  readonly seconds: number;
  readonly cpu: Cpu;
  readonly peak: number;
  readonly watcherBusy: number;
};

/** Watches until the returned function is called. */
export function watch({ pid, threads }: Watched): () => Usage {
  writeFileSync(`/proc/${pid}/clear_refs`, "5"); // resets the peak
  const before = processCpu(pid, threads);
  const ownBefore = process.cpuUsage();
  const began = performance.now();
  return () => {
    const seconds = (performance.now() - began) / 1000;
    const after = processCpu(pid, threads);
    const own = process.cpuUsage(ownBefore);
    const watcherBusy = (own.user + own.system) / 1e6 / seconds;
    return { seconds, cpu: difference(before, after), peak: processMemory(pid).peak, watcherBusy };
  };
}

/** Resident memory in MiB. */
export function processMemory(pid: number): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1024;
  return { now: field("VmRSS"), peak: field("VmHWM") };
}
