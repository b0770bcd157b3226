/** Value sources: a hidden prompt, standard input, or a file; never an argument, which others can read. */
import { isUtf8 } from "node:buffer";
import { isatty } from "node:tty";
import { type Command, Option } from "commander";
import type { Bytes } from "../../../../workers/protocol.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { say } from "../output.js";
import { readBytes } from "./input.js";
import { askHidden } from "./prompt.js";

/** The values of the flags of `withValue`. */
export type ValueSource = {
  readonly fromFile?: string;
  readonly multiline?: true;
  readonly raw?: true;
  readonly binary?: true;
  readonly allowEmpty?: true;
  readonly nonInteractive?: true;
};

/** A server's limit, unless it is set higher. */
const maxTypedBytes = 2 ** 20;
/** The highest limit that a server can have. */
const maxValueBytes = 64 * 2 ** 20;

/** Adds the flags that say where the value is. */
export function withValue(command: Command): Command {
  const file = new Option("--from-file <file>", "read the value from a file; - is standard input");
  return command
    .addOption(file.conflicts("multiline"))
    .option("-m, --multiline", "type several lines at the prompt; Ctrl-D ends them")
    .option("--raw", "keep the newline at the end of a single line")
    .option("--binary", "store the bytes as they are; the default for a value that is not UTF-8 text")
    .option("--allow-empty", "allow an empty value")
    .option("--non-interactive", "never prompt: fail when a value would have to be typed");
}

/** `bytes`: for the caller to wipe. */
export type Value = { readonly bytes: Bytes; readonly isBinary: boolean };

/** Returns the value. @throws CommandFailure usage, aborted */
export async function readValue(io: Io, source: ValueSource, question: string): Promise<Value> {
  const bytes = await readSource(io, source, question);
  if (bytes.length > 0 || source.allowEmpty) return { bytes, isBinary: source.binary === true || !isUtf8(bytes) };
  throw new CommandFailure("usage", "the value is empty: nothing was stored; --allow-empty stores it anyway");
}

async function readSource(io: Io, source: ValueSource, question: string): Promise<Bytes> {
  const { fromFile, nonInteractive } = source;
  const raw = source.raw ?? source.binary;
  if (fromFile !== undefined && fromFile !== "-") return readInput(io, fromFile, "the file of --from-file", raw); // its name may be a mistyped value
  if (fromFile === "-" || !isatty(io.stdinDescriptor)) return readInput(io, io.stdinDescriptor, "standard input", raw);
  const typed = nonInteractive ? null : await askValue(io, source, question);
  if (typed !== null) return typed;
  throw new CommandFailure("usage", "no value given: pipe it in, or use --from-file");
}

const afterEnter =
  "more input came after Enter, such as a paste of several lines: nothing was stored; use --multiline or --from-file";
const afterControlD = "more input came after Ctrl-D: nothing was stored; use --from-file";

/** Returns null without a terminal. */
async function askValue(io: Io, { multiline, raw }: ValueSource, question: string): Promise<Bytes | null> {
  const typed = await askHidden(io, {
    text: multiline ? `${question} (Ctrl-D ends it): ` : `${question}: `,
    limit: maxTypedBytes,
    endsAtControlD: multiline === true,
    isAlone: multiline !== true,
    trailingInput: multiline ? afterControlD : afterEnter,
  });
  return typed === null || raw ? typed : withoutFinalNewline(typed);
}

async function readInput(io: Io, source: string | number, name: string, raw: true | undefined): Promise<Bytes> {
  const bytes = await readBytes(source, name, maxValueBytes);
  if (bytes.length <= maxValueBytes) {
    return raw || !isUtf8(bytes) ? bytes : withoutFinalNewline(withoutMark(io, bytes, name));
  }
  bytes.fill(0);
  throw new CommandFailure("usage", `${name} has more than ${maxValueBytes} bytes, the most that any server accepts`);
}

const byteOrderMark = Buffer.of(0xef, 0xbb, 0xbf);

/** Some editors and PowerShell put one before a text, where it is no part of a password. Wipes the given bytes. */
function withoutMark(io: Io, value: Bytes, name: string): Bytes {
  if (!byteOrderMark.every((byte, i) => value[i] === byte)) return value;
  say(io, `note: ${name} begins with a byte order mark, which is left out; --raw keeps it\n`);
  const rest = value.slice(byteOrderMark.length);
  value.fill(0);
  return rest;
}

/** Returns why a value cannot be stored as text; null when it can. */
export function problemOfBytes(value: Uint8Array): string | null {
  return isUtf8(value) ? null : "is not UTF-8 text: store it with  strongroom put --from-file";
}

/** Drops the newline of a single line, which most tools add; several lines keep theirs. Wipes the given bytes. */
export function withoutFinalNewline(value: Bytes): Bytes {
  const newline = value.indexOf(0x0a);
  if (newline === -1 || newline !== value.length - 1) return value;
  const shorter = value.slice(0, value[newline - 1] === 0x0d ? newline - 1 : newline);
  value.fill(0);
  return shorter;
}
