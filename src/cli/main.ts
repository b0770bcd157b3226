/** The `strongroom` command: its table of commands, and how failures become messages and exit codes. */
import { CommanderError } from "commander";
import { StartError, systemCode } from "../errors.js";
import { problemOfFile } from "../files/file-problem.js";
import { hardenProcess } from "../hardening.js";
import { type CommandRow, loadProgram } from "./program.js";
import { memoryPlaces, removeStaleScratch } from "./prompt/scratch-directories.js";
import { CommandFailure, type ExitName, errorCodeOf, exitCodes } from "./session/exit-codes.js";
import { printable } from "./session/output.js";

const commands: readonly CommandRow[] = [
  {
    name: "get",
    group: "Secrets",
    summary: "print a secret's value",
    example: "get app/db/password",
    load: () => import("./commands/get.js"),
  },
  {
    name: "put",
    aliases: ["set"],
    group: "Secrets",
    summary: "store a secret",
    example: "put app/db/password --type password",
    load: () => import("./commands/put.js"),
  },
  {
    name: "generate",
    group: "Secrets",
    summary: "generate and store a random value",
    example: "generate app/session-key --length 40",
    load: () => import("./commands/generate.js"),
  },
  {
    name: "edit",
    group: "Secrets",
    summary: "edit a secret's value in your editor",
    example: "edit app/config",
    load: () => import("./commands/edit.js"),
  },
  {
    name: "ls",
    group: "Secrets",
    summary: "list the paths of secrets",
    example: "ls app/ --long",
    load: () => import("./commands/ls.js"),
  },
  {
    name: "find",
    group: "Secrets",
    summary: "search paths and descriptions",
    example: "find database",
    load: () => import("./commands/find.js"),
  },
  {
    name: "mv",
    group: "Secrets",
    summary: "move or rename a secret",
    example: "mv app/key app/web/key",
    load: () => import("./commands/mv.js"),
  },
  {
    name: "cp",
    group: "Secrets",
    summary: "copy a secret",
    example: "cp app/db/password staging/db/password",
    load: () => import("./commands/cp.js"),
  },
  {
    name: "rm",
    group: "Secrets",
    summary: "delete secrets",
    example: "rm app/db/password app/key",
    load: () => import("./commands/rm.js"),
  },
  {
    name: "run",
    group: "Programs and files",
    summary: "run a command with secrets as environment variables",
    example: "run --prefix app/ -- node server.js",
    load: () => import("./commands/run.js"),
  },
  {
    name: "inject",
    group: "Programs and files",
    summary: "fill a template with secrets",
    example: "inject -i config.template -o config.yaml",
    load: () => import("./commands/inject.js"),
  },
  {
    name: "import",
    group: "Programs and files",
    summary: "import secrets from another program's file",
    example: "import --format dotenv --prefix app .env",
    load: () => import("./commands/import.js"),
  },
  {
    name: "export",
    group: "Programs and files",
    summary: "write secrets as plaintext",
    example: "export --format json --plaintext -o secrets.json",
    load: () => import("./commands/export.js"),
  },
  {
    name: "init",
    group: "Vault",
    summary: "create a vault with a new passphrase",
    example: "init",
    load: () => import("./commands/init.js"),
  },
  {
    name: "unlock",
    group: "Vault",
    summary: "unlock the vault with its passphrase",
    example: "unlock",
    load: () => import("./commands/unlock.js"),
  },
  {
    name: "lock",
    group: "Vault",
    summary: "lock the vault and wipe its key from memory",
    example: "lock",
    load: () => import("./commands/lock.js"),
  },
  {
    name: "status",
    group: "Vault",
    summary: "show whether the vault is unlocked",
    example: "status --json",
    load: () => import("./commands/status.js"),
  },
  {
    name: "serve",
    group: "Server",
    summary: "start the vault server",
    example: "serve --port 13100 --idle-timeout-ms 15m",
    load: () => import("./commands/serve.js"),
  },
  {
    name: "shutdown",
    group: "Server",
    summary: "lock the vault and stop the server",
    example: "shutdown",
    load: () => import("./commands/shutdown.js"),
  },
  {
    name: "token",
    group: "Server",
    summary: "print the token file's path, or replace the token",
    example: "token path",
    load: () => import("./commands/token.js"),
  },
  {
    name: "trust",
    group: "Server",
    summary: "show how other programs can trust the server",
    example: "trust",
    load: () => import("./commands/trust.js"),
  },
  {
    name: "doctor",
    group: "Maintenance",
    summary: "check the vault's files and repair what is safe to repair",
    example: "doctor --open",
    load: () => import("./commands/doctor.js"),
  },
  {
    name: "backup",
    group: "Maintenance",
    summary: "back up the encrypted vault to a new file",
    example: "backup vault-2026-03.tar",
    load: () => import("./commands/backup.js"),
  },
  {
    name: "restore",
    group: "Maintenance",
    summary: "restore a backup into an empty home",
    example: "restore vault-2026-03.tar --home /srv/strongroom",
    load: () => import("./commands/restore.js"),
  },
  {
    name: "completion",
    group: "Other",
    summary: "print a shell completion script",
    example: "completion bash > strongroom.bash",
    load: () => import("./commands/completion.js"),
    needsAll: true,
  },
  {
    name: "version",
    group: "Other",
    summary: "print the version",
    example: "version --json",
    load: () => import("./commands/version.js"),
  },
  { name: "flags", summary: "describe the connection flags", load: () => import("./commands/flags.js"), hidden: true },
  { name: "complete-paths", summary: "", load: () => import("./completion/complete-paths.js"), hidden: true },
  { name: "run-environment", summary: "", load: () => import("./run/run-environment.js"), hidden: true },
];

hardenProcess();
removeStaleScratch(memoryPlaces());
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

const program = await loadProgram(commands, process.argv.slice(2));
try {
  await program.run();
} catch (error) {
  process.exitCode = report(error, program.printsJson());
} finally {
  process.off("beforeExit", reportStall);
}

/** Prints what failed; returns the exit code. */
function report(error: unknown, asJson: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage; // help was printed
  const message = messageOf(error);
  if (message === null) throw error;
  const name = exitOf(error);
  const object = { error: message, code: errorCodeOf(name), exit: exitCodes[name] };
  process.stderr.write(asJson ? `${JSON.stringify(object)}\n` : `strongroom: ${message}\n`);
  return object.exit;
}

function exitOf(error: unknown): ExitName {
  if (error instanceof CommandFailure) return error.exit;
  return error instanceof StartError && error.exitCode === exitCodes.usage ? "usage" : "unexpected";
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
