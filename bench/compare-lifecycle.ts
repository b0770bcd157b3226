/** CPU of a server's start, and of a lock with the unlock and the first get after it, for two commits. */
import { cleanUpMark, cleanUpTo } from "../test/support/clean-up.js";
import { mustGet, mustLock, mustUnlock } from "../test/support/test-client.js";
import { filledHome, homeFilledBy, pathOf } from "./filled-vaults.js";
import { type Pace, settle } from "./measure.js";
import type { Finding, Outcome } from "./outcome.js";
import { ratios, spreadOf } from "./statistics.js";
import { type StrongroomSubject, startStrongroom } from "./subjects.js";
import { cpuOf, totalCpu } from "./usage.js";

const secrets = 100;

/** A commit's built command. */
export type Build = { readonly name: string; readonly main: string };

export const lifecycles = {
  start: { what: "CPU of a start", measure: cpuOfStart },
  relock: { what: "CPU of lock, unlock and the first get", measure: cpuOfRelock },
} as const;

/** Alternates the two; the first round is warm-up and dropped. */
export async function compareLifecycle(
  name: keyof typeof lifecycles,
  [here, there]: readonly [Build, Build],
  { rounds }: Pace,
): Promise<Outcome> {
  const { what, measure } = lifecycles[name];
  const mark = cleanUpMark();
  const homes = [await filledHome(secrets), await homeFilledBy(there, secrets)];
  const taken: [number[], number[]] = [[], []];
  for (let round = -1; round < rounds; round++) {
    for (const [i, build] of [here, there].entries()) {
      const ms = await measure(homes[i] ?? "", build);
      if (round >= 0) taken[i]?.push(ms);
    }
  }
  await cleanUpTo(mark);
  const [ours, theirs] = taken;
  const findings: Finding[] = [
    { what: `${what}, ${here.name}`, value: spreadOf(ours), unit: "ms" },
    { what: `${what}, ${there.name}`, value: spreadOf(theirs), unit: "ms" },
    { what: `${what}, of ${there.name}'s`, value: spreadOf(ratios(ours, theirs)), unit: "×" },
  ];
  return { scenario: name, series: [], findings };
}

/** In milliseconds, until the server is idle. */
function cpuOfStart(home: string, build: Build): Promise<number> {
  return withServer(home, build, async (subject) => {
    await settle(subject);
    return used(subject);
  });
}

/** In milliseconds, until the server is idle. It includes one derivation at the lowest cost. */
function cpuOfRelock(home: string, build: Build): Promise<number> {
  return withServer(home, build, async (subject) => {
    const { server } = subject;
    await mustUnlock(server);
    await settle(subject);
    const before = used(subject);
    await mustLock(server);
    await mustUnlock(server);
    await mustGet(server, pathOf(0));
    await settle(subject);
    return used(subject) - before;
  });
}

function used({ pid, threads }: StrongroomSubject): number {
  return totalCpu(cpuOf(pid, threads)) / 1000;
}

async function withServer<T>(home: string, build: Build, work: (subject: StrongroomSubject) => Promise<T>): Promise<T> {
  const mark = cleanUpMark();
  const subject = await startStrongroom(home, build);
  const result = await work(subject);
  await cleanUpTo(mark);
  return result;
}
