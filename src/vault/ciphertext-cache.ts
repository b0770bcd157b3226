/**
 * Owns recently used ciphertext by path, in bounded memory. Nothing stale is ever kept: neither what a write or removal
 * has made untrue, nor what a reader that began before it is just about to bring.
 */
import type { Bytes } from "../../workers/protocol.js";

/** What an entry costs besides its bytes: a Uint8Array, its buffer, and its place in the map. */
const entryOverhead = 300;

/** Keeps what was read, unless its path has changed since the reader began. */
export type Keep = (path: string, bytes: Bytes) => void;

export class CiphertextCache {
  readonly #limit: number;
  /** From the one used longest ago to the one used last. */
  readonly #entries = new Map<string, Bytes>();
  /** Of each reader under way, the paths that have changed since it began. */
  readonly #readers = new Set<Set<string>>();
  #size = 0;

  /** `limit` in bytes of memory; 0 keeps nothing. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Not to be changed or moved. */
  get(path: string): Bytes | undefined {
    const bytes = this.#entries.get(path);
    if (bytes === undefined) return undefined;
    this.#entries.delete(path); // to the end of the order of use
    this.#entries.set(path, bytes);
    return bytes;
  }

  /** Keeps what is certain to be true: what the last change of the path has made. */
  keep(path: string, bytes: Bytes): void {
    const cost = bytes.byteLength + entryOverhead;
    if (cost > this.#limit / 8) return; // one large secret must not drive all others out
    this.#drop(path);
    this.#entries.set(path, bytes);
    this.#size += cost;
    for (const oldest of this.#entries.keys()) {
      if (this.#size <= this.#limit) return;
      this.#drop(oldest);
    }
  }

  /** Reads what is missing here; `keep` is for what was read. */
  async reading<T>(read: (keep: Keep) => Promise<T>): Promise<T> {
    const changed = new Set<string>();
    this.#readers.add(changed);
    try {
      return await read((path, bytes) => {
        if (!changed.has(path)) this.keep(path, bytes);
      });
    } finally {
      this.#readers.delete(changed);
    }
  }

  /** Changes a path: what was known of it before, or is read meanwhile, is not kept. */
  async changing<T>(path: string, change: () => Promise<T>): Promise<T> {
    this.#forget(path);
    try {
      return await change();
    } finally {
      this.#forget(path);
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
    this.#size -= bytes.byteLength + entryOverhead;
  }
}
