/** The output file of a command: a new file with mode 0600, complete or not at all. */
import { access, constants, lstat, open, unlink } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { systemCode } from "../../../errors.js";
import {
  giveNewName,
  ignoring,
  missingAsNull,
  moveFileOver,
  randomName,
  syncDirectory,
  systemFiles,
  UncertainChange,
} from "../../../files/durable.js";
import { failureReason } from "../../../files/file-problem.js";
import { pinDirectory } from "../../../files/pinned.js";
import { CommandFailure } from "../errors.js";
import { printable } from "../output.js";

export type Content = Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>;

/** @throws CommandFailure conflict, usage, unexpected */
export async function checkNewFile(output: string, overwrite: boolean): Promise<void> {
  if (output === "-") throw new CommandFailure("usage", "-o - is not supported: omit -o for standard output");
  const target = resolve(output);
  const failed = (error: unknown) => {
    throw unwritable(target, error);
  };
  const found = await missingAsNull(lstat(target)).catch(failed);
  if (found?.isSymbolicLink()) throw isLink(target);
  if (found !== null && !found.isFile()) throw notRegular(target);
  await access(`${dirname(target)}/.`, constants.W_OK).catch(failed);
  if (found !== null && !overwrite) throw exists(target);
}

/** @throws CommandFailure when it cannot be written; no file is left then */
export async function writeNewFile(
  content: Content,
  output: string,
  overwrite: boolean,
  files = systemFiles,
  mode = 0o600,
): Promise<void> {
  const target = resolve(output);
  const directory = await pinDirectory(dirname(target)).catch((error: unknown) => {
    throw unwritable(target, error);
  });
  const name = join(directory.path, basename(target));
  const temp = `${name}.tmp-${randomName()}`;
  try {
    const handle = await open(temp, "wx", mode);
    try {
      for await (const part of content) await handle.writeFile(part); // appends
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (overwrite) await moveFileOver(files, temp, name);
    else if (!(await giveNewName(temp, name, files))) throw exists(target);
    await syncDirectory(files, directory.path);
  } catch (error) {
    const cause = error instanceof UncertainChange ? error.cause : error;
    if (!(cause instanceof Error && "syscall" in cause)) throw error;
    throw unwritable(target, cause);
  } finally {
    await ignoring(unlink(temp), "ENOENT");
    await directory.release();
  }
}

function unwritable(target: string, error: unknown): CommandFailure {
  return new CommandFailure("unexpected", `${printable(target)} cannot be written${failureReason(systemCode(error))}`);
}

/** DANGER: replacing a device by a file would remove it for the whole system. */
function notRegular(target: string): CommandFailure {
  return new CommandFailure("usage", `${printable(target)} is not a regular file: choose another`);
}

/** Not followed: in a directory of others, a link could name any file of the user. */
function isLink(target: string): CommandFailure {
  const remedy = "name the file that it leads to, or omit -o for standard output";
  return new CommandFailure("usage", `${printable(target)} is a symbolic link: ${remedy}`);
}

function exists(target: string): CommandFailure {
  const message = `${printable(target)} already exists: --overwrite replaces it`;
  return new CommandFailure("conflict", message);
}
