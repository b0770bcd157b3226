/**
 * Demonstration of key isolation for reviewers: takes a vault on a real server through its states, shows after each step
 * where its secrets are found, tries attacks, and ends with a verdict. `--json` is for machines.
 */
import { existsSync } from "node:fs";
import { cleanUpTo } from "../rig/clean-up.js";
import { tryAttacks } from "./attacks.js";
import { type Step, showAttacks, showStep, showVerdict } from "./printout.js";
import { playSteps } from "./steps.js";

const flags = process.argv.slice(2);
const asJson = flags.includes("--json");
const unknown = flags.find((flag) => flag !== "--json");
const legend = `Copies of each secret: as strings in the heaps of the two threads, and as bytes in all of the process's memory.
halves: copies of the first or second half of a secret alone, as a freed buffer can keep them.
canary: a text that must be found, or the search itself does not work.
`;

function say(text: string): void {
  if (!asJson) process.stdout.write(text);
}

async function demonstrate(): Promise<boolean> {
  const steps: Step[] = [];
  say(legend);
  for await (const step of playSteps()) {
    steps.push(step);
    say(showStep(step));
  }
  const attacks = await tryAttacks();
  say(showAttacks(attacks));
  const holds = [...steps.flatMap(({ rows }) => rows), ...attacks].every((finding) => finding.holds);
  say(showVerdict(holds));
  if (asJson) process.stdout.write(`${JSON.stringify({ node: process.version, steps, attacks, holds }, null, 2)}\n`);
  return holds;
}

let cleaning: Promise<void> | null = null;

/** Runs once: requests that fail because the servers stop must not end the process before the clean-up does. */
function cleanUp(): Promise<void> {
  cleaning ??= cleanUpTo(0);
  return cleaning;
}

/** Also when the reader is gone, as in `| head`, or a signal ends the demonstration: no server or file may be left behind. */
function cleanUpAtEveryEnd(): void {
  const end = (code: number) => void cleanUp().finally(() => process.exit(code));
  process.stdout.once("error", () => end(1)).on("error", () => {});
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => end(1));
}

function refuse(problem: string): void {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 2;
}

if (unknown !== undefined) {
  refuse(
    `unknown argument ${JSON.stringify(unknown)}: the only flag is --json, as in  npm run demo:isolation -- --json`,
  );
} else if (!existsSync("/proc/self/mem")) {
  refuse("the demonstration reads /proc/PID/mem, which only Linux has");
} else {
  cleanUpAtEveryEnd();
  try {
    process.exitCode = (await demonstrate()) ? 0 : 1;
  } catch (error) {
    if (cleaning === null) throw error; // after an early end, requests fail because their server has stopped
  } finally {
    await cleanUp();
  }
}
