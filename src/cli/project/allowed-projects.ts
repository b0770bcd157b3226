/**
 * Projects that the user has allowed: in the user's state directory, one file each, named by the SHA-256 of all paths and
 * contents. A change of a file, or the same content elsewhere, is not allowed by it.
 */
import { createHash } from "node:crypto";
import { mkdir, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { OwnFile } from "./own-file.js";

export async function isAllowed(files: readonly OwnFile[]): Promise<boolean> {
  const found = await stat(markOf(files)).catch(() => null);
  return found !== null;
}

export async function allow(files: readonly OwnFile[]): Promise<void> {
  await mkdir(directory(), { recursive: true, mode: 0o700 });
  await writeFile(markOf(files), files.map(({ file }) => `${file}\n`).join(""), { mode: 0o600 });
}

export async function revoke(files: readonly OwnFile[]): Promise<void> {
  await rm(markOf(files), { force: true });
}

/** The XDG base directory specification: kept over restarts, but not to be copied to other machines. */
function directory(): string {
  const { XDG_STATE_HOME } = process.env;
  const state = XDG_STATE_HOME?.startsWith("/") ? XDG_STATE_HOME : join(homedir(), ".local", "state");
  return join(state, "strongroom", "allowed");
}

function markOf(files: readonly OwnFile[]): string {
  const hash = createHash("sha256");
  for (const part of files.flatMap(({ file, bytes }) => [Buffer.from(file), bytes])) {
    hash.update(`${part.length}:`).update(part); // with its length, so that no two lists of parts agree
  }
  return join(directory(), hash.digest("hex"));
}
