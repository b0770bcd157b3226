/** Table of growth: the cost of vaults with more and more secrets, which must be at most linear. */
import { setTimeout as sleep } from "node:timers/promises";
import { cleanUpMark, cleanUpTo } from "../../test/support/clean-up.js";
import { mustUnlock, send } from "../../test/support/test-client.js";
import { contender, type Requests } from "../measure.js";
import type { Options } from "../options.js";
import type { Finding, Grid } from "../outcome.js";
import type { Bench, Scenario } from "../scenario.js";
import { median, ratios, spreadOf } from "../statistics.js";
import { startStrongroom } from "../subjects.js";
import { shown } from "../tables.js";
import { memoryOf, totalCpu } from "../usage.js";
import { getOn, listOfAll, listOfHundred, put } from "../workloads.js";
import { timed } from "./starts.js";

/** Times in milliseconds, CPU in milliseconds per request, memory in MiB. */
type Size = {
  readonly listening: number;
  readonly resident: number;
  /** Reads the beginning of every file; later lists find it in memory. */
  readonly firstList: number;
  readonly listAll: number;
  readonly listAllCpu: number;
  readonly listHundred: number;
  readonly listHundredCpu: number;
  readonly get: number;
  readonly getCpu: number;
  readonly put: number;
  readonly putCpu: number;
};

const columns: Readonly<Record<keyof Size, string>> = {
  listening: "listening ms",
  resident: "resident MiB",
  firstList: "first list ms",
  listAll: "list all ms",
  listAllCpu: "CPU ms",
  listHundred: "list 100 ms",
  listHundredCpu: "CPU ms",
  get: "get ms",
  getCpu: "CPU ms",
  put: "put ms",
  putCpu: "CPU ms",
};

/** The figures compared between sizes: CPU where possible, since it varies less. */
const growing = {
  listening: "time to listening",
  firstList: "time of the first list of all",
  listAllCpu: "CPU of a list of all",
  listHundredCpu: "CPU of a list of 100",
  getCpu: "CPU of a get",
  putCpu: "CPU of a put",
} as const;

export const growth: Scenario = {
  name: "growth",
  about: "start-up, memory, list, get and put with 1,000, 10,000 and 100,000 secrets (--million: 1,000,000)",
  vaults: sizes,
  async run(bench) {
    const taken = new Map<number, Size[]>();
    for (let round = 0; round < bench.options.rounds; round++) {
      for (const count of sizes(bench.options)) {
        taken.set(count, [...(taken.get(count) ?? []), await measureSize(bench, count)]);
      }
    }
    return [{ scenario: "growth, 1 connection", series: [], findings: growths(taken), grid: gridOf(taken) }];
  },
};

function sizes({ million }: Options): number[] {
  return [1_000, 10_000, 100_000, ...(million ? [1_000_000] : [])];
}

async function measureSize(bench: Bench, count: number): Promise<Size> {
  const mark = cleanUpMark();
  const { value: subject, ms: listening } = await timed(() => startStrongroom(bench.home(count)));
  await mustUnlock(subject.server);
  await sleep(300);
  const resident = memoryOf(subject.pid).now;
  const one = async (requests: Requests) => {
    const { sample } = contender(bench, subject, { requests: requests.requests, connections: 1 });
    const { perSecond, cpu } = await sample(Math.min(1, bench.options.seconds));
    return { ms: 1000 / perSecond, cpu: totalCpu(cpu) / 1000 };
  };
  const [hundred, got] = [await one(listOfHundred(count)), await one(getOn(1))];
  const stored = await one({ ...put, requests: put.requests.slice(0, 16) });
  const { ms: firstList } = await timed(() => send(subject.server, { path: "/v1/secrets" }));
  const all = await one(listOfAll);
  await cleanUpTo(mark);
  return {
    ...{ listening, resident, firstList, listAll: all.ms, listAllCpu: all.cpu },
    ...{ listHundred: hundred.ms, listHundredCpu: hundred.cpu },
    ...{ get: got.ms, getCpu: got.cpu, put: stored.ms, putCpu: stored.cpu },
  };
}

function gridOf(taken: ReadonlyMap<number, readonly Size[]>): Grid {
  const figures = Object.keys(columns) as (keyof Size)[];
  const rows = [...taken].map(([count, all]) => [
    count.toLocaleString("en"),
    ...figures.map((figure) => shown(median(all.map((one) => one[figure])))),
  ]);
  return [["secrets", ...figures.map((figure) => columns[figure])], ...rows];
}

/** The factor for a ten times larger vault: 10 is linear, 1 is independent of the size. */
function growths(taken: ReadonlyMap<number, readonly Size[]>): Finding[] {
  const counts = [...taken.keys()];
  return counts.slice(1).flatMap((count, i) => {
    const before = counts[i] ?? 0;
    return (Object.keys(growing) as (keyof typeof growing)[]).map((figure): Finding => {
      const all = (of: number) => (taken.get(of) ?? []).map((one) => one[figure]);
      const what = `${growing[figure]}, ${count.toLocaleString("en")} of ${before.toLocaleString("en")}'s`;
      return { what, value: spreadOf(ratios(all(count), all(before))), unit: "×" };
    });
  });
}
