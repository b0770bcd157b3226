/** The options that `npm run bench` and `npm run bench:compare` share, and the clean-up of both. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { cleanUpTo } from "../tools/rig/clean-up.js";
import { markdownTable, type Outcome, plainTable } from "./figures.js";
import { canMeasure } from "./process-usage.js";

export type Options = {
  readonly only: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly json: boolean;
  readonly markdown: boolean;
  /** Flags for the measured servers' Node. */
  readonly nodeFlags: readonly string[];
  readonly million: boolean;
  /** The program of OpenBao. */
  readonly bao: string;
  /** VARIABLE=VALUE, for the servers of this tree. */
  readonly settings: readonly string[];
};

export const sharedUsage = `  --only A,B       only these
  --rounds N       rounds, alternated; default 7
  --seconds S      seconds that each measurement lasts; default 2
  --profile DIR    write CPU profiles of the servers' main threads
  --markdown       print tables in Markdown
  --json           print all findings as JSON
`;

const spelled = {
  only: { type: "string" },
  rounds: { type: "string", default: "7" },
  seconds: { type: "string", default: "2" },
  profile: { type: "string" },
  markdown: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  million: { type: "boolean", default: false },
  bao: { type: "string", default: "bao" },
  with: { type: "string", multiple: true, default: [] as string[] },
  help: { type: "boolean", default: false },
} as const;

/** The command line is wrong; the message says how. */
export class UsageError extends Error {}

/**
 * Reads the command line.
 * @param names what `--only` may name
 * @param onlyIfNamed what is left out without `--only`
 * @returns null when help is asked for
 * @throws UsageError
 */
export function readOptions(
  args: readonly string[],
  names: readonly string[],
  onlyIfNamed: readonly string[] = [],
): (Options & { ref?: string }) | null {
  const { values, positionals } = parsed(args);
  if (values.help) return null;
  const only = values.only?.split(",") ?? names.filter((name) => !onlyIfNamed.includes(name));
  const unknown = only.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new UsageError(`there is no ${unknown.join(", ")}; there are ${names.join(", ")}`);
  const { json, markdown, million, profile, bao } = values;
  return {
    only,
    rounds: atLeast("--rounds", values.rounds, 1),
    seconds: atLeast("--seconds", values.seconds, 0.1),
    ...{ json, markdown, million, bao, settings: values.with },
    nodeFlags: profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${resolve(profile)}`],
    ...(positionals[0] !== undefined && { ref: positionals[0] }),
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: spelled, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function atLeast(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (!(value >= least)) throw new UsageError(`${flag} must be a number of at least ${least}`);
  return value;
}

/** Prints each outcome as it is found, or all of them as JSON at the end. */
export async function show(outcomes: AsyncIterable<Outcome>, { json, markdown }: Options, about: object) {
  const all: Outcome[] = [];
  for await (const outcome of outcomes) {
    all.push(outcome);
    if (!json) process.stdout.write(markdown ? markdownTable(outcome) : plainTable(outcome));
  }
  if (json) process.stdout.write(`${JSON.stringify({ ...about, outcomes: all }, null, 2)}\n`);
}

/** Runs a benchmark's command line: a wrong one exits with 2; everything started ends with the command, also on Ctrl-C. */
export async function runCommand(usage: string, work: () => Promise<void>): Promise<void> {
  try {
    if (!canMeasure()) throw new UsageError("the benchmark reads CPU and memory from /proc, which only Linux has");
    await cleaningUp(work);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n\n${usage}`);
    process.exitCode = 2;
  }
}

async function cleaningUp(work: () => Promise<void>): Promise<void> {
  let stopping: Promise<void> | null = null;
  const stop = () => {
    stopping ??= cleanUpTo(0).finally(() => process.exit(130));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
  process.stdout.on("error", stop); // the reader of the tables has gone
  try {
    await work();
  } catch (error) {
    if (stopping === null) throw error; // after an interruption the error is only that a process has gone
  } finally {
    await (stopping ?? cleanUpTo(0));
  }
}
