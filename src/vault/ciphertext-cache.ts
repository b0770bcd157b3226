/**
 * Owns recently used ciphertext by path, in bounded memory. Nothing stale is ever kept: neither what a write or removal
 * has made untrue, nor what a reader that began before it is just about to bring.
 */
import type { Bytes } from "../../workers/protocol.js";

/** What an entry costs besides its bytes: its place in the map and, if it is none, more than a string does. */
const entryOverhead = 100;
const bufferOverhead = 200;

/** Keeps what was read, unless its path has changed since the reader began, or is changing now. */
export type Keep<C> = (path: string, ciphertext: C) => void;

/** Of bytes, or of strings that have one character for each. */
export class CiphertextCache<C extends Bytes | string> {
  readonly #limit: number;
  /** From the one used longest ago to the one used last. */
  readonly #entries = new Map<string, C>();
  /** Of each reader under way, the paths that have changed since it began. */
  readonly #readers = new Set<Set<string>>();
  /** Paths that are being changed: what is read of them now may be the old or the new. */
  readonly #changing = new Set<string>();
  #size = 0;

  /** `limit` in bytes of memory; 0 keeps nothing. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Not to be changed or moved. */
  get(path: string): C | undefined {
    const bytes = this.#entries.get(path);
    if (bytes === undefined) return undefined;
    this.#entries.delete(path); // to the end of the order of use
    this.#entries.set(path, bytes);
    return bytes;
  }

  /** Keeps what is certain to be true: what the last change of the path has made. */
  keep(path: string, ciphertext: C): void {
    const cost = costOf(ciphertext);
    if (cost > this.#limit / 8) return; // one large secret must not drive all others out
    this.#drop(path);
    this.#entries.set(path, ciphertext);
    this.#size += cost;
    for (const oldest of this.#entries.keys()) {
      if (this.#size <= this.#limit) return;
      this.#drop(oldest);
    }
  }

  /** Reads what is missing here; `keep` is for what was read. */
  async reading<T>(read: (keep: Keep<C>) => Promise<T>): Promise<T> {
    const changed = new Set<string>();
    this.#readers.add(changed);
    try {
      return await read((path, ciphertext) => {
        if (!changed.has(path) && !this.#changing.has(path)) this.keep(path, ciphertext);
      });
    } finally {
      this.#readers.delete(changed);
    }
  }

  /** Changes a path, one change at a time: what was known of it before, or is read meanwhile, is not kept. */
  async changing<T>(path: string, change: () => Promise<T>): Promise<T> {
    this.#changing.add(path);
    this.#forget(path);
    try {
      return await change();
    } finally {
      this.#forget(path);
      this.#changing.delete(path);
    }
  }

  /** Forgets everything; nobody must be reading. */
  clear(): void {
    this.#entries.clear();
    this.#size = 0;
  }

  #forget(path: string): void {
    for (const changed of this.#readers) changed.add(path);
    this.#drop(path);
  }

  #drop(path: string): void {
    const bytes = this.#entries.get(path);
    if (bytes === undefined) return;
    this.#entries.delete(path);
    this.#size -= costOf(bytes);
  }
}

function costOf(ciphertext: Bytes | string): number {
  return ciphertext.length + entryOverhead + (typeof ciphertext === "string" ? 0 : bufferOverhead);
}
