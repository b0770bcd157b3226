/** Owns what a process has used, as the kernel tells it: CPU by thread, and memory. Linux, proc(5). */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

/** Which threads of a process are V8's helpers and which libuv's pool; the others are main and workers. */
export type Threads = { readonly engine: readonly number[]; readonly pool: readonly number[] };

/** Microseconds of CPU time, by kind of thread. `worker` is the key worker; `engine` is V8's compiler and collector. */
export type Cpu = { readonly main: number; readonly worker: number; readonly pool: number; readonly engine: number };

export function canMeasure(): boolean {
  return existsSync("/proc/self/schedstat") && existsSync("/proc/self/clear_refs");
}

/** All CPU time used so far. */
export function cpuOf(pid: number, { engine, pool }: Threads): Cpu {
  const used = { main: 0, worker: 0, pool: 0, engine: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`).map(Number)) {
    const other = engine.includes(thread) ? "engine" : pool.includes(thread) ? "pool" : "worker";
    used[thread === pid ? "main" : other] += cpuOfThread(pid, thread);
  }
  return used;
}

/** What was used between two moments, for each of `count` requests. */
export function cpuPerRequest(before: Cpu, after: Cpu, count: number): Cpu {
  const each = (kind: keyof Cpu) => (after[kind] - before[kind]) / count;
  return { main: each("main"), worker: each("worker"), pool: each("pool"), engine: each("engine") };
}

export function totalCpu({ main, worker, pool, engine }: Cpu): number {
  return main + worker + pool + engine;
}

/** The scheduler's own count, in nanoseconds; `stat` has hundredths of a second only. */
function cpuOfThread(pid: number, thread: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1000;
  } catch {
    return 0; // it has just ended
  }
}

/** Forgets the peak so far; from here `memoryOf` tells the peak since. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** Resident memory in MiB. */
export function memoryOf(pid: number): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1024;
  return { now: field("VmRSS"), peak: field("VmHWM") };
}
