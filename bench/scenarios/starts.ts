/** Scenario of starting: time until it listens, time of the first responses, memory per secret. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cleanUpMark, cleanUpTo } from "../../test/support/clean-up.js";
import { mustGet, mustList, mustStatus, mustUnlock } from "../../test/support/test-client.js";
import { pathOf } from "../filled-vaults.js";
import type { Finding, Outcome, Target } from "../outcome.js";
import type { Scenario } from "../scenario.js";
import { ratios, spreadOf } from "../statistics.js";
import { startProgram, startStrongroom } from "../subjects.js";
import { memoryOf } from "../usage.js";

const counts = [0, 10_000, 100_000] as const;

/** Times in milliseconds, memory in MiB. */
type Start = {
  readonly listening: number;
  readonly firstStatus: number;
  readonly secondStatus: number;
  readonly firstGet: number;
  readonly resident: number;
  readonly residentAfterList: number;
  readonly walk: number;
};

export const start: Scenario = {
  name: "start",
  about: "start-up with 0, 10,000 and 100,000 secrets, against a bare walk of the same directories",
  vaults: () => counts,
  async run(bench) {
    const taken = new Map<number, Start[]>(counts.map((count) => [count, []]));
    for (let round = -1; round < bench.options.rounds; round++) {
      for (const count of counts) {
        const one = await startOnce(bench.home(count), count);
        if (round >= 0) taken.get(count)?.push(one); // the first round only warms the page cache
      }
    }
    const empty = taken.get(0) ?? [];
    return counts.map((count) => outcome(count, taken.get(count) ?? [], empty));
  },
};

async function startOnce(home: string, count: number): Promise<Start> {
  const walk = await walkOnce(join(home, "vault"));
  const mark = cleanUpMark();
  const { value: subject, ms: listening } = await timed(() => startStrongroom(home));
  const { server, pid } = subject;
  const { ms: firstStatus } = await timed(() => mustStatus(server));
  const { ms: secondStatus } = await timed(() => mustStatus(server));
  await mustUnlock(server);
  const { ms: firstGet } = count === 0 ? { ms: 0 } : await timed(() => mustGet(server, pathOf(42)));
  await sleep(300);
  const resident = memoryOf(pid).now;
  await mustList(server);
  const residentAfterList = memoryOf(pid).now;
  await cleanUpTo(mark);
  return { listening, firstStatus, secondStatus, firstGet, resident, residentAfterList, walk };
}

/** As a whole process, like the server. */
async function walkOnce(directory: string): Promise<number> {
  const mark = cleanUpMark();
  const { ms } = await timed(() => startProgram("walk.js", { BENCH_DIRECTORY: directory }));
  await cleanUpTo(mark);
  return ms;
}

export async function timed<T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const began = performance.now();
  const value = await work();
  return { value, ms: performance.now() - began };
}

function outcome(count: number, starts: readonly Start[], empty: readonly Start[]): Outcome {
  const all = (figure: keyof Start) => starts.map((one) => one[figure]);
  const ms = (what: string, figure: keyof Start): Finding => ({ what, value: spreadOf(all(figure)), unit: "ms" });
  const perSecret = (what: string, figure: keyof Start, target?: Target): Finding => {
    const more = starts.map((one, i) => ((one[figure] - (empty[i]?.[figure] ?? 0)) * 1024) / count);
    return { what, value: spreadOf(more), unit: "KiB", ...(target && { target }) };
  };
  const toWalk = spreadOf(ratios(all("listening"), all("walk")));
  const limit = count === 100_000 ? { target: { atMost: 3 } } : {};
  const common: Finding[] = [
    ms("from start to listening", "listening"),
    ms("bare walk of its directories", "walk"),
    { what: "listening, of the bare walk's", value: toWalk, unit: "×", ...limit },
    ms("first status", "firstStatus"),
    ms("second status", "secondStatus"),
    { what: "resident, unlocked", value: spreadOf(all("resident")), unit: "MiB" },
  ];
  const scenario = `start with ${count.toLocaleString("en")} secrets`;
  if (count === 0) return { scenario, series: [], findings: common };
  const memory = [
    ms("first get", "firstGet"),
    perSecret("memory a secret", "resident", count === 100_000 ? { atMost: 1.5 } : undefined),
    perSecret("memory a secret, after a list of all", "residentAfterList"),
  ];
  return { scenario, series: [], findings: [...common, ...memory] };
}
