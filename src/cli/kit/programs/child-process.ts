/** Child programs: their start, signals forwarded to them, output masked, exit status passed on. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { systemCode } from "../../../errors.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { findProgram, notFound } from "./find-program.js";
import { ignoringSignals, inherited } from "./inherited.js";
import { maskingStream, unframe } from "./output-mask.js";

type Execve = (file: string, args: readonly string[], env: NodeJS.ProcessEnv) => never;

/** Turns this process into a program; undefined before Node 22.15. */
export const { execve } = process as { readonly execve?: Execve };

/** Base of a signal's exit status in shells. */
const signalBase = 128;

const forwarded = ["SIGINT", "SIGQUIT", "SIGWINCH", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;
export type Forwarded = (typeof forwarded)[number];

/** A terminal sends these to every process in its foreground, so the child already has them. */
const sentByTerminals: readonly Forwarded[] = ["SIGINT", "SIGQUIT", "SIGWINCH"];

/** @throws CommandFailure usage */
export function startProgram(
  [program = "", ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
  options: Pick<SpawnOptions, "stdio" | "detached"> = { stdio: "inherit" },
): ChildProcess {
  const found = findProgram(program, env["PATH"]);
  if (!("file" in found)) throw new CommandFailure("notFound", found.problem);
  try {
    const start = ignoringSignals(inherited.ignored, { file: found.file, argv0: program, args }, () => {});
    return spawn(start.file, start.args, { ...options, argv0: start.argv0, env });
  } catch (error) {
    throw notStarted(error);
  }
}

export function notStarted(error: unknown): CommandFailure {
  const code = systemCode(error) ?? "unknown reason";
  const problem = code === "E2BIG" ? "the environment and the arguments are too large" : "an argument is not valid";
  return new CommandFailure("usage", `the command cannot be started (${code}): ${problem}`);
}

/**
 * Returns the exit status to end with.
 * @param deliver takes each signal that this process gets to a child that no terminal reaches
 */
export async function runChild(
  io: Io,
  start: () => ChildProcess,
  deliver?: (signal: Forwarded, child: ChildProcess) => void,
): Promise<number> {
  let child: ChildProcess | null = null;
  const forward = (signal: Forwarded) => {
    if (inherited.ignored.includes(signal.slice("SIG".length))) return; // the child also ignores it
    if (child !== null && deliver !== undefined) deliver(signal, child);
    else if (!sentByTerminals.includes(signal) || !isInForeground(io)) child?.kill(signal);
  };
  for (const signal of forwarded) io.events.on(signal, forward); // before the start: the child may signal at once
  try {
    child = start();
    const shown = pipeMasked(io, child);
    const status = await ended(child);
    await shown;
    return status;
  } finally {
    for (const signal of forwarded) io.events.off(signal, forward);
  }
}

function ended(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on("error", (error) => {
      if (child.pid === undefined) reject(error); // else a signal could not be delivered
    });
    child.on("exit", (code, signal) =>
      resolve(signal === null ? (code ?? notFound) : signalBase + constants.signals[signal]),
    );
  });
}

/** When our output no longer has a reader, closes the child's pipe, so that it gets SIGPIPE as without us. */
async function pipeMasked(io: Io, { stdout, stderr, stdio }: ChildProcess): Promise<void> {
  if (stdout === null || stderr === null) return; // the child has our own streams
  for (const stream of [io.stdout, io.stderr]) stream.removeAllListeners("error").on("error", () => {});
  const pipe = stdio.slice(3).find((stream) => stream !== null); // the child's other descriptors are our own
  const values = buffer(pipe as Readable).then(unframe, () => []); // ends before the command starts
  await Promise.allSettled([
    pipeline(stdout, maskingStream(values), io.stdout, { end: false }),
    pipeline(stderr, maskingStream(values), io.stderr, { end: false }),
  ]);
}

/** Returns the numbers of a process's children; none where it has ended, or the kernel does not list them. */
export function childPids(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Whether our process group, which is the child's too, is in the foreground of its terminal. */
function isInForeground(io: Io): boolean {
  if (io.platform !== "linux") return [io.stdin, io.stdout, io.stderr].some(({ isTTY }) => isTTY);
  const stat = readFileSync("/proc/self/stat", "latin1");
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return group === foreground;
}
