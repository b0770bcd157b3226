/** A call of the `strongroom` command: runs what its arguments name, and turns a failure into a message and an exit code. */
import { CommanderError } from "commander";
import { StartError } from "../errors.js";
import { problemOfFile } from "../files/file-problem.js";
import { commands } from "./command-table.js";
import { CommandFailure, type ExitName, exitCodes, exitErrorCode } from "./kit/errors.js";
import { createHints } from "./kit/hints.js";
import type { Io } from "./kit/io.js";
import { printable, say, setHints, shownJson, withHints } from "./kit/output.js";
import { loadProgram, type Program } from "./program.js";

/** Runs a command to its end, and sets its exit code. @throws what is no failure of the command, but a bug */
export async function runCommandLine(args: readonly string[], io: Io): Promise<void> {
  let program: Program | null = null;
  try {
    setHints(
      io,
      createHints(
        args,
        commands.map(({ name }) => name),
      ),
    );
    program = await loadProgram(commands, args, io);
    await program.run();
  } catch (error) {
    io.exitCode = report(error, program?.printsJson() ?? false, io);
  }
}

/** Prints what failed; returns the exit code. */
function report(error: unknown, asJson: boolean, io: Io): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage; // help was printed
  const failed = failureMessage(error);
  if (failed === null) throw error;
  const message = withHints(io, failed);
  const name = exitName(error);
  const object = {
    error: message,
    code: error instanceof CommandFailure ? error.code : exitErrorCode(name),
    exit: exitCodes[name],
  };
  if (asJson) io.stderr.write(`${shownJson(JSON.stringify(object), io.stderr)}\n`);
  else say(io, `strongroom: ${message}\n`);
  return object.exit;
}

function exitName(error: unknown): ExitName {
  if (error instanceof CommandFailure) return error.exit;
  return error instanceof StartError && error.exitCode === exitCodes.usage ? "usage" : "unexpected";
}

/** Null for an unexpected error. */
function failureMessage(error: unknown): string | null {
  if (error instanceof CommandFailure || error instanceof StartError) return error.message;
  const problem = problemOfFile(error);
  return problem === null ? null : printable(problem);
}
