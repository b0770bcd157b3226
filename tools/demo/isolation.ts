/**
 * Demonstration of key isolation for reviewers: searches the memory of a naive server and of ours, tries attacks, and ends
 * with a verdict. `--json` is for machines.
 */
import { existsSync } from "node:fs";
import { cleanUpTo } from "../rig/clean-up.js";
import { tryAttacks } from "./attacks.js";
import { compareServers } from "./control.js";
import { type Attack, Printout } from "./printout.js";

const flags = process.argv.slice(2);
const asJson = flags.includes("--json");
const unknown = flags.find((flag) => flag !== "--json");
const printout = new Printout(process.stdout);

function say(text: string): void {
  if (!asJson) process.stdout.write(text);
}

async function demonstrate(): Promise<boolean> {
  const copies = await compareServers();
  say(printout.comparison(copies));
  const attacks: Attack[] = [];
  for await (const attack of tryAttacks()) {
    attacks.push(attack);
    say(printout.attack(attack));
  }
  const holds = [...copies, ...attacks].every((finding) => finding.holds);
  say(printout.verdict(holds));
  if (asJson) process.stdout.write(`${JSON.stringify({ node: process.version, copies, attacks, holds }, null, 2)}\n`);
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
