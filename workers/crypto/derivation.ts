/**
 * Key derivation: scrypt, one at a time, behind a short queue. Each derivation takes 128 · N · r bytes of memory and about
 * 0.4 s of a libuv thread; several at once would starve the file operations of the whole process.
 */
import { scrypt } from "node:crypto";
import { viewOf } from "../memory.js";
import type { Bytes } from "../owned-bytes.js";

/** scrypt's cost (RFC 7914 section 2): N = 2^logN, block size r, parallelism p. */
type KdfParameters = { readonly logN: number; readonly r: number; readonly p: number };

/** Derives `length` bytes by scrypt (RFC 7914) off the event loop, in memory that the caller wipes. */
export function derive(
  passphrase: Uint8Array,
  salt: Uint8Array,
  { logN, r, p }: KdfParameters,
  length = 32,
): Promise<Bytes> {
  const cost = { N: 2 ** logN, r, p, maxmem: 128 * r * (2 ** logN + p + 2) };
  return new Promise((resolve, reject) => {
    scrypt(passphrase, salt, length, cost, (error, key) => {
      // DANGER: the job keeps its copy of the passphrase until this callback, and all microtasks it queues, have returned.
      setImmediate(() => {
        if (error) reject(error);
        else resolve(viewOf(key));
      });
    });
  });
}

type Turn = "start" | "full" | "cancelled";

/** Runs one job at a time and lets at most `limit` wait. */
export class DerivationQueue {
  readonly #limit: number;
  readonly #waiting: ((turn: Turn) => void)[] = [];
  readonly #idle: (() => void)[] = [];
  #busy = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Runs the job in its turn, unless the queue is full or it is cancelled before. */
  async run<T>(job: () => Promise<T>): Promise<T | "full" | "cancelled"> {
    const turn = await this.#turn();
    if (turn !== "start") return turn;
    try {
      return await job();
    } finally {
      this.#next();
    }
  }

  /** Cancels the waiting jobs. The running one goes on: scrypt cannot be interrupted. */
  cancel(): void {
    for (const wake of this.#waiting.splice(0)) wake("cancelled");
  }

  /** Resolves when no job is running any more. */
  async idle(): Promise<void> {
    if (this.#busy) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #turn(): Turn | Promise<Turn> {
    if (!this.#busy) {
      this.#busy = true;
      return "start";
    }
    if (this.#waiting.length >= this.#limit) return "full";
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #next(): void {
    const wake = this.#waiting.shift();
    if (wake) {
      wake("start");
      return;
    }
    this.#busy = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}
