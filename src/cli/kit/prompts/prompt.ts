/**
 * Questions on the terminal: they go to /dev/tty whatever standard input is, echo nothing unless told to, always restore
 * the terminal's mode, and leave nothing of a paste for the shell. Lines that were typed before a hidden question answer the
 * questions in their order; see bin/strongroom.cjs for their echo. What is left of them at the command's end is discarded.
 */
import { closeSync, constants, readFileSync, readSync, writeSync } from "node:fs";
import type { ConnectOpts, SocketConstructorOpts } from "node:net";
import { ReadStream } from "node:tty";
import type { Command } from "commander";
import type { Bytes } from "../../../../workers/protocol.js";
import { CommandFailure } from "../errors.js";
import type { Io, OutputStream } from "../io.js";
import { printableLines, wrapped } from "../output.js";
import { HiddenLine, type LineState, pasteMode } from "./hidden-line.js";

type HiddenQuestion = {
  readonly text: string;
  /** Most bytes of the input. */
  readonly limit: number;
  /** Enter is a newline of the input, and Ctrl-D ends it. */
  readonly endsAtControlD?: boolean;
  /** Message when more input came after the end, as from a paste of several lines. */
  readonly trailingInput: string;
  /** Discards input typed before the question was shown, which is no reply to it, as after a wrong one. */
  readonly discardsEarly?: boolean | undefined;
  /** Several lines that were typed early are one reply, as of a paste: they are refused. */
  readonly isAlone?: boolean;
  /** Message after Ctrl-C. */
  readonly cancelled?: string | undefined;
};

/** Milliseconds without input after which a line is taken to be all; and a paste, which may come in bursts. */
const quietMs = { line: 50, paste: 250 } as const;

const endings = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/**
 * Returns what was typed or pasted, which the caller wipes, or null without a terminal.
 * @throws CommandFailure aborted; usage, when it is longer than the limit, or when more came after its end
 */
export function askHidden(io: Io, question: HiddenQuestion): Promise<Bytes | null> {
  return ask(io, question, () => {});
}

/** The same, and echoes what is typed. Input from before the question is discarded: it may be a passphrase, and would be shown. */
function askShown(io: Io, question: HiddenQuestion): Promise<Bytes | null> {
  return ask(io, { ...question, discardsEarly: true }, echo);
}

/** Shows what has changed since the line was `before` bytes long. */
type Echo = (terminal: number, before: number, line: HiddenLine) => void;

async function ask(io: Io, asked: HiddenQuestion, echo: Echo): Promise<Bytes | null> {
  const terminal = io.openTerminal();
  if (terminal === null) return null;
  discardAtEnd(io);
  const question = { ...asked, text: onTerminal(io, asked.text) };
  const line = new HiddenLine(question.limit, question.endsAtControlD === true);
  try {
    const early = question.discardsEarly ? "more" : takeEarly(io, terminal, question, line);
    if (early !== "more") closeSync(terminal);
    const state = early === "more" ? await readLine(io, terminal, question, line, echo) : early;
    if (state !== "entered") throw new CommandFailure("aborted", question.cancelled ?? "cancelled: nothing was done");
    if (line.hasTrailingInput) throw new CommandFailure("usage", question.trailingInput);
    if (line.overflowed) throw new CommandFailure("usage", tooLong(question.limit));
    return line.line();
  } finally {
    line.wipe();
  }
}

/** Longest line that a terminal keeps until it is read, in bytes: it drops what comes after. */
const longestEarly = 4095;

/**
 * Takes a line that was typed before the question, as the terminal gives it while it is not in raw mode: one at a time, so that
 * the next question gets the next. A line without its end is continued. @throws CommandFailure usage
 */
function takeEarly(io: Io, terminal: number, question: HiddenQuestion, line: HiddenLine): LineState {
  const keys: Bytes = new Uint8Array(new ArrayBuffer(65_536));
  let state: LineState = "more";
  for (let length = -1; state === "more" && length !== 0; ) {
    length = readWaiting(io, keys);
    const isCut = length >= longestEarly;
    state = isCut ? "aborted" : line.take(keys.subarray(0, length));
    if (state === "entered" && question.isAlone && readWaiting(io, keys) > 0) line.take(keys.subarray(0, 1));
    keys.fill(0);
    if (isCut) throw new CommandFailure("usage", "a line typed before the question is too long: wait for the question");
  }
  if (state !== "more") show(terminal, `${question.text}\n`);
  return state;
}

const discarding = new WeakSet<Io>();

/** Discards at the end of the command what was typed and not read: it may be a passphrase, and would go to the shell. */
export function discardAtEnd(io: Io): void {
  if (discarding.has(io)) return;
  discarding.add(io);
  io.events.once("exit", () => {
    const terminal = isInForeground() ? io.openTerminal() : null;
    if (terminal === null) return;
    const input = new ReadStream(terminal);
    input.setRawMode(true); // for a line without its end
    discardInput(io);
    input.setRawMode(false);
  });
}

/** A process in the background is stopped when it changes the terminal. */
function isInForeground(): boolean {
  try {
    const [, , group, , , foreground] = (readFileSync("/proc/self/stat", "latin1").split(") ")[1] ?? "").split(" ");
    return group === foreground;
  } catch {
    return false;
  }
}

/** Returns a question as it is shown: escaped, its lines broken at spaces, and the space kept at which the reply begins. */
function onTerminal(io: Io, question: string): string {
  const [, text = "", end = ""] = /^(.*?)( *)$/s.exec(printableLines(question)) ?? [];
  return `${wrapped(text, terminalStream(io) ?? {})}${end}`;
}

/** Standard error or output, if one is a terminal: they know its size. */
function terminalStream(io: Io): OutputStream | undefined {
  return [io.stderr, io.stdout].find(({ isTTY }) => isTTY);
}

/** Columns of the terminal that questions are asked on. */
export function terminalColumns(io: Io): number {
  return terminalStream(io)?.columns || 80;
}

function tooLong(limit: number): string {
  return `the input is longer than ${limit.toLocaleString("en-US")} bytes, so nothing was done: shorten it`;
}

/** Resolves once nothing more comes and the terminal is restored. */
function readLine(
  io: Io,
  terminal: number,
  { text, discardsEarly }: HiddenQuestion,
  line: HiddenLine,
  echo: Echo,
): Promise<LineState> {
  return new Promise((resolve) => {
    const keys: Bytes = new Uint8Array(new ArrayBuffer(65_536));
    let quiet: NodeJS.Timeout | undefined;
    const take = (length: number): boolean => {
      const before = line.length;
      const state = line.take(keys.subarray(0, length));
      echo(terminal, before, line);
      keys.fill(0, 0, length);
      if (line.takeStop()) stop();
      if (state === "more") return true;
      if (quiet === undefined) show(terminal, "\n");
      clearTimeout(quiet);
      quiet = setTimeout(settle, line.hasTrailingInput ? quietMs.paste : quietMs.line, state);
      return true;
    };
    const settle = (state: LineState) => {
      const length = readWaiting(io, keys); // on a busy machine, the timer may be called before the input
      if (length > 0) take(length);
      else finish(state);
    };
    const input = openInput(terminal, keys, take);
    let restore = rawMode(io, terminal, input); // before the question, so that early keys are not echoed either
    const finish = (state: LineState) => {
      clearTimeout(quiet);
      restore();
      if (quiet === undefined) show(terminal, "\n");
      input.destroy();
      input.once("close", () => resolve(state));
    };
    const stop = () => {
      restore();
      suspend(io, () => {
        restore = rawMode(io, terminal, input);
        show(terminal, text); // what was typed before is kept
      });
    };
    const hangUp = () => {
      finish("aborted");
      io.kill(io.pid, "SIGHUP"); // it may have been lost with our handler; an exit without it would crash Node
    };
    input.once("end", hangUp);
    input.once("error", hangUp);
    if (discardsEarly) discardInput(io);
    show(terminal, text);
    input.resume();
  });
}

/** Stops the process as Ctrl-Z does, which a terminal in raw mode leaves to us. */
function suspend(io: Io, resume: () => void): void {
  io.events.once("SIGCONT", resume);
  io.kill(0, "SIGTSTP"); // the whole job, as the terminal does: a shell may be waiting for this process
}

/** Other bytes than ASCII are one character each. */
function echo(terminal: number, before: number, line: HiddenLine): void {
  const added = Buffer.from(line.line().subarray(before)).toString("latin1");
  show(terminal, `${"\b \b".repeat(Math.max(0, before - line.length))}${added.replace(/[^ -~]/g, "?")}`);
}

/** DANGER: Node must read into memory of ours; it would free its own with the keys in it. */
function openInput(terminal: number, buffer: Bytes, callback: (length: number) => boolean): ReadStream {
  const options: SocketConstructorOpts & ConnectOpts = { onread: { buffer, callback } };
  try {
    return new ReadStream(terminal, options);
  } catch (error) {
    closeSync(terminal);
    throw error;
  }
}

/** Turns echo and signal keys off, and bracketed paste on, until the returned function is called or the process ends. */
function rawMode(io: Io, terminal: number, input: ReadStream): () => void {
  const restore = () => {
    io.events.off("exit", restore);
    for (const signal of endings) io.events.off(signal, end);
    if (showsEscapes(io)) show(terminal, pasteMode.off);
    discardInput(io);
    input.on("error", () => {}); // the terminal may be gone
    input.setRawMode(false);
  };
  const end = (signal: NodeJS.Signals) => {
    restore();
    io.kill(io.pid, signal); // no handler is left: it ends the process
  };
  io.events.on("exit", restore);
  for (const signal of endings) io.events.on(signal, end);
  input.setRawMode(true);
  if (showsEscapes(io)) show(terminal, pasteMode.on);
  return restore;
}

function showsEscapes(io: Io): boolean {
  return !["", "dumb"].includes(io.env["TERM"] ?? "");
}

/** A signal may come in the middle of a paste. */
function discardInput(io: Io): void {
  const buffer = new Uint8Array(new ArrayBuffer(65_536));
  while (readWaiting(io, buffer) > 0) buffer.fill(0);
}

/** Reads what the terminal has sent so far, without waiting for more; returns the number of bytes. */
function readWaiting(io: Io, buffer: Bytes): number {
  const input = io.openTerminal(constants.O_RDONLY | constants.O_NONBLOCK);
  if (input === null) return 0;
  try {
    return readSync(input, buffer);
  } catch {
    return 0; // nothing is left, or the terminal is gone
  } finally {
    closeSync(input);
  }
}

function show(terminal: number, text: string): void {
  try {
    writeSync(terminal, text);
  } catch {
    // the terminal is gone
  }
}

/** Prints a secret in a line of its own on the terminal alone, not in a file or pipe that has the output. */
export function printOnTerminal(io: Io, secret: Uint8Array): void {
  const terminal = io.openTerminal();
  if (terminal === null) return;
  try {
    writeSync(terminal, "  ");
    writeSync(terminal, secret);
    writeSync(terminal, "\n");
  } finally {
    closeSync(terminal);
  }
}

const maxBytes = 64;
const severalLines = "several lines were typed as one reply: nothing was done";

/**
 * Returns whether the user says yes (just Enter is no), or null without a terminal.
 * @throws CommandFailure aborted, on Ctrl-C and when the input ends; usage, for a paste of several lines, of which nothing is left
 */
export async function confirm(io: Io, question: string): Promise<boolean | null> {
  const typed = await askShown(io, { text: `${question} [y/N] `, limit: maxBytes, trailingInput: severalLines });
  return typed === null ? null : /^\s*y(?:es)?\s*$/i.test(Buffer.from(typed).toString("latin1"));
}

/**
 * Returns the letter that the user chooses, asking again after any other reply; null without a terminal. Keys that were typed
 * before the question was shown do not count.
 * @throws CommandFailure as `confirm`
 */
export async function choose(io: Io, question: string, letters: readonly string[]): Promise<string | null> {
  for (;;) {
    const typed = await askShown(io, { text: question, limit: maxBytes, trailingInput: severalLines });
    if (typed === null) return null;
    const letter = Buffer.from(typed).toString("latin1").trim().toLowerCase()[0] ?? "";
    if (letters.includes(letter)) return letter;
  }
}

/** The values of the flags that decide whether a question is asked. */
type ConfirmFlags = { readonly yes?: true; readonly nonInteractive?: true };

/** Adds the flag that is a yes to `mustConfirm`. */
export function withYes(command: Command): Command {
  return command.option("-y, --yes", "do not ask");
}

/** Returns only after a yes. @throws CommandFailure aborted; usage, without a terminal */
export async function mustConfirm(io: Io, question: string, { yes, nonInteractive }: ConfirmFlags): Promise<void> {
  if (yes) return;
  const reply = nonInteractive ? null : await confirm(io, question);
  if (reply === true) return;
  if (reply === false) throw new CommandFailure("aborted", "nothing was done");
  const why = nonInteractive ? "--non-interactive forbids a prompt" : "there is no terminal to ask on";
  throw new CommandFailure("usage", `this needs a confirmation, but ${why}: use --yes to skip it`);
}
