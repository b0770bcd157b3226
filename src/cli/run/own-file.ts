/** Files that decide what programs get: read only when no other user can have written or replaced them. */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { findWeakPlace, ownUid, writing } from "../../client/ownership.js";
import { systemCode } from "../../errors.js";
import { failureReason } from "../../files/file-problem.js";
import { quoted } from "../../files/home.js";
import { CommandFailure } from "../kit/errors.js";
import { printable } from "../kit/output.js";

export type OwnFile = { readonly file: string; readonly bytes: Buffer };

export function sha256Hex(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Limit of the file's bytes: it needs far less, and a hostile repository may have one to fill the memory. */
const mostBytes = 1024 * 1024;

/**
 * Checks and reads the same open file.
 * @throws CommandFailure usage, when another user owns the file or can change it, when it is not a regular file, or above 1 MiB
 */
export async function readOwnFile(file: string): Promise<OwnFile> {
  // O_NONBLOCK: without it, opening a named pipe would wait for a writer.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => {
    throw new CommandFailure("usage", `${printable(file)} cannot be read${failureReason(systemCode(error))}`);
  });
  try {
    const stats = await handle.stat();
    if (ownUid !== null && stats.uid !== ownUid) {
      throw new CommandFailure("usage", `${printable(file)} belongs to another user: it is not used`);
    }
    if ((stats.mode & writing) !== 0) throw openToOthers(file);
    if (!stats.isFile()) throw new CommandFailure("usage", `${printable(file)} is not a file`);
    if (stats.size > mostBytes) throw new CommandFailure("usage", `${printable(file)} has more than 1 MiB`);
    await mustStay(file);
    return { file, bytes: await handle.readFile() };
  } finally {
    await handle.close();
  }
}

/** DANGER: who can write to a directory above the file can put another file in its place. */
async function mustStay(file: string): Promise<void> {
  const weak = await findWeakPlace(file);
  if (weak === null) return;
  if (weak.why === "writable") throw openToOthers(weak.path);
  throw new CommandFailure("usage", `${printable(weak.path)} belongs to another user: the file in it is not used`);
}

function openToOthers(file: string): CommandFailure {
  const remedy = `run  chmod go-w ${printable(quoted(file))}`;
  return new CommandFailure("usage", `${printable(file)} can be written by others: ${remedy}`);
}
