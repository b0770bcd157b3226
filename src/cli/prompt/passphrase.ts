/**
 * Passphrase sources: the terminal, a file, or an open file descriptor; never an argument or the environment, which others
 * can read.
 */
import { isUtf8 } from "node:buffer";
import { type Command, Option } from "commander";
import type { Bytes } from "../../../workers/protocol.js";
import { integer } from "../../config/readers.js";
import { keyProblem } from "../keys/key-problem.js";
import { CommandFailure } from "../session/exit-codes.js";
import { readBytes } from "./read-bytes.js";
import { askHidden } from "./terminal.js";

const maxPassphraseBytes = 1024;

/** The values of the flags of `withPassphrase`. */
export type PassphraseSource = {
  readonly passphraseFile?: string;
  readonly passphraseFd?: number;
  readonly nonInteractive?: true;
};

/** The flag of a command that opens the vault only when it is asked to. */
export type OpenFlags = PassphraseSource & { readonly open?: true };

/** Whether the passphrase is to be used; a flag that says where it is means so, too. */
export function opensVault({ open, passphraseFile, passphraseFd }: OpenFlags): boolean {
  return open === true || passphraseFile !== undefined || passphraseFd !== undefined;
}

/** Adds the flags that say where the passphrase is. */
export function withPassphrase(command: Command): Command {
  const file = new Option("--passphrase-file <file>", "read the passphrase from a file; - is standard input");
  const descriptor = new Option("--passphrase-fd <number>", "read the passphrase from an open file descriptor");
  return command
    .addOption(file.conflicts("passphraseFd"))
    .addOption(descriptor.argParser(integer(0, 9_999_999)))
    .option("--non-interactive", "never prompt: fail when a passphrase would have to be typed");
}

/** Returns the passphrase, without one newline at its end; the caller wipes it. @throws CommandFailure usage, aborted */
export async function readPassphrase(source: PassphraseSource, question: string): Promise<Bytes> {
  return mustBeValid(await readSource(source, question));
}

/** As `readPassphrase`; a message says `name`, since the file's own may be a mistyped passphrase. @throws CommandFailure usage */
export async function readPassphraseFile(file: string, name: string): Promise<Bytes> {
  return mustBeValid(await readLine(file, name));
}

/** Returns null without a terminal; the caller wipes the passphrase. @throws CommandFailure usage, aborted */
export async function askPassphrase(question: string, cancelled?: string): Promise<Bytes | null> {
  const typed = await askLine(question, cancelled);
  return typed && mustBeValid(typed);
}

function mustBeValid(passphrase: Bytes): Bytes {
  const problem = problemOf(passphrase);
  const mistyped = keyProblem(passphrase);
  if (problem === null && mistyped === null) return passphrase;
  passphrase.fill(0);
  if (problem !== null) throw new CommandFailure("usage", `the passphrase ${problem}`);
  throw new CommandFailure("wrongPassphrase", mistyped ?? "");
}

async function readSource(source: PassphraseSource, question: string): Promise<Bytes> {
  const { passphraseFile, passphraseFd, nonInteractive } = source;
  if (passphraseFile === "-") return readLine(0, "standard input");
  if (passphraseFile !== undefined) return readLine(passphraseFile, "the passphrase file"); // its name may be a mistyped passphrase
  if (passphraseFd !== undefined) return readLine(passphraseFd, `file descriptor ${passphraseFd}`);
  const typed = nonInteractive ? null : await askLine(question);
  if (typed !== null) return typed;
  const why = nonInteractive ? "--non-interactive forbids a prompt" : "there is no terminal to ask on";
  throw new CommandFailure("usage", `a passphrase is needed, but ${why}: use --passphrase-file or --passphrase-fd`);
}

const severalLines = "the passphrase has several lines: type it as one line";

/** Returns null without a terminal. A newline in it could not be typed again, and is most likely a wrong paste. */
async function askLine(text: string, cancelled?: string): Promise<Bytes | null> {
  const typed = await askHidden({ text, limit: maxPassphraseBytes, spilled: severalLines, cancelled });
  if (typed === null || !typed.includes(0x0a)) return typed;
  typed.fill(0);
  throw new CommandFailure("usage", severalLines);
}

function problemOf(passphrase: Bytes): string | null {
  if (passphrase.length === 0) return "is empty";
  if (passphrase.length > maxPassphraseBytes) return `is longer than ${maxPassphraseBytes} bytes`;
  return isUtf8(passphrase) ? null : "is not valid UTF-8";
}

async function readLine(source: string | number, name: string): Promise<Bytes> {
  const bytes = await readBytes(source, name, maxPassphraseBytes + "\r\n".length);
  try {
    return bytes.slice(0, withoutNewline(bytes));
  } finally {
    bytes.fill(0);
  }
}

function withoutNewline(bytes: Bytes): number {
  if (bytes.at(-1) !== 0x0a) return bytes.length;
  return bytes.at(-2) === 0x0d ? bytes.length - 2 : bytes.length - 1;
}
