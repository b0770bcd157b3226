/**
 * State that this process inherits and Node does not pass on: ignored signals, which Node resets at its start before
 * any code runs, descriptors beside the standard streams, which it marks to be closed, and text that is not UTF-8.
 * `bin/strongroom.cjs` looks while it is still a shell, and says what it sees in variables.
 */
import { isUtf8 } from "node:buffer";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { closeSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Io } from "../io.js";
import { say } from "../output.js";

export type Inherited = {
  /** Names without `SIG`, as `env` takes them. */
  readonly ignored: readonly string[];
  /** Inherited descriptors from 3 on. */
  readonly descriptors: readonly number[];
};

const [hangUp, seen] = ["STRONGROOM_SIGHUP", "STRONGROOM_INHERITED"];

const mostDescriptors = 256;

/** State inherited by this process. The variables do not describe the programs that it starts. */
export const inherited: Inherited = readInherited(process.env[hangUp], process.env[seen]);
delete process.env[hangUp];
delete process.env[seen];

export const hangUpIgnored = inherited.ignored.includes("HUP");
if (hangUpIgnored) process.on("SIGHUP", () => {});

/** `text`: the mask of ignored signals in hex, as in proc_pid_status(5), and the numbers of descriptors. */
function readInherited(hup: string | undefined, text = ""): Inherited {
  const [mask = "", ...numbers] = text.split(" ");
  const bits = /^[0-9a-f]+$/.test(mask) ? BigInt(`0x${mask}`) : 0n;
  const isIgnored = (number: number) => ((bits >> BigInt(number - 1)) & 1n) === 1n;
  const names = Object.entries(constants.signals).filter(([, number]) => isIgnored(number));
  const byNumber = new Map(names.map(([name, number]) => [number, name.slice("SIG".length)]));
  if (hup === "ignored") byNumber.set(constants.signals.SIGHUP, "HUP");
  const descriptors = numbers
    .map(Number)
    .filter((each) => Number.isInteger(each) && each > 2 && each < mostDescriptors);
  return { ignored: [...byNumber.values()], descriptors: [...new Set(descriptors)] };
}

/** Program, name and arguments, as `spawn` takes them. */
type Start = { readonly file: string; readonly argv0: string; readonly args: readonly string[] };

const envFile = "/usr/bin/env";

/**
 * Returns the start of a program with these signals ignored; where this system's `env` cannot do that, warns and returns the
 * start as it is. A shell would evaluate values that are in the environment; `env` does not.
 */
export function ignoringSignals(signals: readonly string[], start: Start, warn: (text: string) => void): Start {
  if (signals.length === 0) return start;
  const flag = `--ignore-signal=${signals.join(",")}`;
  if (start.argv0.includes("=") || spawnSync(envFile, [flag, "true"], { stdio: "ignore" }).status !== 0) {
    warn(explainSignals(signals));
    return start;
  }
  return { file: envFile, argv0: "env", args: [flag, "--", start.argv0, ...start.args] };
}

/** Says that signals cannot be ignored, and how they can be. */
function explainSignals(signals: readonly string[]): string {
  return (
    `warning: ${signals.join(", ")}, which this command was started to ignore, end the program: this system's env ` +
    "has no --ignore-signal. Let the program ignore them, as in  -- nohup PROGRAM\n"
  );
}

/** Returns the streams of a child that gets these descriptors under their numbers. */
export function withDescriptors(
  streams: readonly ("inherit" | "pipe" | "ignore" | number)[],
  descriptors: readonly number[],
): ("inherit" | "pipe" | "ignore" | number)[] {
  const all = [...streams];
  for (const descriptor of descriptors) {
    while (all.length < descriptor) all.push("ignore"); // closed
    all[descriptor] = descriptor;
  }
  return all;
}

/** Closes what a child has: a pipe ends only when no process has it. */
export function closeInherited(descriptors: readonly number[]): void {
  for (const descriptor of descriptors) {
    try {
      closeSync(descriptor);
    } catch {
      // closed already
    }
  }
}

/** Starts a program on the same standard streams, with the descriptors and ignored signals of this process. */
export function spawnInheriting(start: Start, env: NodeJS.ProcessEnv, warn: (text: string) => void): ChildProcess {
  const { ignored, descriptors } = inherited;
  const { file, argv0, args } = ignoringSignals(ignored, start, warn);
  const stdio = withDescriptors(["inherit", "inherit", "inherit"], descriptors);
  const child = spawn(file, args, { env, argv0, stdio });
  closeInherited(descriptors);
  return child;
}

/** Returns the environment for a command of the user, which Node would give altered bytes; warns of the variables left out. */
export function readableEnvironment(io: Io): NodeJS.ProcessEnv {
  const { env, lost } = readableVariables(io.env);
  if (lost.length > 0)
    say(io, `strongroom: warning: not UTF-8, and so not passed on to the command: ${lost.join(", ")}\n`);
  return env;
}

/** The character that Node reads in place of bytes that are not UTF-8. */
const replacement = "\ufffd";

/** Returns the first argument of the command line that is not UTF-8, counted from 1; null for none. */
export function argumentNotUtf8(args: readonly string[]): number | null {
  if (!args.some((text) => text.includes(replacement))) return null;
  const words = splitAtZeros("/proc/self/cmdline").slice(-args.length);
  const found = words.findIndex((word) => !isUtf8(word));
  return found < 0 ? null : found + 1;
}

/** Returns the environment without the variables that Node could not read, and their names. */
function readableVariables(env: NodeJS.ProcessEnv): { readonly env: NodeJS.ProcessEnv; readonly lost: string[] } {
  const doubtful = Object.entries(env).filter(([name, value]) => `${name}${value}`.includes(replacement));
  if (doubtful.length === 0) return { env, lost: [] };
  const unread = new Set(
    splitAtZeros("/proc/self/environ").flatMap((entry) => (isUtf8(entry) ? [] : [entry.toString()])),
  );
  const lost = doubtful.filter(([name, value]) => unread.has(`${name}=${value}`)).map(([name]) => name);
  return { env: Object.fromEntries(Object.entries(env).filter(([name]) => !lost.includes(name))), lost };
}

/** Returns the parts of a file, each of which ends with a zero byte; none where there is no such file. */
function splitAtZeros(file: string): Buffer[] {
  try {
    const bytes = readFileSync(file);
    const parts: Buffer[] = [];
    for (let from = 0, end = bytes.indexOf(0); end >= 0; from = end + 1, end = bytes.indexOf(0, from))
      parts.push(bytes.subarray(from, end));
    return parts;
  } catch {
    return []; // no Linux
  }
}
