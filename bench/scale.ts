/** Cost of each further secret: CPU and memory of a start, lists, backup, restore and doctor of ever larger vaults. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUpMark, cleanUpTo, temporaryDirectory } from "../tools/rig/clean-up.js";
import { environment, mainFile, node } from "../tools/rig/process.js";
import { passphrase } from "../tools/rig/server.js";
import { mustGet, mustList, mustUnlock } from "../tools/rig/test-client.js";
import { type Finding, found, type Outcome } from "./figures.js";
import { settle } from "./measure.js";
import type { Options } from "./options.js";
import { processCpu, processMemory, totalCpu } from "./process-usage.js";
import { type StrongroomSubject, startStrongroom } from "./subjects.js";
import { filledHome, numberedPath } from "./vaults.js";

/** CPU in milliseconds, of the whole process; the largest memory so far in MiB. */
type Cost = { readonly cpu: number; readonly memory: number };

const sizes = [1_000, 10_000, 100_000];

export async function* measureScale({ rounds, million }: Options): AsyncGenerator<Outcome> {
  let smaller: { readonly count: number; readonly costs: ReadonlyMap<string, readonly Cost[]> } | null = null;
  for (const count of million ? [...sizes, 1_000_000] : sizes) {
    const home = await filledHome(count);
    const costs = new Map<string, Cost[]>();
    for (let round = 0; round < rounds; round++) {
      for (const [work, cost] of [...(await costsOfServer(home)), ...(await costsOfCommands(home))]) {
        costs.set(work, [...(costs.get(work) ?? []), cost]);
      }
    }
    const findings = [...costs].flatMap(([work, all]) => costRows(work, all, count, smaller));
    yield { title: `${count.toLocaleString("en")} secrets`, findings };
    smaller = { count, costs };
  }
}

/** The CPU that each further secret costs says whether the work is linear. */
function costRows(
  work: string,
  costs: readonly Cost[],
  count: number,
  smaller: { readonly count: number; readonly costs: ReadonlyMap<string, readonly Cost[]> } | null,
): Finding[] {
  const rows = [
    found(
      `CPU, ${work}`,
      costs.map(({ cpu }) => cpu),
      "ms",
    ),
    found(
      `memory, ${work}`,
      costs.map(({ memory }) => memory),
      "MiB",
    ),
  ];
  if (smaller === null) return rows;
  const before = smaller.costs.get(work) ?? [];
  const more = costs.map(({ cpu }, i) => (1000 * (cpu - (before[i]?.cpu ?? Number.NaN))) / (count - smaller.count));
  return [...rows, found(`CPU, ${work}, of each further secret`, more, "µs")];
}

async function costsOfServer(home: string): Promise<[string, Cost][]> {
  const mark = cleanUpMark();
  const subject = await startStrongroom(home);
  const { server } = subject;
  await settle(subject);
  const start: Cost = { cpu: cpuSoFar(subject), memory: processMemory(subject.pid).peak };
  await mustUnlock(server);
  const costs: [string, Cost][] = [
    ["start", start],
    ["get", await measureCost(subject, () => mustGet(server, numberedPath(42)))],
    ["page of 100, first", await measureCost(subject, () => mustList(server, "?limit=100"))],
    ["page of 100, again", await measureCost(subject, () => mustList(server, "?limit=100"))],
    ["list of all, first", await measureCost(subject, () => mustList(server))],
    ["list of all, again", await measureCost(subject, () => mustList(server))],
  ];
  await cleanUpTo(mark);
  return costs;
}

async function measureCost(subject: StrongroomSubject, work: () => Promise<unknown>): Promise<Cost> {
  const before = cpuSoFar(subject);
  await work();
  await settle(subject);
  return { cpu: cpuSoFar(subject) - before, memory: processMemory(subject.pid).peak };
}

function cpuSoFar({ pid, threads }: StrongroomSubject): number {
  return totalCpu(processCpu(pid, threads)) / 1000;
}

/** On a stopped server's vault. */
async function costsOfCommands(home: string): Promise<[string, Cost][]> {
  const mark = cleanUpMark();
  const files = temporaryDirectory();
  const archive = join(files, "b.tar");
  const typed = join(files, "passphrase");
  writeFileSync(typed, passphrase, { mode: 0o600 });
  const costs: [string, Cost][] = [
    ["backup", await costOfCommand(home, ["backup", archive])],
    ["restore", await costOfCommand(join(files, "home"), ["restore", archive])],
    ["doctor", await costOfCommand(home, ["doctor"])],
    ["doctor --open", await costOfCommand(home, ["doctor", "--passphrase-file", typed])],
  ];
  await cleanUpTo(mark);
  return costs;
}

async function costOfCommand(home: string, args: readonly string[]): Promise<Cost> {
  const before = cpuOfEndedChildren();
  const child = spawn(node, [mainFile, ...args], { env: environment({ STRONGROOM_HOME: home }), stdio: "ignore" });
  let memory = 0;
  const watch = setInterval(() => {
    memory = Math.max(memory, peakMemory(child.pid ?? 0));
  }, 20);
  const [code] = await once(child, "exit");
  clearInterval(watch);
  if (code !== 0) throw new Error(`${args[0]} exits with ${code}`);
  return { cpu: cpuOfEndedChildren() - before, memory };
}

/** Returns the CPU time of ended children in milliseconds (proc(5), fields 16 and 17 of stat). */
function cpuOfEndedChildren(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

function peakMemory(pid: number): number {
  try {
    return processMemory(pid).peak;
  } catch {
    return 0; // it has just ended
  }
}
