/**
 * Durable file operations: a replaced file survives a power cut, and no reader ever sees a partial one.
 * Temp file in the same directory → write all → fsync → close → rename → fsync the directory.
 *
 * DANGER: never retry after a failed fsync. The kernel may have dropped the pages and would then report success for data
 * that is not on the disk.
 *
 * DANGER: an error does not prove that nothing happened. NFS and FUSE report one for a rename or a removal that took effect
 * when the server's reply is lost. So after an error the names are looked at, and only what is seen counts.
 */

import { randomUUID } from "node:crypto";
import { close, closeSync, constants, fstat, fsync, ftruncate, open, read, rename, type Stats, write } from "node:fs";
import * as nodeFiles from "node:fs/promises";
import { dirname, join } from "node:path";
import { systemCode } from "../errors.js";
import { flock } from "./flock.js";

/** Open file or directory, as a bare descriptor. Node's FileHandle does the same, and costs the main thread more for each durable replace. */
export class OpenFile {
  readonly #descriptor: number;
  #synced = false;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  static async open(path: string, flags: number, mode?: number): Promise<OpenFile> {
    return new OpenFile(await outcome<number>((done) => open(path, flags, mode, done)));
  }

  /** Writes all bytes; on a disk that fills up, a first write is short and the next one fails. */
  async writeFile(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const left = bytes.length - at;
      at += await outcome<number>((done) => write(this.#descriptor, bytes, at, left, null, done));
    }
  }

  /** Reads into `bytes` at index `at`; returns the number of bytes, 0 at the end of the file. */
  read(bytes: Uint8Array, at: number): Promise<number> {
    return outcome((done) => read(this.#descriptor, bytes, at, bytes.length - at, null, done));
  }

  /** Like `read`, from this place in the file. */
  readAt(bytes: Uint8Array, at: number, position: number): Promise<number> {
    return outcome((done) => read(this.#descriptor, bytes, at, bytes.length - at, position, done));
  }

  /** Cuts the file to this length. */
  truncate(length: number): Promise<void> {
    return outcome((done) => ftruncate(this.#descriptor, length, done));
  }

  stat(): Promise<Stats> {
    return outcome((done) => fstat(this.#descriptor, done));
  }

  async sync(): Promise<void> {
    await outcome((done) => fsync(this.#descriptor, done));
    this.#synced = true;
  }

  /** Synchronous after a sync. Otherwise closing may free the space of a replaced file, which takes time. */
  async close(): Promise<void> {
    if (this.#synced) closeSync(this.#descriptor);
    else await outcome((done) => close(this.#descriptor, done));
  }
}

/** As in node:fs/promises, at a lower cost. */
function renameFile(from: string, to: string): Promise<void> {
  return outcome((done) => rename(from, to, done));
}

type Done<T> = (error: Error | null, result?: T) => void;

function outcome<T = void>(call: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, result) => {
      if (error) reject(error);
      else resolve(result as T);
    });
  });
}

/** The file operations that storage uses: a parameter, so that tests can make each of them fail. */
export type FileOperations = Pick<
  typeof nodeFiles,
  "copyFile" | "link" | "lstat" | "mkdir" | "opendir" | "readdir" | "rmdir" | "unlink"
> & { readonly open: typeof OpenFile.open; readonly rename: typeof renameFile; readonly flock: typeof flock };

export const systemFiles: FileOperations = { ...nodeFiles, open: OpenFile.open, rename: renameFile, flock };

/** Returns 16 random hex digits; of a UUID, because Node draws the randomness of many UUIDs at once. */
export function randomName(): string {
  return randomUUID().replaceAll("-", "").slice(0, 16);
}

const tempName = /^\.tmp-[0-9a-f]{16}$/;

export function isTempName(name: string): boolean {
  return tempName.test(name);
}

/** Removes the temp files that a crash left in a directory. On a read-only disk they stay, and are harmless. */
export async function removeTemps(files: FileOperations, directory: string): Promise<void> {
  for (const entry of await files.readdir(directory, { withFileTypes: true })) {
    if (entry.isFile() && isTempName(entry.name)) await ignoring(files.unlink(join(directory, entry.name)), "EROFS");
  }
}

/** Replaces a file durably. After an error, the file is the old one or the new one, complete. */
export async function replaceFile(files: FileOperations, path: string, bytes: Uint8Array, mode = 0o600): Promise<void> {
  await moveIntoPlace(files, path, bytes, mode);
  await syncDirectory(files, dirname(path));
}

/** Gives a durable file a name that is free; returns false, and changes nothing, if the name is taken. */
export async function giveNewName(temp: string, target: string, files = systemFiles): Promise<boolean> {
  try {
    await files.link(temp, target);
    return true;
  } catch (error) {
    const found = await missingAsNull(files.lstat(target));
    if (found !== null) return found.ino === (await files.lstat(temp)).ino; // the link was made
    if (systemCode(error) === "EEXIST") return false;
    await moveFile(files, temp, target); // no hard links here
    return true;
  }
}

/** A rename or a removal failed, and whether it took effect cannot be seen. */
export class UncertainChange extends Error {
  constructor(cause: unknown) {
    super("a file operation failed, and its effect cannot be seen", { cause });
    this.name = "UncertainChange";
  }
}

/** Renames a file or a directory to a name that is free. @throws UncertainChange; any other error: nothing has happened. */
export async function moveFile(files: FileOperations, from: string, to: string): Promise<void> {
  try {
    await files.rename(from, to);
  } catch (error) {
    const isMoved = async () => !(await exists(files, from)) && (await exists(files, to));
    if (!(await seen(isMoved, error))) throw error;
  }
}

/** Renames a file over what has the name. @throws UncertainChange; any other error: nothing has happened. */
export async function moveFileOver(files: FileOperations, from: string, to: string): Promise<void> {
  const { ino } = await files.lstat(from);
  try {
    await files.rename(from, to);
  } catch (error) {
    const isMoved = async () => !(await exists(files, from)) && (await files.lstat(to)).ino === ino;
    if (!(await seen(isMoved, error))) throw error;
  }
}

/** Removes a file; returns false if there was none. @throws UncertainChange; any other error: the file is still there. */
export async function unlinkFile(files: FileOperations, path: string): Promise<boolean> {
  try {
    return (await missingAsNull(files.unlink(path).then(() => true))) !== null;
  } catch (error) {
    if (await seen(() => exists(files, path), error)) throw error;
    return true;
  }
}

async function exists(files: FileOperations, path: string): Promise<boolean> {
  return (await missingAsNull(files.lstat(path))) !== null;
}

/** Looks what became of a failed operation. @throws UncertainChange */
async function seen(look: () => Promise<boolean>, cause: unknown): Promise<boolean> {
  try {
    return await look();
  } catch {
    throw new UncertainChange(cause);
  }
}

/**
 * Does a durable replace except its last step, `syncDirectory` of the directory. Awaits `beforeReplace` just before the
 * old file is replaced.
 * @throws UncertainChange when the old file or the new one may be there; any other error: the old file is.
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
  } catch (error) {
    await files.unlink(temp).catch(() => {}); // the next start removes it otherwise
    throw naming(path, error);
  }
  try {
    await files.rename(temp, path);
  } catch (error) {
    if (await seen(() => isReplaced(files, temp, path, bytes), error)) return;
    await files.unlink(temp).catch(() => {});
    throw naming(path, error);
  }
}

/** Compares bytes: the temp file is also gone when another program has removed the directory. */
async function isReplaced(files: FileOperations, temp: string, path: string, bytes: Uint8Array): Promise<boolean> {
  if (await exists(files, temp)) return false;
  const found = await readFileBytes(files, path, bytes.length + 1);
  return found !== null && Buffer.compare(found, bytes) === 0;
}

/** A failed write does not name its file. */
function naming(path: string, error: unknown): unknown {
  return error instanceof Error ? Object.assign(error, { path }) : error;
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

/** Deletes a file durably. A missing file is no error. */
export async function removeFile(files: FileOperations, path: string): Promise<void> {
  await unlinkFile(files, path);
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

/** Opening a pipe without a writer would block forever. */
const noWait = constants.O_NONBLOCK ?? 0;

/** There is a link, a directory, a pipe or the like instead of a file. */
export class NotPlainFile extends Error {
  readonly code = "not a plain file";
  readonly path: string;

  constructor(path: string) {
    super(`${path} is not a plain file`);
    this.path = path;
  }
}

/** Errors of opening a link, a socket, a directory or a device. */
const notPlainCodes = new Set(["ELOOP", "EMLINK", "ENXIO", "ENODEV", "EISDIR"]);

/**
 * Returns the first `limit` bytes of a plain file, in memory that can be moved to another thread; null if it does not exist.
 * @throws NotPlainFile
 */
export async function readFileBytes(
  files: FileOperations,
  path: string,
  limit: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const file = await openToRead(files, path);
  if (file === null) return null;
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new NotPlainFile(path);
    return await readFirst(file, Math.min(found.size, limit));
  } finally {
    await file.close();
  }
}

async function openToRead(files: FileOperations, path: string): Promise<OpenFile | null> {
  try {
    return await missingAsNull(files.open(path, constants.O_RDONLY | noFollow | noWait));
  } catch (error) {
    throw notPlainCodes.has(systemCode(error) ?? "") ? new NotPlainFile(path) : error;
  }
}

async function readFirst(file: OpenFile, wanted: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(new ArrayBuffer(wanted));
  let length = 0;
  while (length < bytes.length) {
    const more = await file.read(bytes, length);
    if (more === 0) break;
    length += more;
  }
  return length === bytes.length ? bytes : bytes.slice(0, length);
}
