/**
 * Owns the terminal while something secret is typed: asks on /dev/tty, whatever standard input is, shows nothing of the
 * answer, and puts the terminal's mode back on every way out.
 */
import { closeSync, constants, openSync, writeSync } from "node:fs";
import type { ConnectOpts, SocketConstructorOpts } from "node:net";
import { ReadStream } from "node:tty";
import type { Bytes } from "../../../workers/protocol.js";
import { CommandFailure } from "../session/exit-codes.js";
import { HiddenLine, type LineState } from "./hidden-line.js";

const endings = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/**
 * The line that was typed, which the caller wipes; null when there is no terminal.
 * @throws CommandFailure aborted, or usage when the line is longer than `limit` bytes.
 */
export async function askHidden(question: string, limit: number): Promise<Bytes | null> {
  const terminal = openTerminal();
  if (terminal === null) return null;
  const line = new HiddenLine(limit);
  try {
    const state = await readLine(terminal, question, line);
    if (state !== "entered") throw new CommandFailure("aborted", "broken off: nothing was done");
    if (line.overflowed) throw new CommandFailure("usage", `what was typed is longer than ${limit} bytes`);
    return line.line();
  } finally {
    line.wipe();
  }
}

function openTerminal(): number | null {
  try {
    return openSync("/dev/tty", constants.O_RDWR | constants.O_NOCTTY);
  } catch {
    return null;
  }
}

/** Resolves once the terminal is as it was. */
function readLine(terminal: number, question: string, line: HiddenLine): Promise<LineState> {
  return new Promise((resolve) => {
    const keys: Bytes = new Uint8Array(new ArrayBuffer(4096));
    const take = (length: number): boolean => {
      const state = line.take(keys.subarray(0, length));
      keys.fill(0, 0, length);
      if (state !== "more") finish(state);
      return state === "more";
    };
    const input = openInput(terminal, keys, take);
    const restore = rawMode(input); // before the question: what is typed at once is not shown either
    const finish = (state: LineState) => {
      restore();
      tell(terminal, "\n");
      input.destroy();
      input.once("close", () => resolve(state));
    };
    input.once("end", () => finish("aborted"));
    input.once("error", () => finish("aborted"));
    tell(terminal, question);
    input.resume();
  });
}

/** Node reads into memory of ours: its own would be freed with the keys in it. */
function openInput(terminal: number, buffer: Bytes, callback: (length: number) => boolean): ReadStream {
  const options: SocketConstructorOpts & ConnectOpts = { onread: { buffer, callback } };
  try {
    return new ReadStream(terminal, options);
  } catch (error) {
    closeSync(terminal);
    throw error;
  }
}

/** Nothing is echoed and no key makes a signal, until the answer is called or the process ends. */
function rawMode(input: ReadStream): () => void {
  const restore = () => {
    process.off("exit", restore);
    for (const signal of endings) process.off(signal, end);
    input.setRawMode(false);
  };
  const end = (signal: NodeJS.Signals) => {
    restore();
    process.kill(process.pid, signal); // nobody handles it now: it ends the process as it should
  };
  process.on("exit", restore);
  for (const signal of endings) process.on(signal, end);
  input.setRawMode(true);
  return restore;
}

function tell(terminal: number, text: string): void {
  try {
    writeSync(terminal, text);
  } catch {
    // the terminal has gone
  }
}
