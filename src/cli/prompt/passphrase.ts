/**
 * Owns where a command gets a passphrase: the terminal, a file, or an open file descriptor; never an argument or the
 * environment, which others can read. It is bytes of ours from the first read to the wipe.
 */
import { isUtf8 } from "node:buffer";
import { read } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { promisify } from "node:util";
import { type Command, Option } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import { integer } from "../../config/readers.js";
import { systemCode } from "../../errors.js";
import { reasonOf } from "../../files/file-problem.js";
import { CommandFailure } from "../session/exit-codes.js";
import { askHidden } from "./terminal.js";

const maxPassphraseBytes = 1024;

/** What the flags of `withPassphrase` become. */
export type PassphraseSource = {
  readonly passphraseFile?: string;
  readonly passphraseFd?: number;
  readonly nonInteractive?: true;
};

/** Gives a command the flags that say where the passphrase is. */
export function withPassphrase(command: Command): Command {
  const file = new Option("--passphrase-file <file>", "read the passphrase from a file; - is standard input");
  const descriptor = new Option("--passphrase-fd <number>", "read the passphrase from an open file descriptor");
  return command
    .addOption(file.conflicts("passphraseFd"))
    .addOption(descriptor.argParser(integer(0, 9_999_999)))
    .option("--non-interactive", "never ask: a passphrase that would have to be typed is an error");
}

/**
 * The passphrase, which the caller wipes. One newline at its end does not belong to it.
 * @throws CommandFailure usage, aborted
 */
export async function readPassphrase(source: PassphraseSource, question: string): Promise<Bytes> {
  const found = await readSource(source, question);
  const problem = problemOf(found);
  if (problem === null) return found;
  found.fill(0);
  throw new CommandFailure("usage", `the passphrase ${problem}`);
}

async function readSource(source: PassphraseSource, question: string): Promise<Bytes> {
  const { passphraseFile, passphraseFd, nonInteractive } = source;
  if (passphraseFile === "-") return fromDescriptor(0, "standard input");
  if (passphraseFile !== undefined) return fromFile(passphraseFile);
  if (passphraseFd !== undefined) return fromDescriptor(passphraseFd, `file descriptor ${passphraseFd}`);
  const typed = nonInteractive ? null : await askHidden(question, maxPassphraseBytes);
  if (typed !== null) return typed;
  const why = nonInteractive ? "--non-interactive forbids to ask" : "there is no terminal to ask on";
  throw new CommandFailure("usage", `the passphrase is needed and ${why}: use --passphrase-file or --passphrase-fd`);
}

function problemOf(passphrase: Bytes): string | null {
  if (passphrase.length === 0) return "is empty";
  if (passphrase.length > maxPassphraseBytes) return `is longer than ${maxPassphraseBytes} bytes`;
  return isUtf8(passphrase) ? null : "is not valid UTF-8";
}

async function fromFile(file: string): Promise<Bytes> {
  let handle: FileHandle | null = null;
  try {
    handle = await open(file);
    return await readLine(handle.fd);
  } catch (error) {
    throw unreadable("the passphrase file", error); // its name may be a passphrase that was mistyped there
  } finally {
    await handle?.close();
  }
}

async function fromDescriptor(descriptor: number, name: string): Promise<Bytes> {
  try {
    return await readLine(descriptor);
  } catch (error) {
    throw unreadable(name, error);
  }
}

/** All there is to read, but no more than shows that it is too long; without one newline at the end. */
async function readLine(descriptor: number): Promise<Bytes> {
  const buffer: Bytes = new Uint8Array(new ArrayBuffer(maxPassphraseBytes + 3));
  try {
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await readSome(descriptor, buffer, length, buffer.length - length, null);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.slice(0, withoutNewline(buffer, length));
  } finally {
    buffer.fill(0);
  }
}

const readSome = promisify(read);

function withoutNewline(bytes: Bytes, length: number): number {
  if (bytes[length - 1] !== 0x0a) return length;
  return bytes[length - 2] === 0x0d ? length - 2 : length - 1;
}

function unreadable(what: string, error: unknown): CommandFailure {
  return new CommandFailure("usage", `${what} cannot be read${reasonOf(systemCode(error))}`);
}
