/**
 * Secret store with caches of its ciphertext, which are never stale: every change of a secret goes through `commit`. Of a
 * store that other servers also change, nothing is cached. It never looks into a blob.
 */
import type { Bytes, Head, SealReply } from "../../workers/protocol.js";
import type { Basis, Change, CommitResult, Expected, SecretStore } from "../storage/secret-store.js";
import { type CacheFigures, CiphertextCache, type Keep } from "./ciphertext-cache.js";
import { changedMeanwhile, unconditional } from "./condition.js";

/** Enough of a blob for all of its sealed metadata, with room to spare. */
const headBytes = 32 * 1024;

export type CachedStoreOptions = {
  readonly store: SecretStore;
  readonly cacheBytes: number;
  /** Whether a put keeps what it replaces. */
  readonly keepsHistory: boolean;
};

/** A blob that was made for a path, with the length of its head. */
export type SealedBlob = Pick<SealReply, "blob" | "headLength"> & { readonly path: string };

export type ResealedBlob = SealedBlob & { readonly currentLength: number };

export class CachedStore {
  readonly store: SecretStore;
  /** The first bytes of blobs, up to the end of their sealed metadata, for lists and puts. */
  readonly heads: CiphertextCache<Head>;
  readonly #keepsHistory: boolean;
  /** Blobs without their earlier versions. A get that hits here reads no file, which took a quarter of the main thread's time. */
  readonly #presents: CiphertextCache<Bytes>;
  /** Whole blobs as a put has written them: the next put keeps them as earlier versions, and reads no file. */
  readonly #written: CiphertextCache<Bytes>;

  constructor({ store, cacheBytes: most, keepsHistory }: CachedStoreOptions) {
    const cacheBytes = store.shared === undefined ? most : 0; // what another server changed would be stale
    this.store = store;
    this.#keepsHistory = keepsHistory;
    this.#presents = new CiphertextCache(cacheBytes / 2);
    this.heads = new CiphertextCache((cacheBytes * 7) / 16);
    this.#written = new CiphertextCache(keepsHistory ? cacheBytes / 16 : 0);
  }

  /** Whether other servers also change the secrets. */
  get isShared(): boolean {
    return this.store.shared !== undefined;
  }

  /** Returns the blob without its earlier versions, if it is in memory. */
  cachedPresent(path: string): Bytes | undefined {
    return this.#presents.get(path);
  }

  /** Reads a blob that is not in memory. */
  readMissed(path: string): Promise<Bytes | null> {
    this.#presents.missed();
    return this.store.read(path);
  }

  /** Runs a read of storage; `keep` caches a blob without its earlier versions. */
  readingPresent<T>(read: (keep: Keep<Bytes>) => Promise<T>): Promise<T> {
    return this.#presents.reading(read);
  }

  /** Returns the head of the current blob, or null when there is no secret. */
  async head(path: string): Promise<Head | null> {
    return this.heads.get(path) ?? this.#readHead(path);
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
   * As `SecretStore.commit`; `sealed` are the blobs among the changes. No other change of their paths may run, nor of those
   * of the `bases`, which only other servers may change meanwhile.
   */
  async commit(
    changes: readonly Change[],
    sealed: readonly SealedBlob[],
    bases: readonly Basis[] = [],
  ): Promise<CommitResult> {
    const paths = changes.map(({ path }) => path);
    const { shared } = this.store;
    const commit = () =>
      shared === undefined || bases.length === 0 ? this.store.commit(changes) : shared.commitOn(changes, bases);
    const result = await this.heads.changing(paths, () =>
      this.#written.changing(paths, () => this.#presents.changing(paths, commit)),
    );
    if (result.committed) for (const one of sealed) this.#keep(one);
    return result;
  }

  /** Commits a blob that is another sealing of the current one; what was in memory of it stays there. */
  async commitResealed({ path, blob, headLength, currentLength }: ResealedBlob, expected: Expected): Promise<void> {
    const [hadHead, hadPresent] = [this.heads.get(path) !== undefined, this.#presents.get(path) !== undefined];
    const { committed } = await this.commit([{ path, blob, expected }], []);
    if (!committed) throw changedMeanwhile(unconditional, path);
    if (hadHead) this.heads.keep(path, headOf(blob, headLength));
    if (hadPresent) this.#presents.keep(path, currentLength === blob.length ? blob : blob.slice(0, currentLength));
  }

  /** By what the caches hold. */
  get figures(): Readonly<Record<string, CacheFigures>> {
    const caches = { present: this.#presents, heads: this.heads, written: this.#written };
    return Object.fromEntries(Object.entries(caches).map(([name, { figures }]) => [name, figures]));
  }

  /** Empties the caches for a new vault. No other operation may run meanwhile. */
  clear(): void {
    for (const cache of [this.#presents, this.heads, this.#written]) cache.clear();
  }

  #keep({ path, blob, headLength }: SealedBlob): void {
    this.heads.keep(path, headOf(blob, headLength));
    this.#written.keep(path, blob);
  }

  async #readHead(path: string): Promise<Head | null> {
    this.heads.missed();
    const bytes = await this.store.read(path, headBytes);
    return bytes && headOf(bytes, bytes.length);
  }
}

/** A new string: a slice of a longer one would keep all of that in memory. */
export function headOf(blob: Uint8Array, length: number): Head {
  return Buffer.from(blob.buffer, blob.byteOffset, length).toString("latin1");
}
