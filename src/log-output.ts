/**
 * Output that never blocks the event loop: a paused terminal and a full pipe queue a bounded number of bytes, then drop
 * whole lines and count them.
 */
import { constants, fstatSync, openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isatty } from "node:tty";
import { systemCode } from "./errors.js";

/** Bytes that wait at most for a reader. */
const maxPending = 64 * 1024;

/** Milliseconds between attempts to write to a paused terminal: Node cannot wait for one without reading from it. */
const retryMs = 50;

/** Resolves to false when the bytes are lost. The first attempt is made before it returns. */
type Sink = (bytes: Buffer) => Promise<boolean>;

export class LogOutput {
  readonly #sink: Sink;
  readonly #droppedLine: (count: number) => string;
  #pending: string[] = [];
  #pendingBytes = 0;
  #dropped = 0;
  #writing: Promise<void> | null = null;

  /** `droppedLine` returns the line that reports dropped ones, once there is space again. */
  constructor(descriptor: 1 | 2, droppedLine: (count: number) => string) {
    this.#sink = sinkFor(descriptor);
    this.#droppedLine = droppedLine;
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#pendingBytes + bytes > maxPending) {
      this.#dropped++;
      return;
    }
    this.#pending.push(line);
    this.#pendingBytes += bytes;
    this.#writing ??= this.#writePending().finally(() => {
      this.#writing = null;
    });
  }

  /** Resolves once everything is written, at the latest after `ms` milliseconds. */
  async flush(ms: number): Promise<void> {
    const limit = new AbortController();
    const timeout = sleep(ms, undefined, { signal: limit.signal }).catch(() => {});
    await Promise.race([this.#writing, timeout]);
    limit.abort();
  }

  async #writePending(): Promise<void> {
    while (this.#pending.length > 0 || this.#dropped > 0) {
      const lines = this.#pending;
      const bytes = this.#pendingBytes;
      const dropped = this.#dropped;
      const report = dropped > 0 ? this.#droppedLine(dropped) : "";
      this.#pending = [];
      const written = await this.#sink(Buffer.from(lines.join("") + report));
      this.#pendingBytes -= bytes;
      if (written) this.#dropped -= dropped;
      else this.#dropped += lines.length;
      if (!written) return; // the next line tries again
    }
  }
}

/**
 * A pipe or socket is non-blocking in Node already. A file takes bytes at once; a thread that waits for it would also
 * prevent the process from ending.
 */
function sinkFor(descriptor: 1 | 2): Sink {
  if (isatty(descriptor)) return terminalSink(descriptor);
  if (isFile(descriptor)) return async (bytes) => writeWhole(descriptor, bytes);
  const stream = descriptor === 1 ? process.stdout : process.stderr;
  return (bytes) => new Promise((resolve) => stream.write(bytes, (error) => resolve(!error)));
}

function isFile(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).isFile();
  } catch {
    return false; // closed: Node's stream discards what it gets
  }
}

/** Opened again, since a change of the flags of the shared descriptor would also affect the user's shell. */
function terminalSink(descriptor: number): Sink {
  let own: number;
  try {
    own = openSync(`/dev/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return async (bytes) => writeWhole(descriptor, bytes); // another user's terminal, after su: it may block
  }
  return async (bytes) => {
    for (let rest = bytes; rest.length > 0; ) {
      const written = writeSome(own, rest);
      if (written === null) return false;
      rest = rest.subarray(written);
      if (rest.length > 0) await sleep(retryMs, undefined, { ref: false });
    }
    return true;
  };
}

/** Returns how many bytes the descriptor took, null when it no longer takes any. */
function writeSome(descriptor: number, bytes: Buffer): number | null {
  try {
    return writeSync(descriptor, bytes);
  } catch (error) {
    return systemCode(error) === "EAGAIN" ? 0 : null;
  }
}

function writeWhole(descriptor: number, bytes: Buffer): boolean {
  for (let rest = bytes; rest.length > 0; ) {
    const written = writeSome(descriptor, rest);
    if (written === null || written === 0) return false;
    rest = rest.subarray(written);
  }
  return true;
}
