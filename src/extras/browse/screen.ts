/**
 * The terminal as a screen: the alternate one, so that nothing reaches the scrollback, in raw mode. However it is left, by
 * the program, a signal or a stop, its lines are erased first and the terminal's mode is restored; after SIGKILL a small
 * shell does both.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, writeSync } from "node:fs";
import { text } from "node:stream/consumers";
import { ReadStream } from "node:tty";
import { CommandFailure, systemCode } from "../../cli/kit/errors.js";
import type { Io } from "../../cli/kit/io.js";
import { type Key, KeyDecoder } from "./keys.js";

/** Text without control characters, no wider than the screen; or bytes of that kind, which are the caller's to wipe. */
export type Line = string | Uint8Array;

export type Size = { readonly rows: number; readonly columns: number };

type Handlers = {
  readonly onKey: (key: Key) => void;
  /** The size has changed, or the screen was left and entered again: draw it. */
  readonly onRedraw: () => void;
  /** The screen is about to be left for a stop: hide what must not come back. */
  readonly onStop: () => void;
};

const alternate = { on: "\u001b[?1049h", off: "\u001b[?1049l" };
const wrap = { on: "\u001b[?7h", off: "\u001b[?7l" };
const cursor = { on: "\u001b[?25h", off: "\u001b[?25l" };
const paste = { on: "\u001b[?2004h", off: "\u001b[?2004l" };
const enterSequence = `${alternate.on}${wrap.off}${cursor.off}${paste.on}`;
const leaveSequence = `\u001b[H${paste.off}${cursor.on}${wrap.on}${alternate.off}`;

/** Milliseconds after which an escape is the key. */
const escapeMs = 50;
/** A stopped process runs no timers: this one runs once it continues, or soon where nothing can stop it. */
const stopMs = 50;

const endings = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** @throws CommandFailure usage, where no screen can be shown */
export function mustHaveScreen(io: Io, instead: string): void {
  const { TERM = "" } = io.env;
  if (io.stdin.isTTY !== true || io.stdout.isTTY !== true) {
    throw new CommandFailure("usage", `this needs a terminal: ${instead}`);
  }
  if (!["", "dumb"].includes(TERM)) return;
  const problem = TERM === "" ? "TERM is not set" : `TERM is ${TERM}`;
  throw new CommandFailure("usage", `this needs a terminal that can move the cursor, and ${problem}: ${instead}`);
}

export class Screen {
  readonly #io: Io;
  readonly #mode: string;
  readonly #handlers: Handlers;
  readonly #terminal: number;
  #entered: Entered | null = null;
  /** How many lines have been drawn at most since the screen was entered: what is erased. */
  #drawn = 0;

  /** `mode`: the terminal's, to which the guard returns it. */
  constructor(io: Io, mode: string, handlers: Handlers) {
    this.#io = io;
    this.#mode = mode;
    this.#handlers = handlers;
    this.#terminal = openTerminal(io, constants.O_WRONLY);
  }

  /** 24 lines of 80 columns where the terminal does not say. */
  get size(): Size {
    const { rows, columns } = this.#io.stdout;
    return { rows: rows || 24, columns: columns || 80 };
  }

  enter(): void {
    if (this.#entered !== null) return;
    const guard = startGuard(this.#terminal, this.#mode);
    const input = new ReadStream(openTerminal(this.#io, constants.O_RDONLY));
    const decoder = new KeyDecoder();
    let stopWaiting = () => {};
    const pass = (keys: readonly Key[]) => {
      for (const key of keys) this.#handlers.onKey(key);
    };
    input.on("data", (bytes: Buffer) => {
      stopWaiting();
      pass(decoder.take(bytes));
      if (decoder.isWaiting) stopWaiting = this.#io.clock.after(escapeMs, () => pass(decoder.flush()));
    });
    const hangUp = () => this.#end("SIGHUP");
    input.once("end", hangUp).once("error", hangUp);
    input.setRawMode(true);
    this.#entered = { input, guard, release: this.#watch() };
    this.#write(Buffer.from(enterSequence));
    this.#drawn = 0;
    this.draw([]);
  }

  /** Erases the screen and restores the terminal. */
  leave(): void {
    const entered = this.#entered;
    if (entered === null) return;
    this.#entered = null;
    entered.release();
    this.#write(Buffer.from(`${erasing(Math.max(this.#drawn, this.size.rows))}${leaveSequence}`));
    entered.input.removeAllListeners().on("error", () => {}); // the terminal may be gone
    entered.input.setRawMode(false);
    entered.input.destroy();
    entered.guard.stdin?.end("left\n");
  }

  close(): void {
    this.leave();
    closeSync(this.#terminal);
  }

  /** Runs work that uses the terminal itself. */
  async leaveFor<T>(work: () => Promise<T>): Promise<T> {
    this.leave();
    try {
      return await work();
    } finally {
      this.enter();
      this.#handlers.onRedraw();
    }
  }

  /** Stops the process, as Ctrl-Z does, which a terminal in raw mode leaves to us. */
  stop(): void {
    if (this.#entered === null) return;
    this.#handlers.onStop();
    this.leave();
    this.#io.kill(0, "SIGTSTP"); // the whole job, as the terminal does
    void this.#io.sleep(stopMs).then(() => {
      this.enter();
      this.#handlers.onRedraw();
    });
  }

  /** Draws the lines from the top and erases the rest. `at`: where the cursor is shown. */
  draw(lines: readonly Line[], at: { readonly row: number; readonly column: number } | null = null): void {
    if (this.#entered === null) return;
    const { rows } = this.size;
    this.#drawn = Math.max(this.#drawn, rows);
    const parts: Line[] = [cursor.off];
    for (let row = 0; row < rows; row++) parts.push(`\u001b[${row + 1};1H`, lines[row] ?? "", "\u001b[K");
    if (at !== null) parts.push(`\u001b[${at.row + 1};${at.column + 1}H${cursor.on}`);
    const bytes = joined(parts);
    this.#write(bytes);
    bytes.fill(0);
  }

  /** Listens to what ends, stops, continues or resizes; returns what ends that. */
  #watch(): () => void {
    const end = (signal: NodeJS.Signals) => this.#end(signal);
    const leave = () => this.leave();
    const redraw = () => this.#handlers.onRedraw();
    const stop = () => this.stop();
    const resume = () => {
      this.leave(); // after SIGSTOP, which nothing can see, a shell has changed the terminal
      this.enter();
      this.#handlers.onRedraw();
    };
    const { events, stdout } = this.#io;
    for (const signal of endings) events.on(signal, end);
    events.on("exit", leave).on("SIGTSTP", stop).on("SIGCONT", resume);
    stdout.on("resize", redraw);
    return () => {
      for (const signal of endings) events.off(signal, end);
      events.off("exit", leave).off("SIGTSTP", stop).off("SIGCONT", resume);
      stdout.off("resize", redraw);
    };
  }

  #end(signal: NodeJS.Signals): void {
    this.leave();
    this.#io.kill(this.#io.pid, signal); // without our handler, it ends the process with the right status
  }

  #write(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) {
      try {
        done += writeSync(this.#terminal, bytes, done);
      } catch (error) {
        if (systemCode(error) !== "EAGAIN") return; // the terminal is gone
      }
    }
  }
}

/** @throws CommandFailure usage, where the terminal is gone */
function openTerminal(io: Io, flags: number): number {
  const terminal = io.openTerminal(flags);
  if (terminal === null) throw new CommandFailure("usage", "the terminal cannot be opened: start this on a terminal");
  return terminal;
}

type Entered = { readonly input: ReadStream; readonly guard: ChildProcess; readonly release: () => void };

/** Line by line: some terminals keep what is cleared at once. */
function erasing(rows: number): string {
  return Array.from({ length: rows }, (_, row) => `\u001b[${row + 1};1H\u001b[2K`).join("");
}

const guardScript = `
trap '' HUP INT QUIT TERM TSTP TTOU
read -r end
[ "$end" = left ] && exit
printf %s "$1" >&3
stty "$2" <&3
printf %s "$3" >&3`;

/** Enough for any terminal: the guard knows no size. */
const guardedRows = 300;

/** Returns the terminal's mode as stty reads it; a usual one where there is no stty. */
export async function terminalMode(io: Io): Promise<string> {
  const child = spawn("stty", ["-g"], { stdio: [io.stdinDescriptor, "pipe", "ignore"] });
  const failed = once(child, "error").then(() => "");
  const printed = child.stdout === null ? "" : await Promise.race([text(child.stdout), failed]);
  return printed.trim() || "sane";
}

/** Waits, in a session of its own, for the end of this process, and erases the screen unless it was left in order. */
function startGuard(terminal: number, mode: string): ChildProcess {
  const guard = spawn("/bin/sh", ["-c", guardScript, "sh", erasing(guardedRows), mode, leaveSequence], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore", terminal],
  });
  guard.on("error", () => {}).unref();
  guard.stdin?.on("error", () => {});
  return guard;
}

function joined(parts: readonly Line[]): Buffer {
  const length = parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0);
  const bytes = Buffer.from(new ArrayBuffer(length));
  let at = 0;
  for (const part of parts) {
    if (typeof part === "string") at += bytes.write(part, at);
    else {
      bytes.set(part, at);
      at += part.length;
    }
  }
  return bytes;
}
