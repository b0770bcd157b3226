/** A directory that stays the same while files in it are made, renamed and removed by name. */
import { constants } from "node:fs";
import { open, readlink } from "node:fs/promises";
import { join } from "node:path";
import { findWeakPlace } from "../client/ownership.js";
import { NotPlainFile } from "./durable.js";

/** `path`: leads to this directory, whatever becomes of its name. */
type Pinned = { readonly path: string; readonly release: () => Promise<void> };

/**
 * Holds a directory open: another user who can replace it, or a directory above it, then cannot lead a command elsewhere
 * between two of its steps. Only Linux has paths of open directories; elsewhere the name is used.
 */
export async function pinDirectory(path: string): Promise<Pinned> {
  if (process.platform !== "linux") return { path, release: async () => {} };
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  const weak = await findWeakPlace(path);
  const named = weak === null || (weak.rest !== undefined && join(weak.path, ...weak.rest));
  // Below a directory of others, a link is theirs.
  if (named !== true && named !== (await readlink(`/proc/self/fd/${handle.fd}`))) {
    await handle.close();
    throw new NotPlainFile(path);
  }
  return { path: `/proc/self/fd/${handle.fd}`, release: () => handle.close() };
}
