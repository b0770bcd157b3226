/**
 * A call of the command line in the tests' own process: the same code with an `Io` of strings, in a hundredth of the time
 * that a process takes. What needs a process of its own gets one: see `runsHere`.
 */
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { type Ended, environment, isInstalled, run as runProcess } from "../../tools/rig/process.js";
import { needProcess, runToItsEnd, stringIo, writeTo } from "../../tools/rig/string-io.js";

export type Finished = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly bytes: Buffer;
};

type Environment = Readonly<Record<string, string>>;

/** Commands that give their streams to a child: files here, so that on a terminal they need a process. */
const withChild = new Set(["run"]);

/** Commands that do so too, and of which some calls need a process: `run` starts one for all. */
const childStreams = new Set([...withChild, "agent", "mcp"]);

/** Variables that Node and the system's libraries read from the process itself, and that start a server. */
const ofTheProcess = /^(?:NODE_|TZ$|LANG$|LC_|STRONGROOM_AUTOSTART$|STRONGROOM_SIGHUP$|STRONGROOM_INHERITED$)/;

/** Whether a call can run here: its command and its variables allow it, and no installed program is tested. */
export function runsHere([command = "", ...args]: readonly string[], more: Environment, isOnTerminal = false): boolean {
  const needsProcess = needProcess.includes(command) && (isOnTerminal || !withChild.has(command));
  const isPlain = !Object.keys(more).some((name) => ofTheProcess.test(name)) && !args.includes("--autostart");
  return !isInstalled && (args[0] === "--help" || !needsProcess) && isPlain;
}

/** Runs a command to its end: in this process where that is the same, else in one of its own. */
export async function run(args: readonly string[], more: Environment = {}): Promise<Ended> {
  const { code, stdout, stderr } = await (runsHere(args, more) ? runHere(args, more) : runProcess(args, more));
  return { code, stdout, stderr };
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
  const directory = temporaryDirectory();
  writeFileSync(join(directory, "input"), bytes);
  const open = (name: string, flags: string) => openSync(join(directory, name), flags);
  const descriptors: number[] = [open("input", "r")];
  const [stdinDescriptor = -1] = descriptors;
  const own = { env: environment(more), input: bytes, stdinDescriptor, cwd: () => cwd };
  try {
    if (columns !== undefined || !childStreams.has(args[0] ?? "")) {
      const io = stringIo(own);
      if (columns !== undefined)
        for (const stream of [io.stdout, io.stderr]) Object.assign(stream, { isTTY: true, columns });
      await runToItsEnd(args, io);
      return { code: io.exitCode, ...io.printed() };
    }
    const [output, errors] = [open("output", "a"), open("errors", "a")];
    descriptors.push(output, errors);
    const streams = {
      stdout: new Writable({ write: writeTo(output) }),
      stderr: new Writable({ write: writeTo(errors) }),
    };
    const io = stringIo({ ...own, ...streams, childStreams: [stdinDescriptor, output, errors] });
    await runToItsEnd(args, io);
    const [printed, said] = ["output", "errors"].map((name) => readFileSync(join(directory, name))) as [Buffer, Buffer];
    return { code: io.exitCode, stdout: printed.toString(), stderr: said.toString(), bytes: printed };
  } finally {
    for (const descriptor of descriptors) closeSync(descriptor);
  }
}
