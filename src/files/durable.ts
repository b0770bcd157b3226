/**
 * Owns writing so that it survives a power cut, and nothing half-written is ever seen:
 * temp file in the same directory → write all → fsync → close → rename → fsync the directory.
 *
 * After a failed fsync nothing is tried again on that file: the kernel may have dropped the pages and would then report
 * success for data that is not there.
 */

import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import * as nodeFiles from "node:fs/promises";
import { dirname, join } from "node:path";
import { systemCode } from "../errors.js";
import { OpenFile, renameFile } from "./open-file.js";

/** The file operations that storage uses: a parameter, so that tests can make each of them fail. */
export type FileOperations = Pick<
  typeof nodeFiles,
  "copyFile" | "link" | "lstat" | "mkdir" | "readdir" | "rmdir" | "unlink"
> & { readonly open: typeof OpenFile.open; readonly rename: typeof renameFile };

export const systemFiles: FileOperations = { ...nodeFiles, open: OpenFile.open, rename: renameFile };

/** Sixteen hex digits that nobody else has: of a UUID, since Node draws the randomness of many of those at once. */
export function randomName(): string {
  return randomUUID().replaceAll("-", "").slice(0, 16);
}

const tempName = /^\.tmp-[0-9a-f]{16}$/;

export function isTempName(name: string): boolean {
  return tempName.test(name);
}

/** Replaces a file durably. When it throws, the old file stands as it was, or the new one does, whole. */
export async function replaceFile(files: FileOperations, path: string, bytes: Uint8Array, mode = 0o600): Promise<void> {
  await moveIntoPlace(files, path, bytes, mode);
  await syncDirectory(files, dirname(path));
}

/** Gives a file that lasts a name that nobody has; false, and nothing has changed, when somebody does. */
export async function giveNewName(temp: string, target: string): Promise<boolean> {
  try {
    await nodeFiles.link(temp, target);
    return true;
  } catch (error) {
    if (systemCode(error) === "EEXIST" || (await missingAsNull(nodeFiles.lstat(target))) !== null) return false;
    await nodeFiles.rename(temp, target); // no hard links here
    return true;
  }
}

/**
 * All of a durable replace but its last step: `syncDirectory` of the directory makes it last. `beforeReplace` is awaited
 * just before the old file goes.
 */
export async function moveIntoPlace(
  files: FileOperations,
  path: string,
  bytes: Uint8Array,
  mode = 0o600,
  beforeReplace?: () => Promise<unknown>,
): Promise<void> {
  const temp = join(dirname(path), `.tmp-${randomName()}`);
  try {
    await writeNew(files, temp, bytes, mode);
    await beforeReplace?.();
    await files.rename(temp, path);
  } catch (error) {
    await files.unlink(temp).catch(() => {}); // or at the next start
    throw error instanceof Error ? Object.assign(error, { path }) : error; // a failed write does not say of what
  }
}

/** Writes a file that is not there yet; its bytes last, its name only once its directory is synced. */
export async function writeNew(files: FileOperations, path: string, bytes: Uint8Array, mode: number): Promise<void> {
  const file = await files.open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow, mode);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** What the system says of a directory that may be used and not be synced; one that may not be read is such a one. */
const unsyncable = ["EACCES", "EROFS", "EINVAL", "ENOTSUP"];

/**
 * Makes a directory whose name lasts; false when something has that name already, which lasts then, too: whoever gave it
 * may have been killed before it did.
 */
export async function makeDirectory(files: FileOperations, path: string): Promise<boolean> {
  const made = await ignoring(files.mkdir(path, { mode: 0o700 }), "EEXIST");
  try {
    await ignoring(syncDirectory(files, dirname(path)), ...(made ? ["EACCES"] : unsyncable));
    return made;
  } catch (error) {
    if (made) await files.rmdir(path).catch(() => {}); // so that the next attempt makes, and syncs, a new name
    throw error;
  }
}

/** Deletes a file durably. */
export async function removeFile(files: FileOperations, path: string): Promise<void> {
  await ignoring(files.unlink(path), "ENOENT");
  await syncDirectory(files, dirname(path));
}

/** Makes the names in a directory durable. */
export async function syncDirectory(files: FileOperations, path: string): Promise<void> {
  const directory = await openDirectory(files, path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

export type OpenDirectory = Pick<OpenFile, "sync" | "close">;

export async function openDirectory(files: FileOperations, path: string): Promise<OpenDirectory> {
  if (process.platform !== "win32") return files.open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  return { sync: async () => {}, close: async () => {} }; // Windows cannot open directories, and journals names itself
}

/** Never follow a link that somebody put where a file of ours should be. Windows has no such flag. */
export const noFollow = constants.O_NOFOLLOW ?? 0;

/** Awaits an operation; null when what it is about does not exist. */
export async function missingAsNull<T>(attempt: Promise<T>): Promise<T | null> {
  try {
    return await attempt;
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return null;
    throw error;
  }
}

/** Awaits an operation whose failure for one of these reasons changes nothing; true when it succeeded. */
export async function ignoring(attempt: Promise<unknown>, ...codes: readonly string[]): Promise<boolean> {
  try {
    await attempt;
    return true;
  } catch (error) {
    if (codes.includes(systemCode(error) ?? "")) return false;
    throw error;
  }
}
