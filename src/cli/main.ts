/** The `strongroom` command: its table of commands, and how failures become messages and exit codes. */
import { CommanderError } from "commander";
import { StartError, systemCode } from "../errors.js";
import { problemOfFile } from "../files/file-problem.js";
import { hardenProcess } from "../hardening.js";
import { type CommandRow, runProgram } from "./program.js";
import { removeStaleScratch } from "./prompt/scratch-directories.js";
import { CommandFailure, exitCodes } from "./session/exit-codes.js";
import { printable } from "./session/output.js";

const commands: readonly CommandRow[] = [
  { name: "serve", summary: "start the vault server", load: () => import("./commands/serve.js") },
  { name: "init", summary: "create a vault with a new passphrase", load: () => import("./commands/init.js") },
  { name: "unlock", summary: "unlock the vault with its passphrase", load: () => import("./commands/unlock.js") },
  { name: "lock", summary: "lock the vault and wipe its key from memory", load: () => import("./commands/lock.js") },
  { name: "status", summary: "show whether the vault is unlocked", load: () => import("./commands/status.js") },
  { name: "get", summary: "print a secret's value", load: () => import("./commands/get.js") },
  { name: "put", aliases: ["set"], summary: "store a secret", load: () => import("./commands/put.js") },
  { name: "ls", summary: "list the paths of secrets", load: () => import("./commands/ls.js") },
  { name: "rm", summary: "delete secrets", load: () => import("./commands/rm.js") },
  { name: "mv", summary: "move or rename a secret", load: () => import("./commands/mv.js") },
  { name: "cp", summary: "copy a secret", load: () => import("./commands/cp.js") },
  { name: "edit", summary: "edit a secret's value in your editor", load: () => import("./commands/edit.js") },
  { name: "generate", summary: "generate and store a random value", load: () => import("./commands/generate.js") },
  { name: "find", summary: "search paths and descriptions", load: () => import("./commands/find.js") },
  {
    name: "doctor",
    summary: "check the vault's files and repair what is safe to repair",
    load: () => import("./commands/doctor.js"),
  },
  { name: "backup", summary: "back up the encrypted vault to a new file", load: () => import("./commands/backup.js") },
  { name: "restore", summary: "restore a backup into an empty home", load: () => import("./commands/restore.js") },
  {
    name: "run",
    summary: "run a command with secrets as environment variables",
    load: () => import("./commands/run.js"),
  },
  { name: "inject", summary: "fill a template with secrets", load: () => import("./commands/inject.js") },
  { name: "export", summary: "write secrets as plaintext", load: () => import("./commands/export.js") },
  {
    name: "import",
    summary: "import secrets from another program's file",
    load: () => import("./commands/import.js"),
  },
  {
    name: "token",
    summary: "print the token file's path, or replace the token",
    load: () => import("./commands/token.js"),
  },
  {
    name: "trust",
    summary: "show how other programs can trust the server",
    load: () => import("./commands/trust.js"),
  },
  {
    name: "completion",
    summary: "print a shell completion script",
    load: () => import("./commands/completion.js"),
    needsAll: true,
  },
  { name: "complete-paths", summary: "", load: () => import("./completion/complete-paths.js"), hidden: true },
  { name: "run-environment", summary: "", load: () => import("./run/run-environment.js"), hidden: true },
  { name: "shutdown", summary: "lock the vault and stop the server", load: () => import("./commands/shutdown.js") },
  { name: "version", summary: "print the version", load: () => import("./commands/version.js") },
];

hardenProcess();
removeStaleScratch();
process.on("uncaughtException", (error) => {
  process.stderr.write(crashText(error));
  process.exit(exitCodes.unexpected);
});
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (systemCode(error) === "EPIPE") process.exit(); // the reader is gone, as in `| head`
    process.stderr.write(`strongroom: cannot write the output (${systemCode(error) ?? "unknown reason"})\n`);
    process.exit(exitCodes.unexpected);
  });
}

/** A command that waits for something that never comes must not look like a success. */
const reportStall = () => {
  process.stderr.write("strongroom: the command ended before its work was done, for an unknown reason: try again\n");
  process.exitCode = exitCodes.unexpected;
};
process.once("beforeExit", reportStall);

try {
  await runProgram(commands, process.argv.slice(2));
} catch (error) {
  process.exitCode = report(error);
} finally {
  process.off("beforeExit", reportStall);
}

/** Prints what failed; returns the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage; // help was printed
  const message = messageOf(error);
  if (message === null) throw error;
  process.stderr.write(`strongroom: ${message}\n`);
  if (error instanceof CommandFailure) return exitCodes[error.exit];
  return error instanceof StartError ? error.exitCode : exitCodes.unexpected;
}

/** Null for an unexpected error. */
function messageOf(error: unknown): string | null {
  if (error instanceof CommandFailure || error instanceof StartError) return error.message;
  const problem = problemOfFile(error);
  return problem === null ? null : printable(problem);
}

/** DANGER: the text of an unexpected error may quote anything: only its kind and stack frames are printed. */
function crashText(error: unknown): string {
  const name = error instanceof Error ? error.name : typeof error;
  const frames = error instanceof Error ? error.stack?.split("\n").filter((line) => line.startsWith("    at ")) : [];
  const lines = [`strongroom: failed unexpectedly: ${systemCode(error) ?? name}`, ...(frames ?? [])];
  return `${lines.join("\n")}\n`;
}
