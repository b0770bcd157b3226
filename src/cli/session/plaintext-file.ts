/** Owns where commands put plaintext: a new file for this user alone, whole or not at all; else standard output. */
import { access, constants, lstat, open, rename, unlink } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { systemCode } from "../../errors.js";
import { giveNewName, ignoring, missingAsNull, randomName, syncDirectory, systemFiles } from "../../files/durable.js";
import { reasonOf } from "../../files/file-problem.js";
import { CommandFailure } from "./exit-codes.js";
import { nonEmpty, onlyWith } from "./flags.js";
import { type OutputFlags, printable, withOutput } from "./output.js";

export type OutputFileFlags = OutputFlags & { readonly output?: string; readonly force?: true };

export type Content = Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>;

export function withOutputFile(command: Command): Command {
  const changed = command
    .option("-o, --output <file>", "file to make, for you alone (0600); else standard output", nonEmpty)
    .option("--force", "replace the output file if it is there");
  return withOutput(onlyWith(changed, "force", "output"));
}

/** Before any work is done. @throws CommandFailure conflict, usage */
export async function checkOutput(flags: OutputFileFlags): Promise<void> {
  if (flags.json && flags.output === undefined) {
    throw new CommandFailure("usage", "--json tells about the output file, and standard output has the text: use -o");
  }
  await checkTarget(flags);
}

/** What holds for a trial, too, whose standard output has no text. @throws CommandFailure conflict, usage, unexpected */
export async function checkTarget({ output, force }: OutputFileFlags): Promise<void> {
  if (output === undefined) return;
  if (output === "-") throw new CommandFailure("usage", "standard output is used without -o: leave -o - away");
  const target = resolve(output);
  await access(`${dirname(target)}/.`, constants.W_OK).catch((error: unknown) => {
    throw unwritable(target, error);
  });
  const found = await missingAsNull(lstat(target));
  if (found !== null && !found.isFile() && !found.isSymbolicLink()) throw oddFile(target);
  if (found !== null && !force) throw exists(target);
}

/** @throws CommandFailure when it cannot be written; then there is no new file. */
export async function writeOut(content: Content, { output, force }: OutputFileFlags): Promise<void> {
  if (output === undefined) return pipeline(Readable.from(content), process.stdout, { end: false });
  const target = resolve(output);
  const temp = `${target}.tmp-${randomName()}`;
  try {
    await writeWhole(temp, content);
    if (force) await rename(temp, target);
    else if (!(await giveNewName(temp, target))) throw exists(target);
    await syncDirectory(systemFiles, dirname(target));
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    throw unwritable(target, error);
  } finally {
    await ignoring(unlink(temp), "ENOENT");
  }
}

async function writeWhole(file: string, content: Content): Promise<void> {
  const handle = await open(file, "wx", 0o600);
  try {
    for await (const part of content) await handle.writeFile(part); // each goes on where the last one ended
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function unwritable(target: string, error: unknown): CommandFailure {
  return new CommandFailure("unexpected", `${printable(target)} cannot be written${reasonOf(systemCode(error))}`);
}

/** A device that was replaced by a file would be gone for everybody. */
function oddFile(target: string): CommandFailure {
  return new CommandFailure("usage", `${printable(target)} is not a plain file: name another`);
}

function exists(target: string): CommandFailure {
  const message = `${printable(target)} exists already and is left as it is: --force replaces it`;
  return new CommandFailure("conflict", message);
}
