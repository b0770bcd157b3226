/** The `strongroom` command: protections of the process, and how failures become messages and exit codes; see also `crash.cts`. */
import { CommanderError } from "commander";
import { StartError, systemCode } from "../errors.js";
import { problemOfFile, reasonOf } from "../files/file-problem.js";
import { hardenProcess } from "../hardening.js";
import { commands } from "./command-table.js";
import { CommandFailure, type ExitName, errorCodeOf, exitCodes } from "./kit/errors.js";
import { memoryPlaces, removeStaleScratch } from "./kit/scratch.js";
import { loadProgram, type Program } from "./program.js";
import "./kit/hang-up.js";
import { printable, say, shownJson } from "./kit/output.js";

/** Whether this file was not empty: a command would succeed without a word. */
export const isWhole = true;

hardenProcess();
removeStaleScratch(memoryPlaces());
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error) => {
    if (systemCode(error) === "EPIPE") process.exit(); // the reader is gone, as in `| head`
    process.stderr.write(`strongroom: cannot write the output${reasonOf(systemCode(error))}\n`);
    process.exit(exitCodes.unexpected);
  });
}

/** A command that waits for something that never comes must not look like a success. */
const reportStall = () => {
  process.stderr.write("strongroom: the command ended before its work was done, for an unknown reason: try again\n");
  process.exitCode = exitCodes.unexpected;
};
process.once("beforeExit", reportStall);

void main();

async function main(): Promise<void> {
  let program: Program | null = null;
  try {
    program = await loadProgram(commands, process.argv.slice(2));
    await program.run();
  } catch (error) {
    process.exitCode = report(error, program?.printsJson() ?? false);
  } finally {
    process.off("beforeExit", reportStall);
  }
}

/** Prints what failed; returns the exit code. */
function report(error: unknown, asJson: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage; // help was printed
  const message = messageOf(error);
  if (message === null) throw error;
  const name = exitOf(error);
  const object = {
    error: message,
    code: error instanceof CommandFailure ? error.code : errorCodeOf(name),
    exit: exitCodes[name],
  };
  if (asJson) process.stderr.write(`${shownJson(JSON.stringify(object), process.stderr)}\n`);
  else say(`strongroom: ${message}\n`);
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
