/** Backup, restore and doctor of vaults with more and more secrets: the cost of a secret must not grow. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUpMark, cleanUpTo, temporaryDirectory } from "../../test/support/clean-up.js";
import { environment, mainFile, node } from "../../test/support/process.js";
import { passphrase } from "../../test/support/server.js";
import type { Options } from "../options.js";
import type { Finding } from "../outcome.js";
import type { Bench, Scenario } from "../scenario.js";
import { median, ratios, spreadOf } from "../statistics.js";
import { shown } from "../tables.js";

/** Microseconds of CPU and of time for a secret; memory in MiB. */
type Cost = { readonly cpu: number; readonly time: number; readonly memory: number };

const works = ["backup", "restore", "doctor", "doctor --open"] as const;
type Work = (typeof works)[number];

export const maintenance: Scenario = {
  name: "maintenance",
  about: "backup, restore and doctor of 10,000 and 100,000 secrets (--million: 1,000,000)",
  vaults: sizes,
  async run(bench) {
    const taken = new Map<string, Cost[]>();
    for (let round = 0; round < bench.options.rounds; round++) {
      for (const count of sizes(bench.options)) {
        for (const [work, cost] of await costsOf(bench, count)) {
          taken.set(keyOf(work, count), [...(taken.get(keyOf(work, count)) ?? []), cost]);
        }
      }
    }
    const counts = sizes(bench.options);
    const rows = works.flatMap((work) =>
      counts.map((count) => rowOf(work, count, taken.get(keyOf(work, count)) ?? [])),
    );
    const heads = ["work", "secrets", "CPU µs a secret", "µs a secret", "memory MiB"];
    return [
      { scenario: "maintenance, stopped server", series: [], findings: growths(counts, taken), grid: [heads, ...rows] },
    ];
  },
};

function sizes({ million }: Options): readonly number[] {
  return million ? [10_000, 100_000, 1_000_000] : [10_000, 100_000];
}

async function costsOf(bench: Bench, count: number): Promise<ReadonlyMap<Work, Cost>> {
  const mark = cleanUpMark();
  const [home, files] = [bench.home(count), temporaryDirectory()];
  const archive = join(files, "b.tar");
  const typed = join(files, "passphrase");
  writeFileSync(typed, passphrase, { mode: 0o600 });
  const costs = new Map<Work, Cost>([
    ["backup", await costOf(count, home, ["backup", archive])],
    ["restore", await costOf(count, join(files, "home"), ["restore", archive])],
    ["doctor", await costOf(count, home, ["doctor"])],
    ["doctor --open", await costOf(count, home, ["doctor", "--passphrase-file", typed])],
  ]);
  await cleanUpTo(mark);
  return costs;
}

async function costOf(count: number, home: string, command: readonly string[]): Promise<Cost> {
  const [began, used] = [performance.now(), endedChildren()];
  const child = spawn(node, [mainFile, ...command], { env: environment({ STRONGROOM_HOME: home }), stdio: "ignore" });
  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, peakOf(child.pid ?? 0));
  }, 50);
  const [code] = await once(child, "exit");
  clearInterval(watch);
  if (code !== 0) throw new Error(`${command[0]} exits with ${code}`);
  const [time, cpu] = [performance.now() - began, endedChildren() - used];
  return { cpu: cpu / count, time: (1000 * time) / count, memory: peak };
}

/** CPU of all ended children, in microseconds (proc(5), fields 16 and 17 of stat). */
function endedChildren(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) * 10_000;
}

function peakOf(pid: number): number {
  try {
    const [, kibibytes = "0"] = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kibibytes) / 1024;
  } catch {
    return 0; // it has just ended
  }
}

function keyOf(work: Work, count: number): string {
  return `${work} ${count}`;
}

function rowOf(work: Work, count: number, costs: readonly Cost[]): string[] {
  const figure = (of: (cost: Cost) => number) => shown(median(costs.map(of)));
  return [
    work,
    count.toLocaleString("en"),
    figure(({ cpu }) => cpu),
    figure(({ time }) => time),
    figure(({ memory }) => memory),
  ];
}

/** CPU of a secret in each vault, as a factor of that in the smallest. */
function growths([smallest = 0, ...larger]: readonly number[], taken: ReadonlyMap<string, readonly Cost[]>): Finding[] {
  const cpuOf = (work: Work, count: number) => (taken.get(keyOf(work, count)) ?? []).map(({ cpu }) => cpu);
  return works.flatMap((work) =>
    larger.map((count): Finding => {
      const what = `CPU a secret of ${work}, ${count.toLocaleString("en")} of ${smallest.toLocaleString("en")}'s`;
      return {
        what,
        value: spreadOf(ratios(cpuOf(work, count), cpuOf(work, smallest))),
        unit: "×",
        target: { atMost: 1.5 },
      };
    }),
  );
}
