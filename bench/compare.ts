/**
 * Entry point of `npm run bench:compare <git-ref>`: builds another commit in a temporary directory and alternates the two
 * under the same load, so that changes of the machine's speed affect both.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { cleanUpMark, cleanUpTo, later, temporaryDirectory } from "../test/support/clean-up.js";
import { mainFile } from "../test/support/process.js";
import { mustUnlock } from "../test/support/test-client.js";
import { compareLifecycle, lifecycles } from "./compare-lifecycle.js";
import { filledHome, homeFilledBy } from "./filled-vaults.js";
import { alternate, contender, type Loaders, startLoaders } from "./measure.js";
import { type Options, readOptions, UsageError } from "./options.js";
import { compare, cpu, mainCpu, type Outcome, p50, p99, throughput } from "./outcome.js";
import { cleaningUp } from "./run-scenarios.js";
import { type StrongroomSubject, startStrongroom } from "./subjects.js";
import { markdownOutcome, showOutcome } from "./tables.js";
import { canMeasure } from "./usage.js";
import { type Workload, workloads } from "./workloads.js";

const usage = `usage: npm run bench:compare -- <git-ref> [--only A,B] [--rounds N] [--seconds S] [--markdown] [--json]

  scenarios: get, get-1, get-cold, list-100, list-all, put, mixed, status, get-large, put-large,
             start, relock (CPU of a start, and of lock, unlock and the first get)
`;

try {
  const [ref, ...args] = process.argv.slice(2);
  const options = ref === undefined || ref.startsWith("-") ? null : readOptions(args);
  if (ref === undefined || options === null) process.stdout.write(usage);
  else if (!canMeasure()) throw new UsageError("the benchmark reads CPU and memory from /proc, which only Linux has");
  else await cleaningUp(() => compareWith(ref, options));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}

async function compareWith(ref: string, options: Options): Promise<void> {
  const wanted = chosen(options);
  const asked = (Object.keys(lifecycles) as (keyof typeof lifecycles)[]).filter((name) => isWanted(name, options));
  const main = await build(ref);
  const loaders = await startLoaders();
  const outcomes: Outcome[] = [];
  const show = (outcome: Outcome) => {
    outcomes.push(outcome);
    if (!options.json) process.stdout.write(options.markdown ? markdownOutcome(outcome) : showOutcome(outcome));
  };
  for (const workload of wanted) {
    const mark = cleanUpMark();
    show(await compareIn(workload, ref, main, loaders, options));
    await cleanUpTo(mark);
  }
  const builds = [
    { name: "this tree", main: mainFile },
    { name: ref, main },
  ] as const;
  for (const name of asked) show(await compareLifecycle(name, builds, options));
  if (options.json) process.stdout.write(`${JSON.stringify({ ref, options, outcomes }, null, 2)}\n`);
}

function chosen(options: Options): Workload[] {
  const all = workloads(options);
  const known = [...all.map(({ name }) => name), ...Object.keys(lifecycles)];
  const unknown = options.only?.filter((name) => !known.includes(name)) ?? [];
  if (unknown.length > 0) throw new UsageError(`there is no scenario ${unknown.join(", ")}`);
  return all.filter(({ name }) => isWanted(name, options));
}

function isWanted(name: string, { only }: Options): boolean {
  return only?.includes(name) ?? true;
}

/** Checks the commit out, installs and builds it; returns the command's file. The directory is removed at the end. */
async function build(ref: string): Promise<string> {
  const tree = join(temporaryDirectory(), "tree");
  later(async () => {
    await rm(tree, { recursive: true, force: true });
    await mustRun("git", ["worktree", "prune"]);
  });
  await mustRun("git", ["worktree", "add", "--quiet", "--detach", tree, ref]);
  await mustRun("npm", ["ci", "--silent", "--no-audit", "--no-fund"], tree);
  await mustRun("npm", ["run", "--silent", "build"], tree);
  const manifest = JSON.parse(await readFile(join(tree, "package.json"), "utf8")) as { bin: { strongroom: string } };
  return join(tree, manifest.bin.strongroom);
}

async function mustRun(command: string, args: readonly string[], cwd = process.cwd()): Promise<void> {
  const child = spawn(command, args, { cwd, stdio: ["ignore", "ignore", "inherit"] });
  const ended = once(child, "exit");
  later(async () => {
    child.kill();
    await ended;
  });
  const [code] = await ended;
  if (code !== 0) throw new UsageError(`${command} ${args.slice(0, 2).join(" ")} failed: there is nothing to compare`);
}

async function compareIn(
  workload: Workload,
  ref: string,
  main: string,
  loaders: Loaders,
  options: Options,
): Promise<Outcome> {
  const here = await unlocked(workload, await filledHome(workload.secrets), mainFile, "this tree");
  const there = await unlocked(workload, await homeFilledBy({ main }, workload.secrets), main, ref);
  const contenders = [here, there].map((subject) => contender(loaders, subject, workload));
  const series = await alternate(contenders, options);
  const [ours, theirs] = series;
  const findings = [
    compare(`throughput, of ${ref}'s`, ours, theirs, throughput),
    compare(`p50, of ${ref}'s`, ours, theirs, p50),
    compare(`p99, of ${ref}'s`, ours, theirs, p99),
    compare(`CPU a request, of ${ref}'s`, ours, theirs, cpu),
    compare(`CPU a request in the main thread, of ${ref}'s`, ours, theirs, mainCpu),
  ];
  return { scenario: workload.name, series, findings };
}

async function unlocked(workload: Workload, home: string, main: string, name: string): Promise<StrongroomSubject> {
  const subject = await startStrongroom(home, { main, name });
  await mustUnlock(subject.server);
  await workload.prepare?.(subject);
  return subject;
}
