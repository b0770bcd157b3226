/**
 * Passphrases from the terminal, a file, or an open file descriptor; never an argument or the environment, which others
 * can read. A new one is typed twice, with an estimate of its strength (zxcvbn).
 */
import { isUtf8 } from "node:buffer";
import { type Command, Option } from "commander";
import { keyBytes, readKeyText } from "../../../../workers/crypto/key-text.js";
import type { Bytes } from "../../../../workers/protocol.js";
import { integer } from "../../../config/readers.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";
import { say } from "../output.js";
import { randomWords } from "../random-words.js";
import { readBytes } from "./input.js";
import { askHidden, confirm, printOnTerminal } from "./prompt.js";

const maxPassphraseBytes = 1024;

/** How often a prompt is repeated, in all. */
export const tries = 3;

/** The values of the flags of `withPassphrase`. */
export type PassphraseSource = {
  readonly passphraseFile?: string;
  readonly passphraseFd?: number;
  readonly nonInteractive?: true;
};

/** `discardsEarly`: what was typed before is no reply. `cancelled`: the message after Ctrl-C. */
type Question = { readonly text: string; readonly discardsEarly?: boolean; readonly cancelled?: string };

/** The flag of a command that opens the vault only when it is asked to. */
export type OpenFlags = PassphraseSource & { readonly open?: true };

/** Whether the passphrase is to be used; a flag that says where it is also means so. */
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
export async function readPassphrase(io: Io, source: PassphraseSource, question: Question | string): Promise<Bytes> {
  return mustBeValid(await readSource(io, source, typeof question === "string" ? { text: question } : question));
}

/** Whether the passphrase is asked for on a terminal, where there is one. */
export function isTyped({ passphraseFile, passphraseFd, nonInteractive }: PassphraseSource): boolean {
  return passphraseFile === undefined && passphraseFd === undefined && !nonInteractive;
}

/**
 * Runs work with the passphrase, which is wiped after it. Asks again, up to three times in all, while the typed one is wrong:
 * work then throws a failure with that exit. @throws CommandFailure usage, aborted, wrongPassphrase
 */
export async function withPassphraseTries<T>(
  io: Io,
  source: PassphraseSource,
  question: string,
  work: (passphrase: Bytes) => Promise<T>,
): Promise<T> {
  let text = question;
  for (let left = tries - 1; ; left -= 1) {
    let problem = "";
    try {
      const passphrase = await readPassphrase(io, source, { text, discardsEarly: text !== question });
      problem = "wrong passphrase";
      return await work(passphrase).finally(() => passphrase.fill(0));
    } catch (error) {
      const isWrong = error instanceof CommandFailure && error.exit === "wrongPassphrase";
      if (!isWrong || !isTyped(source) || left === 0) throw error;
      text = `${problem || error.message}, ${triesLeft(left)}\n${question}`;
    }
  }
}

/** `1 try left`, `2 tries left`. */
export function triesLeft(left: number): string {
  return `${left} ${left === 1 ? "try" : "tries"} left`;
}

/** As `readPassphrase`; a message says `name`, since the file's own may be a mistyped passphrase. @throws CommandFailure usage */
export async function readPassphraseFile(file: string, name: string): Promise<Bytes> {
  return mustBeValid(await readLine(file, name));
}

/** Returns null without a terminal; the caller wipes the passphrase. @throws CommandFailure usage, aborted */
export async function askPassphrase(io: Io, question: Question): Promise<Bytes | null> {
  const typed = await askLine(io, question);
  return typed && mustBeValid(typed);
}

function mustBeValid(passphrase: Bytes): Bytes {
  const problem = passphraseProblem(passphrase);
  const mistyped = keyProblem(passphrase);
  if (problem === null && mistyped === null) return passphrase;
  passphrase.fill(0);
  if (problem !== null) throw new CommandFailure("usage", `the passphrase ${problem}`);
  throw new CommandFailure("wrongPassphrase", mistyped ?? "");
}

async function readSource(io: Io, source: PassphraseSource, question: Question): Promise<Bytes> {
  const { passphraseFile, passphraseFd, nonInteractive } = source;
  if (passphraseFile === "-") return readLine(io.stdinDescriptor, "standard input");
  if (passphraseFile !== undefined) return readLine(passphraseFile, "the passphrase file"); // its name may be a mistyped passphrase
  const descriptor = passphraseFd === 0 ? io.stdinDescriptor : passphraseFd;
  if (descriptor !== undefined) return readLine(descriptor, `file descriptor ${passphraseFd}`);
  const typed = nonInteractive ? null : await askLine(io, question);
  if (typed !== null) return typed;
  const why = nonInteractive ? "--non-interactive forbids a prompt" : "there is no terminal to ask on";
  throw new CommandFailure("usage", `a passphrase is needed, but ${why}: use --passphrase-file or --passphrase-fd`);
}

const severalLines = "the passphrase has several lines: type it as one line";

/** Returns null without a terminal. A newline in it could not be typed again, and is most likely a wrong paste. */
async function askLine(io: Io, question: Question): Promise<Bytes | null> {
  const typed = await askHidden(io, { ...question, limit: maxPassphraseBytes, trailingInput: severalLines });
  if (typed === null || !typed.includes(0x0a)) return typed;
  typed.fill(0);
  throw new CommandFailure("usage", severalLines);
}

function passphraseProblem(passphrase: Bytes): string | null {
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

const goodScore = 3;

/** `raw`: what cannot be typed in a passphrase from a file, such as a line break, is meant. */
type NewPassphraseSource = PassphraseSource & { readonly raw?: true; readonly quiet?: true };

/** Adds the flag for a new passphrase from a file. */
export function withRawPassphrase(command: Command): Command {
  return command.option(
    "--raw",
    "allow line breaks and control characters in a passphrase from a file; no prompt can take it then",
  );
}

/** Returns the passphrase, which the caller wipes. @throws CommandFailure usage, aborted */
export async function readNewPassphrase(io: Io, source: NewPassphraseSource): Promise<Bytes> {
  const given = source.passphraseFile !== undefined || source.passphraseFd !== undefined || source.nonInteractive;
  if (given) return readGiven(io, source);
  const loading = loadEstimate();
  loading.catch(() => {}); // a cancelled prompt does not wait for it
  for (let left = tries - 1; left > 0; left -= 1) {
    const typed = await typeTwice(io, source, loading);
    if (typeof typed !== "string") return typed;
    say(io, `${again[typed]}\n`);
  }
  const typed = await typeTwice(io, source, loading);
  if (typeof typed !== "string") return typed;
  throw typed === "weak"
    ? new CommandFailure("aborted", "no passphrase was chosen: nothing was done")
    : new CommandFailure("usage", `the passphrases differ, ${tries} times: nothing was done`);
}

const again = { weak: "type another one", different: "the passphrases differ: type both again" } as const;

/** Refuses a passphrase that cannot be typed, a likely mistake: no prompt could ever unlock the vault with it. */
async function readGiven(io: Io, source: NewPassphraseSource): Promise<Bytes> {
  const passphrase = await readPassphrase(io, source, "");
  const problem = source.raw ? null : untypable(passphrase);
  if (problem !== null) {
    passphrase.fill(0);
    const remedy = "write it as one line of text, or use --raw if that is meant";
    throw new CommandFailure("usage", `the new passphrase has ${problem}, which no prompt can take: ${remedy}`);
  }
  if (source.quiet) return passphrase;
  const { score, text, advice } = (await loadEstimate())(passphrase);
  if (score < goodScore) say(io, `warning: the passphrase is weak (${text}). ${advice}\n`);
  return passphrase;
}

const byteOrderMark = Buffer.of(0xef, 0xbb, 0xbf);

/** Returns what no prompt takes, or null. It is looked for in the bytes: a string could not be wiped. */
function untypable(passphrase: Bytes): string | null {
  if (passphrase.some((byte) => byte === 0x0a || byte === 0x0d)) return "a line break";
  if (byteOrderMark.every((byte, i) => passphrase[i] === byte)) return "a byte order mark at its start";
  return passphrase.some(isControl) ? "a control character" : null;
}

/** Whether a byte begins a control character of ASCII or C1 (in UTF-8, 0xc2 comes first); a tab can be typed. */
function isControl(byte: number, at: number, bytes: Bytes): boolean {
  if (byte < 0x20 || byte === 0x7f) return byte !== 0x09;
  return byte === 0xc2 && (bytes[at + 1] ?? 0xff) < 0xa0;
}

async function typeTwice(
  io: Io,
  source: PassphraseSource,
  loading: Promise<Estimate>,
): Promise<Bytes | "weak" | "different"> {
  const first = await readSource(io, source, {
    text: "Type a passphrase, or press Enter for a generated one.\nNew passphrase: ",
  });
  if (first.length === 0) return (await offerGenerated(io)) ?? "weak";
  let same = false;
  try {
    mustBeValid(first);
    if (!(await isWanted(io, await loading, first))) return "weak";
    same = await isRepeated(io, source, first);
    return same ? first : "different";
  } finally {
    if (!same) first.fill(0);
  }
}

/** Shows six random words, on the terminal alone, and returns them after a yes. */
async function offerGenerated(io: Io): Promise<Bytes | null> {
  const { bytes, bits } = await randomWords(6, " ");
  let isUsed = false;
  try {
    printOnTerminal(io, bytes);
    const text = `Six random words, about ${bits} bits, which are shown only now: write them down. Use it?`;
    isUsed = (await confirm(io, text)) === true;
    return isUsed ? bytes : null;
  } finally {
    if (!isUsed) bytes.fill(0);
  }
}

/** Shows how strong the passphrase is, and asks whether a weak one is wanted. */
async function isWanted(io: Io, estimate: Estimate, passphrase: Bytes): Promise<boolean> {
  const { score, text, advice } = estimate(passphrase);
  say(io, `strength: ${text}\n`);
  if (score >= goodScore) return true;
  say(io, `${advice === "" ? "" : `${advice}\n`}Without this passphrase the vault cannot be opened.\n`);
  return (await confirm(io, "Use it anyway?")) === true;
}

async function isRepeated(io: Io, source: PassphraseSource, first: Bytes): Promise<boolean> {
  const second = await readPassphrase(io, source, "Repeat passphrase: ");
  const same = Buffer.compare(first, second) === 0;
  second.fill(0);
  return same;
}

/** `score`: 0 to 4; from 3 on it is fit for a vault. */
type Strength = { readonly score: number; readonly text: string; readonly advice: string };

type Estimate = (passphrase: Uint8Array) => Strength;

const words = ["very weak", "weak", "fair", "strong", "very strong"] as const;

/** Loads the word lists, which is slow: start it before the passphrase is typed. */
async function loadEstimate(): Promise<Estimate> {
  const [{ ZxcvbnFactory }, common, english] = await Promise.all([
    import("@zxcvbn-ts/core"),
    import("@zxcvbn-ts/language-common"),
    import("@zxcvbn-ts/language-en"),
  ]);
  const estimator = new ZxcvbnFactory({
    dictionary: { ...common.dictionary, ...english.dictionary },
    graphs: common.adjacencyGraphs,
    translations: english.translations,
  });
  return (passphrase) => {
    if (!isUtf8(passphrase)) return { score: 0, text: words[0], advice: "" };
    // DANGER: the library takes a string, which cannot be wiped: the only place where a passphrase becomes one. Nothing
    // keeps it, and this process ends once the vault is made. The server's process never has it.
    const { score, guessesLog10, feedback } = estimator.check(Buffer.from(passphrase).toString("utf8"));
    const text = `${words[score]}, about 10^${Math.round(guessesLog10)} guesses`;
    return { score, text, advice: [feedback.warning, ...feedback.suggestions].filter(Boolean).join(" ") };
  };
}

export function keyProblem(text: Uint8Array): string | null {
  const key = new Uint8Array(new ArrayBuffer(keyBytes));
  const wrong = readKeyText(text, key) ?? [];
  key.fill(0);
  if (wrong.length === 0) return null;
  const groups = wrong.length === 1 ? `group ${wrong[0]}` : `groups ${wrong.join(", ")}`;
  return `the key is mistyped: compare ${groups} with your copy (SRK is before group 1)`;
}
