/** Owns the `strongroom` command: its table of commands, and how failures become messages and exit codes. */
import { CommanderError } from "commander";
import { StartError, systemCode } from "../errors.js";
import { problemOfFile } from "../files/file-problem.js";
import { hardenProcess } from "../hardening.js";
import { type CommandRow, runProgram } from "./program.js";
import { CommandFailure, exitCodes } from "./session/exit-codes.js";
import { printable } from "./session/output.js";

const commands: readonly CommandRow[] = [
  { name: "serve", summary: "start the vault server", load: () => import("./commands/serve.js") },
  { name: "init", summary: "make a vault under a new passphrase", load: () => import("./commands/init.js") },
  { name: "unlock", summary: "unlock the vault with its passphrase", load: () => import("./commands/unlock.js") },
  { name: "lock", summary: "lock the vault: its key is wiped", load: () => import("./commands/lock.js") },
  { name: "status", summary: "say whether the vault is unlocked", load: () => import("./commands/status.js") },
  { name: "get", summary: "print a secret's value", load: () => import("./commands/get.js") },
  { name: "put", aliases: ["set"], summary: "store a secret", load: () => import("./commands/put.js") },
  { name: "ls", summary: "list the paths of secrets", load: () => import("./commands/ls.js") },
  { name: "rm", summary: "delete secrets", load: () => import("./commands/rm.js") },
  { name: "mv", summary: "give a secret another path", load: () => import("./commands/mv.js") },
  { name: "cp", summary: "copy a secret to another path", load: () => import("./commands/cp.js") },
  { name: "edit", summary: "change a secret's value in your editor", load: () => import("./commands/edit.js") },
  { name: "generate", summary: "store a random value", load: () => import("./commands/generate.js") },
  { name: "find", summary: "look for secrets by path and description", load: () => import("./commands/find.js") },
  {
    name: "doctor",
    summary: "check the vault's files, and mend what is safe to mend",
    load: () => import("./commands/doctor.js"),
  },
  { name: "backup", summary: "save all sealed secrets in a new file", load: () => import("./commands/backup.js") },
  { name: "restore", summary: "make a backup the vault of an empty home", load: () => import("./commands/restore.js") },
  { name: "run", summary: "run a command with secrets in its environment", load: () => import("./commands/run.js") },
  { name: "inject", summary: "fill a template with secrets", load: () => import("./commands/inject.js") },
  { name: "export", summary: "write secrets as plaintext", load: () => import("./commands/export.js") },
  {
    name: "import",
    summary: "store the secrets of another program's file",
    load: () => import("./commands/import.js"),
  },
  { name: "token", summary: "say where the bearer token is, or replace it", load: () => import("./commands/token.js") },
  {
    name: "trust",
    summary: "say how other programs come to trust the server",
    load: () => import("./commands/trust.js"),
  },
  {
    name: "completion",
    summary: "print a completion script for a shell",
    load: () => import("./commands/completion.js"),
    needsAll: true,
  },
  { name: "complete-paths", summary: "", load: () => import("./completion/complete-paths.js"), hidden: true },
  { name: "run-environment", summary: "", load: () => import("./run/run-environment.js"), hidden: true },
  { name: "shutdown", summary: "lock the vault and stop the server", load: () => import("./commands/shutdown.js") },
  { name: "version", summary: "print the version", load: () => import("./commands/version.js") },
];

hardenProcess();
process.on("uncaughtException", (error) => {
  process.stderr.write(crashText(error));
  process.exit(exitCodes.unexpected);
});
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (systemCode(error) === "EPIPE") process.exit(); // its reader has gone, as in `| head`
    process.stderr.write(`strongroom: the output cannot be written (${systemCode(error) ?? "unknown reason"})\n`);
    process.exit(exitCodes.unexpected);
  });
}

/** A command that waits for what will never come must not look like one that is done. */
const giveUp = () => {
  process.stderr.write("strongroom: the command broke off, for a reason that it does not know: try it again\n");
  process.exitCode = exitCodes.unexpected;
};
process.once("beforeExit", giveUp);

try {
  await runProgram(commands, process.argv.slice(2));
} catch (error) {
  process.exitCode = exitCodeFor(error);
} finally {
  process.off("beforeExit", giveUp);
}

/** Says what was wrong, unless the parser has said it already. */
function exitCodeFor(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  const message = messageOf(error);
  if (message === null) throw error;
  process.stderr.write(`strongroom: ${message}\n`);
  if (error instanceof CommandFailure) return exitCodes[error.exit];
  return error instanceof StartError ? error.exitCode : exitCodes.unexpected;
}

/** Null of an error that nobody foresaw. */
function messageOf(error: unknown): string | null {
  if (error instanceof CommandFailure || error instanceof StartError) return error.message;
  const problem = problemOfFile(error);
  return problem === null ? null : printable(problem);
}

/** Of an error that nobody foresaw, its kind and the places it passed; its text may quote anything. */
function crashText(error: unknown): string {
  const name = error instanceof Error ? error.name : typeof error;
  const frames = error instanceof Error ? error.stack?.split("\n").filter((line) => line.startsWith("    at ")) : [];
  const lines = [`strongroom: failed unexpectedly: ${systemCode(error) ?? name}`, ...(frames ?? [])];
  return `${lines.join("\n")}\n`;
}
