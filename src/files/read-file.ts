/** Reading of plain files only, whatever another program has put in their place. */
import { constants } from "node:fs";
import { systemCode } from "../errors.js";
import { type FileOperations, missingAsNull, noFollow } from "./durable.js";
import type { OpenFile } from "./open-file.js";

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
