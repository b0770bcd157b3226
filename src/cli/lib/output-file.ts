/** Plaintext output of a command: a new file with mode 0600, complete or not at all; else standard output. */
import { access, constants, lstat, open, unlink } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { systemCode } from "../../errors.js";
import {
  giveNewName,
  ignoring,
  missingAsNull,
  moveFileOver,
  randomName,
  syncDirectory,
  systemFiles,
  UncertainChange,
} from "../../files/durable.js";
import { reasonOf } from "../../files/file-problem.js";
import { EarlierOption, nonEmpty, onlyWith } from "./args.js";
import { CommandFailure } from "./errors.js";
import { type OutputFlags, printable, withOutput } from "./output.js";

export type OutputFileFlags = OutputFlags & { readonly output?: string; readonly overwrite?: true };

export type Content = Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>;

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
  if (output === "-") throw new CommandFailure("usage", "-o - is not supported: omit -o for standard output");
  const target = resolve(output);
  await access(`${dirname(target)}/.`, constants.W_OK).catch((error: unknown) => {
    throw unwritable(target, error);
  });
  const found = await missingAsNull(lstat(target));
  if (found !== null && !found.isFile() && !found.isSymbolicLink()) throw notRegular(target);
  if (found !== null && !overwrite) throw exists(target);
}

/** @throws CommandFailure when it cannot be written; no file is left then */
export async function writeOut(
  content: Content,
  { output, overwrite }: OutputFileFlags,
  files = systemFiles,
): Promise<void> {
  if (output === undefined) return pipeline(Readable.from(content), process.stdout, { end: false });
  const target = resolve(output);
  const temp = `${target}.tmp-${randomName()}`;
  try {
    await writeWhole(temp, content);
    if (overwrite) await moveFileOver(files, temp, target);
    else if (!(await giveNewName(temp, target, files))) throw exists(target);
    await syncDirectory(systemFiles, dirname(target));
  } catch (error) {
    const cause = error instanceof UncertainChange ? error.cause : error;
    if (!(cause instanceof Error && "syscall" in cause)) throw error;
    throw unwritable(target, cause);
  } finally {
    await ignoring(unlink(temp), "ENOENT");
  }
}

async function writeWhole(file: string, content: Content): Promise<void> {
  const handle = await open(file, "wx", 0o600);
  try {
    for await (const part of content) await handle.writeFile(part); // appends
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function unwritable(target: string, error: unknown): CommandFailure {
  return new CommandFailure("unexpected", `${printable(target)} cannot be written${reasonOf(systemCode(error))}`);
}

/** DANGER: replacing a device by a file would remove it for the whole system. */
function notRegular(target: string): CommandFailure {
  return new CommandFailure("usage", `${printable(target)} is not a regular file: choose another`);
}

function exists(target: string): CommandFailure {
  const message = `${printable(target)} already exists: --overwrite replaces it`;
  return new CommandFailure("conflict", message);
}
