/**
 * LRU cache of ciphertext by path, in bounded memory, never stale: a change of a path drops its entry, and what a reader
 * read before or during the change is not kept.
 */
import type { Bytes } from "../../workers/protocol.js";

/** Memory of an entry beyond its bytes: its place in the map, and what a buffer takes more than a string. */
const entryOverhead = 100;
const bufferOverhead = 200;

/** Of a head; assumed while there is none. */
const usualCost = 300;

/** Since the start, and `bytes` of memory that are in use now. */
export type CacheFigures = { readonly hits: number; readonly misses: number; readonly bytes: number };

/** Caches what was read, unless its path has changed since the reader began or is changing now. */
export type Keep<C> = (path: string, ciphertext: C) => void;

/** `C`: bytes, or strings of one character a byte. */
export class CiphertextCache<C extends Bytes | string> {
  readonly #limit: number;
  /** Least recently used first. */
  readonly #entries = new Map<string, C>();
  /** For each running reader, the paths that have changed since it began. */
  readonly #readers = new Set<Set<string>>();
  /** Paths that are being changed: a read of them may return the old or the new state. */
  readonly #changing = new Set<string>();
  #size = 0;
  #hits = 0;
  #misses = 0;

  /** `limit` in bytes of memory; 0 disables the cache. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get figures(): CacheFigures {
    return { hits: this.#hits, misses: this.#misses, bytes: this.#size };
  }

  /** About how many entries it holds, if they are like those that it holds now. */
  get capacity(): number {
    const average = this.#size / this.#entries.size || usualCost;
    return (this.#limit * 7) / 8 / average;
  }

  /** The caller must not change or move the bytes. */
  get(path: string): C | undefined {
    const bytes = this.#entries.get(path);
    if (bytes === undefined) return undefined;
    this.#hits++;
    this.#entries.delete(path); // moves it to the end
    this.#entries.set(path, bytes);
    return bytes;
  }

  /** Counts a miss: the caller makes or reads what it did not find. It may have looked more than once. */
  missed(): void {
    this.#misses++;
  }

  /** Caches what is certain to be current, as after the last change of the path. */
  keep(path: string, ciphertext: C): void {
    const cost = costOf(ciphertext);
    if (cost > this.#limit / 8) return; // one large secret must not evict all others
    this.#drop(path);
    this.#entries.set(path, ciphertext);
    this.#size += cost;
    this.#evict();
  }

  /** Runs a read of storage; `keep` caches what it returned. */
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

  /** Runs a change of paths, one at a time for each path: no earlier or concurrent read of them stays cached. */
  async changing<T>(paths: readonly string[], change: () => Promise<T>): Promise<T> {
    for (const path of paths) this.#changing.add(path);
    for (const path of paths) this.#forget(path);
    try {
      return await change();
    } finally {
      for (const path of paths) this.#forget(path);
      for (const path of paths) this.#changing.delete(path);
    }
  }

  /** Empties the cache. No reader may be running. */
  clear(): void {
    this.#entries.clear();
    this.#size = 0;
  }

  /** Evicts an eighth at once: an iterator skips a hole for each entry removed or used since the map was last compacted. */
  #evict(): void {
    if (this.#size <= this.#limit) return;
    for (const oldest of this.#entries.keys()) {
      if (this.#size <= (this.#limit * 7) / 8) return;
      this.#drop(oldest);
    }
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
