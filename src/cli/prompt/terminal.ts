/** Hidden prompt: asks on /dev/tty whatever standard input is, echoes nothing, always restores the terminal's mode. */
import { closeSync, constants, openSync, writeSync } from "node:fs";
import type { ConnectOpts, SocketConstructorOpts } from "node:net";
import { ReadStream } from "node:tty";
import type { Bytes } from "../../../workers/protocol.js";
import { CommandFailure } from "../session/exit-codes.js";
import { HiddenLine, type LineState } from "./hidden-line.js";

const endings = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/**
 * Returns the line that was typed, which the caller wipes, or null without a terminal.
 * @throws CommandFailure aborted; usage, when the line is longer than `limit` bytes
 */
export async function askHidden(question: string, limit: number): Promise<Bytes | null> {
  const terminal = openTerminal();
  if (terminal === null) return null;
  const line = new HiddenLine(limit);
  try {
    const state = await readLine(terminal, question, line);
    if (state !== "entered") throw new CommandFailure("aborted", "cancelled: nothing was done");
    if (line.overflowed) throw new CommandFailure("usage", `the input is longer than ${limit} bytes`);
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

/** Resolves once the terminal is restored. */
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
    const restore = rawMode(input); // before the question, so that early keys are not echoed either
    const finish = (state: LineState) => {
      restore();
      show(terminal, "\n");
      input.destroy();
      input.once("close", () => resolve(state));
    };
    input.once("end", () => finish("aborted"));
    input.once("error", () => finish("aborted"));
    show(terminal, question);
    input.resume();
  });
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

/** Turns echo and signal keys off until the returned function is called or the process ends. */
function rawMode(input: ReadStream): () => void {
  const restore = () => {
    process.off("exit", restore);
    for (const signal of endings) process.off(signal, end);
    input.setRawMode(false);
  };
  const end = (signal: NodeJS.Signals) => {
    restore();
    process.kill(process.pid, signal); // no handler is left: it ends the process
  };
  process.on("exit", restore);
  for (const signal of endings) process.on(signal, end);
  input.setRawMode(true);
  return restore;
}

function show(terminal: number, text: string): void {
  try {
    writeSync(terminal, text);
  } catch {
    // the terminal is gone
  }
}
