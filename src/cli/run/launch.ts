/**
 * Start of the child of `strongroom run`, such that the process that waits for it never holds a value or the token: a
 * shell runs a short-lived strongroom (`run-environment`), takes the variables from its output, and replaces itself with
 * the command. Node cannot do that alone: before version 22.15 it cannot replace itself, and what has been a string in
 * its memory cannot be wiped.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { systemCode } from "../../errors.js";
import { inheritedDumpFilter } from "../../hardening.js";
import { entryFile } from "../../program-files.js";
import { CommandFailure } from "../lib/errors.js";
import type { ConnectionFlags } from "../lib/server.js";
import type { Sources } from "./environment.js";
import { isVariableName } from "./variables.js";

/** What `run-environment` is asked for, as JSON in its argument. It holds no secret. */
export type LaunchRequest = {
  readonly sources: Sources;
  readonly connection: ConnectionFlags;
  /** Values are also written to `maskPipe`. */
  readonly mask: boolean;
  readonly quiet: boolean;
  /** Names that the shell sets, and that were not set before it. */
  readonly unset: readonly string[];
};

/** The descriptor that takes the values to mask to the waiting process. */
export const maskPipe = 3;

/** `$0` is Node, `$1` the entry file, `$2` the request, and the command follows. */
function script(): string {
  const restore = inheritedDumpFilter === null ? "" : `echo 0x${inheritedDumpFilter} > /proc/self/coredump_filter`;
  return `{ set +vx; } 2>/dev/null # SHELLOPTS may turn tracing on, which would print values
__variables=$("$0" -- "$1" run-environment "$2" "$3" < /dev/null) || exit
shift 2
{ ${restore || ":"}; } 2>/dev/null
eval "unset __variables; $__variables"
exec "$@"`;
}

/** @throws CommandFailure usage */
export function launch(command: readonly string[], request: Omit<LaunchRequest, "unset">): ChildProcess {
  const unset = ["PWD", "OLDPWD", "SHLVL", "_"].filter((name) => process.env[name] === undefined);
  const json = JSON.stringify({ ...request, unset } satisfies LaunchRequest);
  const output = request.mask ? "pipe" : "inherit";
  const stdio = ["inherit", output, output, ...(request.mask ? ["pipe" as const] : [])] as const;
  try {
    const args = ["-c", script(), process.execPath, entryFile, json, ...command];
    return spawn(shellFor(process.env), args, { argv0: "sh", stdio: [...stdio] });
  } catch (error) {
    const code = systemCode(error) ?? "unknown reason";
    const problem = code === "E2BIG" ? "the environment and the arguments are too large" : "an argument is not valid";
    throw new CommandFailure("usage", `the command cannot be started (${code}): ${problem}`);
  }
}

/** Some shells drop variables whose names they could not set, such as exported functions of bash; bash keeps them. */
function shellFor(environment: NodeJS.ProcessEnv): string {
  const keepsAll = Object.keys(environment).every(isVariableName) || !existsSync("/bin/bash");
  return keepsAll ? "/bin/sh" : "/bin/bash";
}

/** Exit statuses as shells use them. */
export const notFound = 127;
const notExecutable = 126;

type NotStartable = { readonly status: number; readonly problem: string };

/** Where execvp looks when there is no PATH. */
const defaultPath = "/bin:/usr/bin";

/** Returns why the program cannot be started, or null. */
export function problemOfProgram(program: string, path: string = defaultPath): NotStartable | null {
  const files = program.includes("/") ? [program] : path.split(delimiter).map((directory) => join(directory, program));
  const problems = program === "" ? ["ENOENT"] : files.map(problemOfFile);
  if (problems.includes(null)) return null;
  const denied = problems.find((code) => code !== "ENOENT" && code !== "ENOTDIR");
  if (denied === undefined) return { status: notFound, problem: `${program}: the command is not found` };
  return { status: notExecutable, problem: `${program}: the command cannot be executed (${denied})` };
}

function problemOfFile(file: string): string | null {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile() ? null : "EACCES";
  } catch (error) {
    return systemCode(error) ?? "unknown reason";
  }
}
