/** Child process of `strongroom run`: started without a shell, signals forwarded, exit status passed on. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { systemCode } from "../../errors.js";
import { CommandFailure } from "../session/exit-codes.js";

/** Exit codes as shells use them. */
const notFound = 127;
const notExecutable = 126;
const signalBase = 128;

const forwarded = ["SIGINT", "SIGQUIT", "SIGWINCH", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;
type Forwarded = (typeof forwarded)[number];

/** A terminal sends these to every process in its foreground, so the child already has them. */
const sentByTerminals: readonly Forwarded[] = ["SIGINT", "SIGQUIT", "SIGWINCH"];

export type Filters = { readonly stdout: Transform; readonly stderr: Transform };

/** `problem` is why the command could not be started, else null. */
export type ChildEnd = { readonly status: number; readonly problem: string | null };

/** Pipes the child's output through the filters; without filters, the child inherits our standard streams. */
export async function runChild(
  [command = "", ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
  filters: Filters | null,
): Promise<ChildEnd> {
  let child: ChildProcess | null = null;
  const forward = (signal: Forwarded) => {
    if (!sentByTerminals.includes(signal) || !isInForeground()) child?.kill(signal);
  };
  for (const signal of forwarded) process.on(signal, forward); // before the start: the child may signal at once
  try {
    child = start(command, args, env, filters !== null);
    const shown = filters && pipeThrough(child, filters);
    const end = await ended(child, command);
    await shown;
    return end;
  } finally {
    for (const signal of forwarded) process.off(signal, forward);
  }
}

function start(command: string, args: readonly string[], env: NodeJS.ProcessEnv, filtered: boolean): ChildProcess {
  const output = filtered ? "pipe" : "inherit";
  try {
    return spawn(command, args, { env, shell: false, stdio: ["inherit", output, output] });
  } catch (error) {
    const code = systemCode(error) ?? "unknown reason";
    const what = code === "E2BIG" ? "the environment and the arguments together are too large" : "it is not valid";
    throw new CommandFailure("usage", `the command cannot be started (${code}): ${what}`);
  }
}

function ended(child: ChildProcess, command: string): Promise<ChildEnd> {
  return new Promise((resolve) => {
    child.on("error", (error) => {
      if (child.pid === undefined) resolve(notStarted(command, error)); // else a signal could not be delivered
    });
    child.on("exit", (code, signal) => resolve({ status: statusOf(code, signal), problem: null }));
  });
}

function statusOf(code: number | null, signal: NodeJS.Signals | null): number {
  return signal === null ? (code ?? notFound) : signalBase + constants.signals[signal];
}

function notStarted(command: string, error: Error): ChildEnd {
  const code = systemCode(error) ?? "unknown reason";
  if (code === "ENOENT") return { status: notFound, problem: `${command}: the command is not found` };
  return { status: notExecutable, problem: `${command}: the command cannot be executed (${code})` };
}

/** When our output has no reader any more, closes the child's pipe, so that it gets SIGPIPE as without us. */
async function pipeThrough({ stdout, stderr }: ChildProcess, filters: Filters): Promise<void> {
  if (stdout === null || stderr === null) return;
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners("error").on("error", () => {});
  await Promise.allSettled([
    pipeline(stdout, filters.stdout, process.stdout, { end: false }),
    pipeline(stderr, filters.stderr, process.stderr, { end: false }),
  ]);
}

/** Whether our process group, which is the child's too, is in the foreground of its terminal. */
function isInForeground(): boolean {
  if (process.platform !== "linux") return process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  const stat = readFileSync("/proc/self/stat", "latin1");
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return group === foreground;
}
