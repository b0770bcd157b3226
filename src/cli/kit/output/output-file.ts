/** Plaintext output of a command: a new file, which `new-file` writes, else standard output. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { EarlierOption, nonEmpty, onlyWith } from "../args/args.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { type OutputFlags, withOutput } from "../output.js";
import type { Content } from "./new-file.js";

export type OutputFileFlags = OutputFlags & { readonly output?: string; readonly overwrite?: true };

export function withOutputFile(command: Command): Command {
  return withOutput(withNewFile(command).addOption(new EarlierOption("--force", "overwrite")));
}

/** Adds the flags of an output file. */
export function withNewFile(command: Command): Command {
  const changed = command
    .option("-o, --output <file>", "file to create, readable only by you (0600); default: standard output", nonEmpty)
    .option("--overwrite", "replace the output file if it exists");
  return onlyWith(changed, "overwrite", "output");
}

/** Checks the flags before any work is done. @throws CommandFailure conflict, usage */
export async function checkOutput(flags: OutputFileFlags): Promise<void> {
  if (flags.json && flags.output === undefined) {
    throw new CommandFailure("usage", "--json needs -o: without it, standard output holds the text");
  }
  await checkTarget(flags);
}

/** Checks only the output file, as a dry run needs it. @throws CommandFailure conflict, usage, unexpected */
export async function checkTarget({ output, overwrite }: OutputFileFlags): Promise<void> {
  if (output === undefined) return;
  const { checkNewFile } = await import("./new-file.js"); // loads node:crypto, which standard output does not need
  await checkNewFile(output, overwrite === true);
}

/** @throws CommandFailure when it cannot be written; no file is left then */
export async function writeOut(io: Io, content: Content, { output, overwrite }: OutputFileFlags): Promise<void> {
  if (output === undefined) return pipeline(Readable.from(content), io.stdout, { end: false });
  const { writeNewFile } = await import("./new-file.js");
  await writeNewFile(content, output, overwrite === true);
}
