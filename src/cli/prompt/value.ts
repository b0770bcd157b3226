/**
 * Owns where a command gets a value: a hidden prompt, standard input, or a file; never an argument, which others can
 * read. It is bytes of ours from the first read to the wipe.
 */
import { isUtf8 } from "node:buffer";
import { read } from "node:fs";
import { open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { isatty } from "node:tty";
import { promisify } from "node:util";
import type { Command } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import { systemCode } from "../../errors.js";
import { reasonOf } from "../../files/file-problem.js";
import { CommandFailure } from "../session/exit-codes.js";
import { askHidden } from "./terminal.js";

/** What the flags of `withValue` become. */
export type ValueSource = {
  readonly fromFile?: string;
  readonly raw?: true;
  readonly allowEmpty?: true;
  readonly nonInteractive?: true;
};

const maxTypedBytes = 65_536;
/** More than any server takes. */
const maxValueBytes = 64 * 2 ** 20;

/** Gives a command the flags that say where the value is. */
export function withValue(command: Command): Command {
  return command
    .option("--from-file <file>", "read the value from a file; - is standard input")
    .option("--raw", "keep a newline at the end of a single line, which is dropped otherwise")
    .option("--allow-empty", "store a value of no bytes")
    .option("--non-interactive", "never ask: a value that would have to be typed is an error");
}

/** The value, which the caller wipes. @throws CommandFailure usage, aborted */
export async function readValue(source: ValueSource, question: string): Promise<Bytes> {
  const found = await readSource(source, question);
  const problem = problemOf(found, source);
  if (problem === null) return found;
  found.fill(0);
  throw new CommandFailure("usage", `the value ${problem}`);
}

async function readSource({ fromFile, raw, nonInteractive }: ValueSource, question: string): Promise<Bytes> {
  if (fromFile !== undefined && fromFile !== "-") return trimmed(await readFile(fromFile), raw);
  if (fromFile === "-" || !isatty(0)) return trimmed(await readDescriptor(0, "standard input"), raw);
  const typed = nonInteractive ? null : await askHidden(question, maxTypedBytes);
  if (typed !== null) return typed;
  throw new CommandFailure("usage", "the value would have to be typed: pipe it in, or use --from-file");
}

function problemOf(value: Bytes, { allowEmpty }: ValueSource): string | null {
  if (value.length === 0 && !allowEmpty) return "is empty: nothing was stored; --allow-empty stores it all the same";
  return problemOfBytes(value);
}

/** What no server stores; null when nothing is wrong with it. */
export function problemOfBytes(value: Uint8Array): string | null {
  return isUtf8(value) ? null : "is not UTF-8 text: encode it first, for instance with base64";
}

function trimmed(value: Bytes, raw: true | undefined): Bytes {
  return raw ? value : withoutFinalNewline(value);
}

/** Tools end a line that they print; a text of several lines keeps its end. The given bytes are wiped. */
export function withoutFinalNewline(value: Bytes): Bytes {
  const newline = value.indexOf(0x0a);
  if (newline === -1 || newline !== value.length - 1) return value;
  const shorter = value.slice(0, value[newline - 1] === 0x0d ? newline - 1 : newline);
  value.fill(0);
  return shorter;
}

async function readFile(file: string): Promise<Bytes> {
  const name = "the file that --from-file names"; // which may be a value that was mistyped there
  const handle = await open(file).catch((error: unknown) => {
    throw unreadable(name, error);
  });
  try {
    return await readDescriptor(handle.fd, name);
  } finally {
    await handle.close();
  }
}

/** All there is to read. @throws CommandFailure usage */
async function readDescriptor(descriptor: number, name: string): Promise<Bytes> {
  let buffer = own(65_536);
  let length = 0;
  try {
    for (;;) {
      if (length > maxValueBytes)
        throw new CommandFailure(
          "usage",
          `${name} holds more than ${maxValueBytes} bytes, the most that any server takes`,
        );
      if (length === buffer.length) buffer = grown(buffer);
      const bytesRead = await readSome(descriptor, buffer, length, name);
      if (bytesRead === 0) return buffer.slice(0, length);
      length += bytesRead;
    }
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
      await sleep(10); // somebody who shares the pipe has set it not to wait
    }
  }
}

function grown(buffer: Bytes): Bytes {
  const larger = own(2 * buffer.length);
  larger.set(buffer);
  buffer.fill(0);
  return larger;
}

/** An explicit ArrayBuffer never moves: wiping reaches the only copy. */
function own(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(length));
}

function unreadable(what: string, error: unknown): CommandFailure {
  return new CommandFailure("usage", `${what} cannot be read${reasonOf(systemCode(error))}`);
}
