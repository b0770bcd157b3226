/**
 * Secret store with caches of its ciphertext, which are never stale: every change of a secret goes through `commit`. Of a
 * store that other servers also change, nothing is cached. It never looks into a blob.
 */
import type { Bytes, Head, SealResult } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import type { Change, CommitResult, Expected, ReadVersion, SecretStore } from "../storage/secret-store.js";
import { conflictAt, notFound, unconditional } from "./conditions.js";

/** Enough of a blob for all of its sealed metadata, with room to spare. */
export const headBytes = 32 * 1024;

export type CachedStoreOptions = {
  readonly store: SecretStore;
  readonly cacheBytes: number;
  /** Whether a put keeps what it replaces. */
  readonly keepsHistory: boolean;
};

/** A blob that was made for a path, with the length of its head. */
export type SealedBlob = Pick<SealResult, "blob" | "headLength"> & { readonly path: string };

export type ResealedBlob = SealedBlob & { readonly currentLength: number };

/** Called with the paths of secrets when a commit that changes them has ended, whether it succeeded or not. */
export type PathWatcher = (paths: readonly string[]) => void;

export class CachedStore {
  readonly store: SecretStore;
  /** The first bytes of blobs, up to the end of their sealed metadata, for lists and puts. */
  readonly heads: CiphertextCache<Head>;
  readonly #keepsHistory: boolean;
  readonly #watchers: PathWatcher[] = [];
  /** Blobs without their earlier versions. A get that hits here reads no file. */
  readonly #currents: CiphertextCache<Bytes>;
  /** Whole blobs as a put has written them: the next put keeps them as earlier versions, and reads no file. */
  readonly #written: CiphertextCache<Bytes>;

  constructor({ store, cacheBytes: most, keepsHistory }: CachedStoreOptions) {
    const cacheBytes = store.shared === undefined ? most : 0; // what another server changed would be stale
    this.store = store;
    this.#keepsHistory = keepsHistory;
    this.#currents = new CiphertextCache(cacheBytes / 2);
    this.heads = new CiphertextCache((cacheBytes * 7) / 16);
    this.#written = new CiphertextCache(keepsHistory ? cacheBytes / 16 : 0);
  }

  watch(watcher: PathWatcher): void {
    this.#watchers.push(watcher);
  }

  /** Whether other servers also change the secrets. */
  get isShared(): boolean {
    return this.store.shared !== undefined;
  }

  /** Returns the blob without its earlier versions, if it is in memory. */
  current(path: string): Bytes | undefined {
    return this.#currents.get(path);
  }

  /** Returns the blob, from memory without its earlier versions, or from storage. @throws VaultError NOT_FOUND */
  async mustReadCurrent(path: string): Promise<Bytes> {
    const cached = this.#currents.get(path);
    if (cached !== undefined) return cached;
    this.#currents.missed();
    const blob = await this.store.read(path);
    if (blob === null) throw notFound(path);
    return blob;
  }

  /** Runs a read of storage; `keep` caches a blob without its earlier versions. */
  readingCurrent<T>(read: (keep: KeepCurrent) => Promise<T>): Promise<T> {
    return this.#currents.reading((keep) =>
      read((path, blob, currentLength) => keep(path, currentVersionOf(blob, currentLength))),
    );
  }

  /** Returns the head of the current blob, or null when there is no secret. */
  async head(path: string): Promise<Head | null> {
    const head = this.heads.get(path);
    if (head !== undefined) return head;
    this.heads.missed();
    const bytes = await this.store.read(path, headBytes);
    return bytes && headOf(bytes, bytes.length);
  }

  /** As `SecretStore.list`; fills `heads` where storage returns them in the same round trip. */
  async list(prefix: string, after: string, limit: number, heads: Map<string, Head>): Promise<readonly string[]> {
    const { shared } = this.store;
    if (shared === undefined) return this.store.list(prefix, after, limit);
    const found = await shared.listWithHeads(prefix, after, limit, headBytes);
    for (const { path, head } of found) heads.set(path, headOf(head, head.length));
    return found.map(({ path }) => path);
  }

  async whole(path: string): Promise<Bytes | null> {
    const written = this.#written.get(path);
    if (written !== undefined) return written;
    this.#written.missed();
    return this.store.read(path);
  }

  /** Returns as much of the current blob as a put needs; null when there is no secret. */
  previous(path: string): Promise<Bytes | Head | null> {
    return this.#keepsHistory ? this.whole(path) : this.head(path);
  }

  /**
   * Runs work on what was read of a secret, and once more on a second read where it finds that damaged: a version that is
   * misread once would be written so, and be lost, although the disk still has it.
   */
  async rereading<P extends Bytes | Head | null, T>(
    path: string,
    first: P,
    work: (previous: P | Bytes, reread: boolean) => Promise<T>,
  ): Promise<{ readonly result: T; readonly previous: P | Bytes }> {
    try {
      return { result: await work(first, false), previous: first };
    } catch (error) {
      if (first === null || !(error instanceof VaultError) || error.code !== "INTEGRITY") throw error;
      const previous = await this.store.read(path);
      if (previous === null) throw notFound(path);
      return { result: await work(previous, true), previous };
    }
  }

  /**
   * As `SecretStore.commit`; `sealed` are the blobs among the changes. No other change of their paths may run, nor of those
   * of the `bases`, which only other servers may change at the same time.
   */
  async commit(
    changes: readonly Change[],
    sealed: readonly SealedBlob[],
    bases: readonly ReadVersion[] = [],
  ): Promise<CommitResult> {
    try {
      return await this.#commit(changes, sealed, bases);
    } finally {
      const paths = changes.flatMap(({ space = "secrets", path }) => (space === "secrets" ? [path] : []));
      for (const watcher of this.#watchers) watcher(paths);
    }
  }

  async #commit(
    changes: readonly Change[],
    sealed: readonly SealedBlob[],
    bases: readonly ReadVersion[],
  ): Promise<CommitResult> {
    const { store } = this;
    const caches = [this.heads, this.#written, this.#currents];
    for (const cache of caches) cache.beginChange(changes);
    try {
      const committing =
        store.shared === undefined || bases.length === 0
          ? store.commit(changes)
          : store.shared.commitOn(changes, bases);
      const result = await committing;
      for (const cache of caches) cache.endChange(changes);
      if (result.committed) for (const one of sealed) this.#keep(one);
      return result;
    } catch (error) {
      for (const cache of caches) cache.endChange(changes);
      throw error;
    }
  }

  /** Commits a blob that is another sealing of the current one; what was in memory of it stays there. */
  async commitResealed({ path, blob, headLength, currentLength }: ResealedBlob, expected: Expected): Promise<void> {
    const [hadHead, hadCurrent] = [this.heads.get(path) !== undefined, this.#currents.get(path) !== undefined];
    const { committed } = await this.#commit([{ path, blob, expected }], [], []);
    if (!committed) throw conflictAt(unconditional, path);
    if (hadHead) this.heads.keep(path, headOf(blob, headLength));
    if (hadCurrent) this.#currents.keep(path, currentVersionOf(blob, currentLength));
  }

  /** By what the caches hold. */
  get stats(): Readonly<Record<string, CacheStats>> {
    return { present: this.#currents.stats, heads: this.heads.stats, written: this.#written.stats };
  }

  /** Empties the caches for a new vault. No other operation may run at the same time. */
  clear(): void {
    for (const cache of [this.#currents, this.heads, this.#written]) cache.clear();
  }

  #keep({ path, blob, headLength }: SealedBlob): void {
    this.heads.keep(path, headOf(blob, headLength));
    this.#written.keep(path, blob);
  }
}

/** Caches the current version of a blob that was read. */
export type KeepCurrent = (path: string, blob: Bytes, currentLength: number) => void;

function currentVersionOf(blob: Bytes, currentLength: number): Bytes {
  return currentLength === blob.length ? blob : blob.slice(0, currentLength);
}

/** A new string: a slice of a longer one would keep all of that in memory. */
export function headOf(blob: Uint8Array, length: number): Head {
  return Buffer.from(blob.buffer, blob.byteOffset, length).toString("latin1");
}

/** Memory of an entry beyond its bytes: its place in the map, and what a buffer takes more than a string. */
const entryOverhead = 100;
const bufferOverhead = 200;

/** Of a head; assumed while there is none. */
const usualCost = 300;

/** Since the start, and `bytes` of memory that are in use now. */
export type CacheStats = { readonly hits: number; readonly misses: number; readonly bytes: number };

/** Caches what was read, unless its path has changed since the reader began or is changing now. */
export type Keep<C> = (path: string, ciphertext: C) => void;

type Path = { readonly path: string };

/**
 * LRU cache of ciphertext by path, in bounded memory, never stale: a change of a path drops its entry, and what a reader
 * read before or during the change is not kept. `C`: bytes, or strings of one character a byte.
 */
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

  get stats(): CacheStats {
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

  /** Call it before paths change, one at a time for each path: no earlier or concurrent read of them stays cached. */
  beginChange(changes: readonly Path[]): void {
    for (const { path } of changes) {
      this.#changing.add(path);
      this.#forget(path);
    }
  }

  /** Call it when the change has ended, also when it failed. */
  endChange(changes: readonly Path[]): void {
    for (const { path } of changes) {
      this.#forget(path);
      this.#changing.delete(path);
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
