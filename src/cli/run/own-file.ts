/** Files that decide what programs get: read only when no other user can have written or replaced them. */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCode } from "../../errors.js";
import { reasonOf } from "../../files/file-problem.js";
import { quoted } from "../../files/home.js";
import { CommandFailure } from "../lib/errors.js";
import { printable } from "../lib/output.js";

export type OwnFile = { readonly file: string; readonly bytes: Buffer };

export function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Such a file needs far less, and a hostile repository may contain one that would fill the memory. */
const mostBytes = 1024 * 1024;

/**
 * Checks and reads the same open file.
 * @throws CommandFailure usage, when another user owns the file or can change it, when it is not a regular file, or above 1 MiB
 */
export async function readOwnFile(file: string): Promise<OwnFile> {
  // O_NONBLOCK: without it, opening a named pipe would wait for a writer.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => {
    throw new CommandFailure("usage", `${printable(file)} cannot be read${reasonOf(systemCode(error))}`);
  });
  try {
    const stats = await handle.stat();
    mustBeOwn(file, stats);
    if (!stats.isFile()) throw new CommandFailure("usage", `${printable(file)} is not a file`);
    if (stats.size > mostBytes) throw new CommandFailure("usage", `${printable(file)} has more than 1 MiB`);
    for (const directory of new Set([dirname(file), dirname(await realpath(file))])) await mustBeClosed(directory);
    return { file, bytes: await handle.readFile() };
  } finally {
    await handle.close();
  }
}

type Access = { readonly uid: number; readonly mode: number };

const writableByOthers = 0o022;
/** In a directory with this bit, only its owner and a file's may rename or remove the file. */
const sticky = 0o1000;

function mustBeOwn(file: string, { uid, mode }: Access): void {
  if (process.getuid !== undefined && uid !== process.getuid()) {
    throw new CommandFailure("usage", `${printable(file)} belongs to another user: it is not used`);
  }
  if ((mode & writableByOthers) !== 0) throw openToOthers(file);
}

/** DANGER: who can write the directory can put another file in its place. */
async function mustBeClosed(directory: string): Promise<void> {
  const { uid, mode } = await stat(directory);
  if (process.getuid !== undefined && uid !== 0 && uid !== process.getuid()) {
    throw new CommandFailure("usage", `${printable(directory)} belongs to another user: the file in it is not used`);
  }
  if ((mode & writableByOthers) !== 0 && (mode & sticky) === 0) throw openToOthers(directory);
}

function openToOthers(file: string): CommandFailure {
  const remedy = `run  chmod go-w ${printable(quoted(file))}`;
  return new CommandFailure("usage", `${printable(file)} can be written by others: ${remedy}`);
}
