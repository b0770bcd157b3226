/** The command line's parser in the tests' own process, for help and refusals: a process for each would be slow. */
import { CommanderError } from "commander";
import { commands } from "../../src/cli/command-table.js";
import { CommandFailure } from "../../src/cli/kit/errors.js";
import { loadProgram } from "../../src/cli/program.js";
import { stringIo } from "./string-io.js";

/** Runs a command that must refuse its arguments as invalid and print nothing; returns its message. */
export async function usageRefusal(args: readonly string[]): Promise<string> {
  const { printed, error } = await runHere(args);
  const isRefusal = error instanceof CommandFailure && error.exit === "usage" && printed === "";
  if (!isRefusal) throw new Error(`not refused: ${printed}`, { cause: error });
  return `strongroom: ${error.message}\n`;
}

/** Returns the output of `strongroom NAME --help`. */
export async function commandHelp(name: string): Promise<string> {
  const { printed, error } = await runHere([name, "--help"]);
  const isHelp = error === null || (error instanceof CommanderError && error.exitCode === 0); // help ends the parser so
  if (!isHelp) throw error;
  return printed;
}

async function runHere(args: readonly string[]): Promise<{ readonly printed: string; readonly error: unknown }> {
  const io = stringIo();
  const program = await loadProgram(commands, args, io);
  const error: unknown = await program.run().then(
    () => null,
    (thrown: unknown) => thrown,
  );
  return { printed: io.printed().stdout, error };
}
