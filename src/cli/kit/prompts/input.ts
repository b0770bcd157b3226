/** Input of a command: files and standard input as text, as JSON, or as bytes that are wiped. */
import { isUtf8 } from "node:buffer";
import { read } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Bytes } from "../../../../workers/protocol.js";
import { systemCode } from "../../../errors.js";
import { failureReason } from "../../../files/file-problem.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";

/** Reads a file whole; `name` is what messages call it. @throws CommandFailure usage */
export async function readInputFile(file: string, name: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new CommandFailure("usage", `${name} cannot be read${failureReason(systemCode(error))}`);
  }
}

/** Reads a file, or standard input for `-`. @throws CommandFailure usage */
export async function readInput(io: Io, source: string, name: string): Promise<Buffer> {
  return source === "-" ? buffer(io.stdin) : readInputFile(source, name);
}

/** @throws CommandFailure usage, unless the bytes are UTF-8 */
export function textOfInput(bytes: Buffer, name: string): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  const isUtf16 = ["fffe", "feff"].includes(bytes.toString("hex", 0, 2));
  const problem = isUtf16 ? "is UTF-16 text: save it as UTF-8" : "is not UTF-8 text: name a text file";
  throw new CommandFailure("usage", `${name} ${problem}`);
}

/**
 * Reads a file, or an open file descriptor, to its end; at most `limit` + 1 bytes, where the last one shows that there are
 * more. The caller wipes them. `name` stands for the source in messages; `isWhole` ends the input early. @throws CommandFailure usage
 */
export async function readBytes(
  source: string | number,
  name: string,
  limit: number,
  isWhole: (read: Uint8Array) => boolean = () => false,
): Promise<Bytes> {
  if (typeof source === "number") return readDescriptor(source, name, limit, isWhole);
  const handle = await open(source).catch((error: unknown) => {
    throw unreadable(name, error);
  });
  try {
    return await readDescriptor(handle.fd, name, limit, isWhole);
  } finally {
    await handle.close();
  }
}

async function readDescriptor(
  descriptor: number,
  name: string,
  limit: number,
  isWhole: (read: Uint8Array) => boolean,
): Promise<Bytes> {
  let buffer = own(Math.min(limit + 1, 65_536));
  let length = 0;
  try {
    while (length <= limit) {
      if (length === buffer.length) buffer = grown(buffer, limit + 1);
      const bytesRead = await readSome(descriptor, buffer, length, name);
      if (bytesRead === 0) break;
      length += bytesRead;
      if (isWhole(buffer.subarray(0, length))) break;
    }
    return buffer.slice(0, length);
  } finally {
    buffer.fill(0);
  }
}

async function readSome(descriptor: number, buffer: Bytes, at: number, name: string): Promise<number> {
  for (;;) {
    try {
      return (await promisify(read)(descriptor, buffer, at, buffer.length - at, null)).bytesRead;
    } catch (error) {
      if (systemCode(error) !== "EAGAIN") throw unreadable(name, error);
      await sleep(10); // another process that shares the pipe has made it non-blocking
    }
  }
}

function grown(buffer: Bytes, most: number): Bytes {
  const larger = own(Math.min(2 * buffer.length, most));
  larger.set(buffer);
  buffer.fill(0);
  return larger;
}

/** An explicit ArrayBuffer never moves: wiping reaches the only copy. */
function own(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(length));
}

function unreadable(name: string, error: unknown): CommandFailure {
  return new CommandFailure("usage", `${name} cannot be read${failureReason(systemCode(error))}`);
}

export type UnknownObject = { readonly [name: string]: unknown };

export function isObject(value: unknown): value is UnknownObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the object of a JSON text, or null. DANGER: the parser's own error would quote the text, which may be a secret. */
export function parseJsonObject(text: string): UnknownObject | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

export function objectsIn(value: unknown): UnknownObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Returns a non-empty string, or null. */
export function textIn(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
