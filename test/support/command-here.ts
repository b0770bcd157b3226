/**
 * A call of the command line in the tests' own process: the same code with an `Io` of strings, in a hundredth of the time
 * that a process takes. What needs a process of its own gets one: see `runsHere`.
 */
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommandLine } from "../../src/cli/command-line.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { environment, isInstalled } from "../../tools/rig/process.js";
import { Exited, ownUmask, type StringIo, stringIo } from "../../tools/rig/string-io.js";

export type Finished = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly bytes: Buffer;
};

type Environment = Readonly<Record<string, string>>;

/** Commands that need a process: they are one for others, or give their own streams to a program. */
const notHere = new Set(
  "serve run run-environment agent agent-relay browse edit pick ssh-agent keyring mcp up prove".split(" "),
);

/** Variables that Node and the system's libraries read from the process itself, and that start a server. */
const ofTheProcess = /^(?:NODE_|TZ$|LANG$|LC_|STRONGROOM_AUTOSTART$|STRONGROOM_SIGHUP$|STRONGROOM_INHERITED$)/;

/** Whether a call can run here: its command and its variables allow it, and no installed program is tested. */
export function runsHere(args: readonly string[], more: Environment): boolean {
  const isPlain = !Object.keys(more).some((name) => ofTheProcess.test(name)) && !args.includes("--autostart");
  return !isInstalled && (args[1] === "--help" || !notHere.has(args[0] ?? "")) && isPlain;
}

export type Place = {
  /** The working directory, which file names in the arguments do not follow. */
  readonly cwd?: string;
  /** Columns of a terminal that standard output and standard error are; without them there is none. */
  readonly columns?: number;
};

/** Runs a command to its end. */
export async function runHere(
  args: readonly string[],
  more: Environment,
  input: string | Uint8Array = "",
  { cwd = temporaryDirectory(), columns }: Place = {},
): Promise<Finished> {
  const bytes = Buffer.from(input);
  const file = join(temporaryDirectory(), "input");
  writeFileSync(file, bytes);
  const stdinDescriptor = openSync(file, "r");
  const io = stringIo({ env: environment(more), input: bytes, stdinDescriptor, cwd: () => cwd });
  if (columns !== undefined)
    for (const stream of [io.stdout, io.stderr]) Object.assign(stream, { isTTY: true, columns });
  try {
    await runToItsEnd(args, io);
  } finally {
    closeSync(stdinDescriptor);
  }
  return { code: io.exitCode, ...io.printed() };
}

/** Runs a command with this Io until it returns or exits. */
export async function runToItsEnd(args: readonly string[], io: StringIo): Promise<void> {
  try {
    await runCommandLine(args, io);
  } catch (error) {
    if (!(error instanceof Exited)) throw error;
  } finally {
    process.umask(ownUmask);
  }
}
