/**
 * Durable file operations: a replaced file survives a power cut, and no reader ever sees a partial one.
 * Temp file in the same directory → write all → fsync → close → rename → fsync the directory.
 *
 * DANGER: never retry after a failed fsync. The kernel may have dropped the pages and would then report success for data
 * that is not on the disk.
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
  "copyFile" | "link" | "lstat" | "mkdir" | "opendir" | "readdir" | "rmdir" | "unlink"
> & { readonly open: typeof OpenFile.open; readonly rename: typeof renameFile };

export const systemFiles: FileOperations = { ...nodeFiles, open: OpenFile.open, rename: renameFile };

/** Returns 16 random hex digits; of a UUID, because Node draws the randomness of many UUIDs at once. */
export function randomName(): string {
  return randomUUID().replaceAll("-", "").slice(0, 16);
}

const tempName = /^\.tmp-[0-9a-f]{16}$/;

export function isTempName(name: string): boolean {
  return tempName.test(name);
}

/** Replaces a file durably. After an error, the file is the old one or the new one, complete. */
export async function replaceFile(files: FileOperations, path: string, bytes: Uint8Array, mode = 0o600): Promise<void> {
  await moveIntoPlace(files, path, bytes, mode);
  await syncDirectory(files, dirname(path));
}

/** Renames a durable file without replacing another; returns false, and changes nothing, if the name is taken. */
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
 * Does a durable replace except its last step, `syncDirectory` of the directory. Awaits `beforeReplace` just before the
 * old file is replaced.
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
    await files.unlink(temp).catch(() => {}); // the next start removes it otherwise
    throw error instanceof Error ? Object.assign(error, { path }) : error; // a failed write does not name its file
  }
}

/** Writes a new file and syncs its bytes; its name is durable once its directory is synced. */
export async function writeNew(files: FileOperations, path: string, bytes: Uint8Array, mode: number): Promise<void> {
  const file = await files.open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow, mode);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Errors for a directory that can be used but not synced, for example because it must not be read. */
const unsyncable = ["EACCES", "EROFS", "EINVAL", "ENOTSUP"];

/**
 * Makes a directory durably; returns false if the name exists. That name is synced as well: the process that made it may
 * have been killed before its own sync.
 */
export async function makeDirectory(files: FileOperations, path: string): Promise<boolean> {
  const made = await ignoring(files.mkdir(path, { mode: 0o700 }), "EEXIST");
  try {
    await ignoring(syncDirectory(files, dirname(path)), ...(made ? ["EACCES"] : unsyncable));
    return made;
  } catch (error) {
    if (made) await files.rmdir(path).catch(() => {}); // so that the next attempt makes and syncs it again
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
  return { sync: async () => {}, close: async () => {} }; // Windows cannot open directories; it journals names itself
}

/** Refuses a link where a file of ours should be. Windows has no such flag. */
export const noFollow = constants.O_NOFOLLOW ?? 0;

/** Awaits an operation; returns null if its file does not exist. */
export async function missingAsNull<T>(attempt: Promise<T>): Promise<T | null> {
  try {
    return await attempt;
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return null;
    throw error;
  }
}

/** Awaits an operation and ignores errors with these codes; returns whether it succeeded. */
export async function ignoring(attempt: Promise<unknown>, ...codes: readonly string[]): Promise<boolean> {
  try {
    await attempt;
    return true;
  } catch (error) {
    if (codes.includes(systemCode(error) ?? "")) return false;
    throw error;
  }
}
