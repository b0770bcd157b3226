/** Owns the `strongroom` command: its table of commands, and how failures become messages and exit codes. */
import { CommanderError } from "commander";
import { StartError, systemCode } from "../errors.js";
import { CommandFailure, exitCodes } from "./exit-codes.js";
import { buildProgram, type CommandRow } from "./program.js";

const commands: readonly CommandRow[] = [
  { name: "serve", summary: "start the vault server", load: () => import("./serve.js") },
  {
    name: "doctor",
    summary: "check the vault's files, and mend what is safe to mend",
    load: () => import("./doctor.js"),
  },
  { name: "backup", summary: "save all sealed secrets in a new file", load: () => import("./backup.js") },
  { name: "restore", summary: "make a backup the vault of an empty home", load: () => import("./restore.js") },
  { name: "run", summary: "run a command with secrets in its environment", load: () => import("./run.js") },
  { name: "inject", summary: "fill a template with secrets", load: () => import("./inject.js") },
  { name: "export", summary: "write secrets as plaintext", load: () => import("./export.js") },
  { name: "import", summary: "store the secrets of another program's file", load: () => import("./import.js") },
  { name: "version", summary: "print the version", load: () => import("./version.js") },
];

process.on("uncaughtException", (error) => {
  process.stderr.write(crashText(error));
  process.exit(exitCodes.unexpected);
});
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (systemCode(error) === "EPIPE") process.exit(); // its reader has gone, as in `| head`
    throw error;
  });
}

const args = process.argv.slice(2);
try {
  await (await buildProgram(commands, args)).parseAsync(args, { from: "user" });
} catch (error) {
  process.exitCode = exitCodeFor(error);
}

/** Says what was wrong, unless the parser has said it already. */
function exitCodeFor(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  const known = error instanceof CommandFailure || error instanceof StartError;
  if (!known) throw error;
  process.stderr.write(`strongroom: ${error.message}\n`);
  return error instanceof CommandFailure ? exitCodes[error.exit] : error.exitCode;
}

/** Of an error that nobody foresaw, its kind and the places it passed; its text may quote anything. */
function crashText(error: unknown): string {
  const name = error instanceof Error ? error.name : typeof error;
  const frames = error instanceof Error ? error.stack?.split("\n").filter((line) => line.startsWith("    at ")) : [];
  const lines = [`strongroom: failed unexpectedly: ${systemCode(error) ?? name}`, ...(frames ?? [])];
  return `${lines.join("\n")}\n`;
}
