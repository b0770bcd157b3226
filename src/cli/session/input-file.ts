/** Input of a command: a file, or standard input. */
import { isUtf8 } from "node:buffer";
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { systemCode } from "../../errors.js";
import { reasonOf } from "../../files/file-problem.js";
import { CommandFailure } from "./exit-codes.js";

/** Reads a file whole; `name` is what messages call it. @throws CommandFailure usage */
export async function readInputFile(file: string, name: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new CommandFailure("usage", `${name} cannot be read${reasonOf(systemCode(error))}`);
  }
}

/** Reads a file, or standard input for `-`. @throws CommandFailure usage */
export async function readInput(source: string, name: string): Promise<Buffer> {
  return source === "-" ? buffer(process.stdin) : readInputFile(source, name);
}

/** @throws CommandFailure usage, unless the bytes are UTF-8 */
export function textOfInput(bytes: Buffer, name: string): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  throw new CommandFailure("usage", `${name} is not UTF-8`);
}
