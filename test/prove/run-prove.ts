/** Runs `strongroom prove` on a server, and reads its report. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Check, Report } from "../../prove/report.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { isInstalled, run } from "../../tools/rig/process.js";
import { passphrase } from "../../tools/rig/server.js";
import { runHere } from "../support/command-here.js";

export type Proven = { readonly code: number | null; readonly report: Report };

/** Skips a suite where one process may not read another's memory: not Linux, or Yama without root. */
export function needsForeignMemory(this: Mocha.Context): void {
  const scope = "/proc/sys/kernel/yama/ptrace_scope";
  const isAllowed = process.getuid?.() === 0 || !existsSync(scope) || readFileSync(scope, "latin1").startsWith("0");
  needs(this, existsSync("/proc/self/mem") && isAllowed, "the right to read the memory of other processes");
}

export function passphraseFile(text = passphrase): string {
  const file = join(temporaryDirectory(), "passphrase");
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

/** With the passphrase, unless the flags say otherwise. */
export async function prove(home: string, ...flags: readonly string[]): Promise<Proven> {
  const isGiven = flags.includes("--as-attacker") || flags.includes("--passphrase-file");
  const known = isGiven ? [] : ["--passphrase-file", passphraseFile()];
  const more = { STRONGROOM_HOME: home };
  const runProve = flags.includes("--dump") && !isInstalled ? runHere : run; // no server needs this process then
  const { code, stdout, stderr } = await runProve(["prove", "--json", ...known, ...flags], more);
  if (stdout === "") throw new Error(`prove printed nothing, but: ${stderr}`);
  return { code, report: JSON.parse(stdout) as Report };
}

export function listFailures({ report }: Proven): string[] {
  return report.checks.filter(({ holds }) => !holds).map(formatCheck);
}

function formatCheck({ step, state, what, found, detail }: Check): string {
  return `${step}: ${state === null ? "" : `${state}: `}${what}: ${found}${detail === undefined ? "" : ` (${detail})`}`;
}

/** Finds of the attacker's scan, look by look. */
export function attackerFound({ report }: Proven): (string | number)[] {
  return report.checks.filter(({ step }) => step === "attacker").map(({ state, found }) => `${state} ${found}`);
}
