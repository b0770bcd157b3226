/**
 * Entry point of `npm run bench:compare`: this tree beside another commit, or beside itself with other settings. The two
 * alternate under the same load, so that changes of the machine's speed affect both.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { cleanUpMark, cleanUpTo, later, temporaryDirectory } from "../tools/rig/clean-up.js";
import { mustGet, mustLock, mustUnlock } from "../tools/rig/test-client.js";
import { found, type Outcome, ratios } from "./figures.js";
import { alternate, compareSeries, settle, startLoaders, type Workload } from "./measure.js";
import { type Options, readOptions, runCommand, sharedUsage, show, UsageError } from "./options.js";
import { processCpu, totalCpu } from "./process-usage.js";
import { type StartOptions, type StrongroomSubject, startStrongroom } from "./subjects.js";
import { filledHome, numberedPath } from "./vaults.js";
import { batch, get, getSecrets, list, listSecrets, put } from "./workloads.js";

const workloads: Readonly<Record<string, { readonly secrets: number; readonly workload: Workload }>> = {
  get: { secrets: getSecrets, workload: get(64) },
  "get-1": { secrets: getSecrets, workload: get(1) },
  batch: { secrets: getSecrets, workload: batch },
  list: { secrets: listSecrets, workload: list },
  put: { secrets: 0, workload: put },
};

/** Measured by the CPU that they take, in milliseconds until the server is idle. */
const lifecycles: Readonly<Record<string, (subject: StrongroomSubject) => Promise<number>>> = {
  start: async (subject) => used(subject),
  relock: cpuOfRelock,
};

const usage = `usage: npm run bench:compare -- <git-ref> [options]
       npm run bench:compare -- --with VARIABLE=VALUE [options]

  get, get-1       gets of 200 bytes on 64 connections, and on one
  batch            batches of 100 gets on 4 connections
  list             a page of 100 of 10,000 secrets
  put              puts of 1 KiB on 16 connections
  start, relock    CPU of a start, and of lock, unlock and the first get

  --with V=VALUE   set a variable for this tree's servers (several times for several)
${sharedUsage}`;

/** One side of the comparison. */
type Side = StartOptions & { readonly name: string };

await runCommand(usage, async () => {
  const names = [...Object.keys(workloads), ...Object.keys(lifecycles)];
  const options = readOptions(process.argv.slice(2), names);
  if (options === null || (options.ref === undefined && options.settings.length === 0)) {
    return void process.stdout.write(usage);
  }
  const sides = await buildSides(options);
  await show(outcomes(sides, options), options, { sides: sides.map(({ name }) => name) });
});

async function buildSides({
  ref,
  settings,
  nodeFlags,
}: Options & { readonly ref?: string }): Promise<readonly [Side, Side]> {
  const environment = Object.fromEntries(settings.map(split));
  const here = { name: ["this tree", ...settings].join(" "), environment, nodeFlags };
  if (ref === undefined) return [here, { name: "this tree", nodeFlags }];
  return [here, { name: ref, main: await build(ref), nodeFlags }];
}

function split(setting: string): readonly [string, string] {
  const at = setting.indexOf("=");
  if (at < 1) throw new UsageError("--with takes VARIABLE=VALUE");
  return [setting.slice(0, at), setting.slice(at + 1)];
}

async function* outcomes(sides: readonly [Side, Side], options: Options): AsyncGenerator<Outcome> {
  const loaders = await startLoaders();
  for (const name of options.only) {
    const mark = cleanUpMark();
    const load = workloads[name];
    const measureCpu = lifecycles[name];
    if (load !== undefined) {
      const subjects: StrongroomSubject[] = [];
      for (const side of sides) subjects.push(await unlocked(side, load.secrets));
      const series = await alternate(loaders, subjects, load.workload, options);
      yield { title: name, findings: compareSeries(series) };
    } else if (measureCpu !== undefined) yield await compareLifecycle(name, measureCpu, sides, options);
    await cleanUpTo(mark);
  }
}

async function unlocked(side: Side, secrets: number): Promise<StrongroomSubject> {
  const subject = await startStrongroom(await filledHome(secrets, side), side);
  await mustUnlock(subject.server);
  return subject;
}

async function compareLifecycle(
  name: string,
  measureCpu: (subject: StrongroomSubject) => Promise<number>,
  sides: readonly [Side, Side],
  { rounds }: Options,
): Promise<Outcome> {
  const runs = [];
  for (const side of sides) runs.push({ side, home: await filledHome(getSecrets, side), taken: [] as number[] });
  for (let round = -1; round < rounds; round++) {
    for (const { side, home, taken } of runs) {
      const mark = cleanUpMark();
      const subject = await startStrongroom(home, side);
      await settle(subject);
      const ms = await measureCpu(subject);
      if (round >= 0) taken.push(ms); // the first is warm-up
      await cleanUpTo(mark);
    }
  }
  const [ours = [], theirs = []] = runs.map(({ taken }) => taken);
  const findings = [
    found(`CPU, ${sides[0].name}`, ours, "ms"),
    found(`CPU, of ${sides[1].name}'s`, ratios(ours, theirs), "×"),
  ];
  return { title: name, findings };
}

/** It includes one derivation at the lowest cost. */
async function cpuOfRelock(subject: StrongroomSubject): Promise<number> {
  const { server } = subject;
  await mustUnlock(server);
  await settle(subject);
  const before = used(subject);
  await mustLock(server);
  await mustUnlock(server);
  await mustGet(server, numberedPath(0));
  await settle(subject);
  return used(subject) - before;
}

function used({ pid, threads }: StrongroomSubject): number {
  return totalCpu(processCpu(pid, threads)) / 1000;
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
