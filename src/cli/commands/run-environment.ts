/**
 * Hidden command that `strongroom run` starts: fetches the secrets, and turns into the command with them in its
 * environment (execve). What has been a string in Node's memory cannot be wiped, and so goes with the process's memory.
 */
import { spawn } from "node:child_process";
import { closeSync, writeFileSync, writeSync } from "node:fs";
import type { Command } from "commander";
import { withClient } from "../kit/connection/server.js";
import type { Io, OutputStream } from "../kit/io.js";
import { printable, wrapped } from "../kit/output.js";
import { execve, notStarted, runChild } from "../kit/programs/child-process.js";
import { findProgram, isSurelyExecutable } from "../kit/programs/find-program.js";
import { closeInherited, ignoringSignals, withDescriptors } from "../kit/programs/inherited.js";
import { frame, minMaskedBytes } from "../kit/programs/output-mask.js";
import { withoutTokens } from "../kit/programs/without-tokens.js";
import { buildEnvironment, type Environment } from "../run/environment.js";
import type { LaunchRequest } from "../run/launch.js";

export function define(command: Command, io: Io): void {
  command
    .argument("<request>")
    .argument("<command...>")
    .passThroughOptions()
    .action((json, flags) => start(io, json, flags));
}

async function start(io: Io, json: string, [program = "", ...args]: readonly string[]): Promise<void> {
  const { sources, connection, maskPipe, quiet, dumpFilter, inherited } = JSON.parse(json) as LaunchRequest;
  if (inherited.ignored.includes("HUP")) io.events.on("SIGHUP", () => {});
  const flags = quiet ? { ...connection, quiet } : connection;
  const environment = await buildEnvironment(sources, (work) => withClient(io, flags, work));
  const { variables } = environment;
  const found = findProgram(program, variables.get("PATH") ?? io.env["PATH"]);
  if ("problem" in found) {
    say(io, `strongroom: ${printable(found.problem)}\n`);
    io.exitCode = found.status;
    return;
  }
  if (maskPipe !== null && !quiet) say(io, warningOfShort(environment));
  if (maskPipe !== null) {
    for (const { value } of environment.secrets) writeAll(maskPipe, frame(value));
    closeSync(maskPipe);
  }
  const env = { ...withoutTokens(io.env, connection), ...Object.fromEntries(variables) };
  io.exitCode = await become(io, { file: found.file, words: [program, ...args], env, dumpFilter, inherited });
}

/** Written before the command starts, in full. */
function say(io: Io, text: string): void {
  writeAll(2, Buffer.from(wrapped(text, io.stderr)));
}

function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done);
}

function setDumpFilter(filter: string | null): void {
  try {
    if (filter !== null) writeFileSync("/proc/self/coredump_filter", `0x${filter}`);
  } catch {
    // not permitted, so that this process was not hardened either
  }
}

type Target = Pick<LaunchRequest, "dumpFilter" | "inherited"> & {
  readonly file: string;
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
};

/** Node makes its pipes and terminals non-blocking, which the command would get; only a file has no handle. */
function isMadeBlocking(stream: OutputStream): boolean {
  const { _handle: handle } = stream as { readonly _handle?: { readonly setBlocking?: (blocking: boolean) => number } };
  return handle === undefined || handle.setBlocking?.(true) === 0;
}

/** Returns only where this process cannot turn into the command: the status of a child that has run it. */
async function become(io: Io, { file, words, env, dumpFilter, inherited }: Target): Promise<number> {
  const texts = [...words, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
  const [argv0 = "", ...args] = words;
  const start = ignoringSignals(inherited.ignored, { file, argv0, args }, (text) => say(io, text));
  setDumpFilter(dumpFilter); // what this process was hardened with would pass to the command
  // Node has marked the descriptors to be closed by execve, and cannot take that back.
  const isPossible = inherited.descriptors.length === 0 && isSurelyExecutable(file, texts);
  if (execve !== undefined && isPossible && [io.stdout, io.stderr].every(isMadeBlocking)) {
    for (const signal of ["SIGPIPE", "SIGXFSZ"] as const) io.events.on(signal, () => {}); // Node ignores them, and execve keeps that
    execve(start.file, [start.argv0, ...start.args], env);
  }
  return runChild(io, () => {
    try {
      const stdio = withDescriptors(["inherit", "inherit", "inherit"], inherited.descriptors);
      return spawn(start.file, start.args, { argv0: start.argv0, env, stdio });
    } catch (error) {
      throw notStarted(error);
    } finally {
      closeInherited(inherited.descriptors);
      setDumpFilter("0");
    }
  });
}

function warningOfShort({ secrets }: Environment): string {
  const short = secrets.filter(({ value }) => value !== "" && Buffer.byteLength(value) < minMaskedBytes);
  if (short.length === 0) return "";
  const names = short.map(({ name }) => name).join(", ");
  return `strongroom: not masked, because shorter than ${minMaskedBytes} bytes: ${names}\n`;
}
