/**
 * Secret store with a cache of whole blobs, which is never stale: every change goes through `commit`. Blobs of a store
 * that other servers also change are not cached. It looks into no blob beyond its head's length.
 */
import { randomInt } from "node:crypto";
import type { Bytes, Head } from "../../workers/protocol.js";
import { headEnd } from "../storage/blob-tag.js";
import type { Change, CommitResult, ReadVersion, SecretStore, Space } from "../storage/secret-store.js";

/** A blob in memory, and its head for lists. Until `currentLength` is known, it is that of the whole blob. */
export type CachedBlob = { readonly blob: Bytes; readonly head: Head; currentLength: number };

/** A blob that was made for a path. */
export type SealedBlob = {
  readonly space?: Space;
  readonly path: string;
  readonly blob: Bytes;
  readonly currentLength?: number;
};

/** Called with the paths of secrets when a commit that changes them has ended, whether it succeeded or not. */
export type PathWatcher = (paths: readonly string[]) => void;

export class CachedStore {
  readonly store: SecretStore;
  readonly blobs: BlobCache;
  readonly #watchers: PathWatcher[] = [];
  #vaults = 0;
  /** DANGER: must not begin at the same number twice, or a client misses what changed across a restart. */
  #changes = randomInt(2 ** 47);

  /** @param cacheBytes of memory; what another server changed would be stale, so of a shared store nothing is cached */
  constructor(store: SecretStore, cacheBytes: number) {
    this.store = store;
    this.blobs = new BlobCache(store.shared === undefined ? cacheBytes : 0);
  }

  /** Number of vaults made since the start. */
  get vaults(): number {
    return this.#vaults;
  }

  /** Grows with every change of secrets, before the change is acknowledged; null where other servers make changes too. */
  get changes(): number | null {
    return this.isShared ? null : this.#changes;
  }

  /** Whether other servers also change the vault. */
  get isShared(): boolean {
    return this.store.shared !== undefined;
  }

  watch(watcher: PathWatcher): void {
    this.#watchers.push(watcher);
  }

  /** A new, empty vault has replaced the previous one. No other operation may run. */
  vaultReplaced(): void {
    this.#vaults++;
    this.#changes++;
    this.blobs.clear();
  }

  /**
   * Like `SecretStore.commit`; `sealed`: blobs among the changes. No other change of their paths may run, nor of those
   * of the `bases`, which only other servers may change at the same time.
   */
  async commit(
    changes: readonly Change[],
    sealed: readonly SealedBlob[],
    bases: readonly ReadVersion[] = [],
  ): Promise<CommitResult> {
    const { store, blobs } = this;
    const keys = changes.map(({ space, path }) => cacheKey(space, path));
    blobs.beginChange(keys);
    try {
      const isBased = store.shared !== undefined && bases.length > 0;
      const result = await (isBased ? store.shared.commitOn(changes, bases) : store.commit(changes));
      blobs.endChange(keys);
      if (!result.committed) return result;
      for (const { space, path, blob, currentLength } of sealed) {
        blobs.keep(cacheKey(space, path), cachedBlob(blob, currentLength));
      }
      return result;
    } catch (error) {
      blobs.endChange(keys);
      throw error;
    } finally {
      const paths = changes.flatMap(({ space = "secrets", path }) => (space === "secrets" ? [path] : []));
      if (paths.length > 0) this.#changes++;
      for (const watcher of this.#watchers) watcher(paths);
    }
  }
}

/** No path has an empty segment. */
export function cacheKey(space: Space = "secrets", path: string): string {
  return space === "secrets" ? path : `${space}//${path}`;
}

/** Returns an entry of the cache. `headAt`: start of the head, which follows a stored blob's wrapper. */
export function cachedBlob(blob: Bytes, currentLength = blob.length, headAt = 0): CachedBlob {
  return { blob, head: blobHead(blob, headEnd(blob, headAt)), currentLength };
}

/** Returns the blob without the earlier versions; a copy, since a message clones all of the buffer that a part is in. */
export function currentBytes({ blob, currentLength }: CachedBlob): Bytes {
  return currentLength === blob.length ? blob : blob.slice(0, currentLength);
}

/** Returns a string of one character a byte. A new one: a slice of a longer one would keep all of that in memory. */
export function blobHead(blob: Uint8Array, length = blob.length): Head {
  return Buffer.from(blob.buffer, blob.byteOffset, length).toString("latin1");
}

/** Memory of an entry beyond its bytes. */
const entryOverhead = 350;

/** Since the start, and `bytes` of memory that are in use now. */
export type CacheStats = { readonly hits: number; readonly misses: number; readonly bytes: number };

/**
 * Caches what was read, unless its path has changed since the reader began or is changing now. `isFilling`: only while there is
 * room, so that one look at everything evicts nothing.
 */
export type Keep = (key: string, cached: CachedBlob, isFilling?: boolean) => void;

/**
 * LRU cache of blobs in bounded memory, never stale: a change of a path drops its entry, and what a reader read before or
 * during the change is not kept.
 */
export class BlobCache {
  readonly #limit: number;
  /** Least recently used first. */
  readonly #entries = new Map<string, CachedBlob>();
  /** For each running reader, the keys that have changed since it began. */
  readonly #readers = new Set<Set<string>>();
  /** Keys that are being changed: a read of them may return the old or the new state. */
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

  /** The caller must not change or move the bytes. */
  get(key: string): CachedBlob | undefined {
    const cached = this.#entries.get(key);
    if (cached === undefined) {
      this.#misses++;
      return undefined;
    }
    this.#hits++;
    this.#entries.delete(key); // moves it to the end
    this.#entries.set(key, cached);
    return cached;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Caches what is certain to be current, as after the last change of the path. */
  keep(key: string, cached: CachedBlob): void {
    const cost = entryCost(cached);
    if (cost > this.#limit / 8) return; // one large secret must not evict all others
    this.drop(key);
    this.#entries.set(key, cached);
    this.#size += cost;
    this.#evict();
  }

  /** Runs a read of storage; `keep` caches what it returned. */
  async reading<T>(read: (keep: Keep) => Promise<T>): Promise<T> {
    const changed = new Set<string>();
    this.#readers.add(changed);
    try {
      return await read((key, cached, isFilling = false) => {
        if (changed.has(key) || this.#changing.has(key)) return;
        if (!isFilling || this.#size + entryCost(cached) <= this.#limit) this.keep(key, cached);
      });
    } finally {
      this.#readers.delete(changed);
    }
  }

  /** Call it before paths change, one at a time for each path: no earlier or concurrent read of them stays cached. */
  beginChange(keys: readonly string[]): void {
    for (const key of keys) {
      this.#changing.add(key);
      this.#forget(key);
    }
  }

  /** Call it when the change has ended, also when it failed. */
  endChange(keys: readonly string[]): void {
    for (const key of keys) {
      this.#forget(key);
      this.#changing.delete(key);
    }
  }

  drop(key: string): void {
    const cached = this.#entries.get(key);
    if (cached === undefined) return;
    this.#entries.delete(key);
    this.#size -= entryCost(cached);
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
      this.drop(oldest);
    }
  }

  #forget(key: string): void {
    for (const changed of this.#readers) changed.add(key);
    this.drop(key);
  }
}

function entryCost({ blob, head }: CachedBlob): number {
  return blob.length + head.length + entryOverhead;
}
