/**
 * Demonstration of key isolation for reviewers: takes a vault on a real server through its states, shows after each step
 * where its secrets are found, tries attacks, and ends with a verdict. `--json` is for machines.
 */
import { existsSync } from "node:fs";
import { cleanUpTo } from "../test/support/clean-up.js";
import { tryAttacks } from "./attacks.js";
import { type Step, showAttacks, showStep, showVerdict } from "./printout.js";
import { playSteps } from "./steps.js";

const asJson = process.argv.includes("--json");

function say(text: string): void {
  if (!asJson) process.stdout.write(text);
}

async function demonstrate(): Promise<boolean> {
  const steps: Step[] = [];
  say("copies of each secret, as strings in the two threads' heaps and as bytes in all of the process's memory\n");
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

if (!existsSync("/proc/self/mem")) {
  process.stderr.write("the demonstration reads /proc/PID/mem, which only Linux has\n");
  process.exitCode = 2;
} else {
  try {
    process.exitCode = (await demonstrate()) ? 0 : 1;
  } finally {
    await cleanUpTo(0);
  }
}
