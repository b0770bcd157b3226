/**
 * One space of sealed blobs of an unlocked vault: how its operations run, and how a blob of it is read, made, stored, sealed
 * again and listed. No operation runs beside a lock or a forced init, and changes of one path take turns. It never looks into
 * a blob beyond its etag.
 */
import type {
  Bytes,
  Head,
  Request,
  RequestOf,
  SealResult,
  SharedBytes,
  Write,
  WriteResult,
} from "../../workers/protocol.js";
import { copySecret } from "../../workers/registers.js";
import { VaultError } from "../errors.js";
import { KeyedMutex, type ReadWriteLock } from "../locks.js";
import { type Change, type CommitResult, type Expected, readPages, type Space } from "../storage/secret-store.js";
import {
  blobHead,
  type CachedBlob,
  type CachedStore,
  cachedBlob,
  cacheKey,
  currentBytes,
  type Keep,
  type SealedBlob,
} from "./cache.js";
import {
  type Condition,
  type Conflict,
  expectedAs,
  isConditional,
  type Permit,
  repeating,
  requireCurrent,
  type TaggedResponse,
  unconditional,
} from "./conditions.js";
import { type Success, wipingAfter } from "./key-worker.js";
import {
  type Described,
  type Heads,
  type ListPart,
  type ListQuery,
  listNames,
  listParts,
  type NameQuery,
} from "./list.js";
import type { LockState } from "./lock-state.js";

/** Enough of a blob for all of its sealed metadata, with room to spare. */
export const headBytes = 32 * 1024;

/** Properties that differ between spaces. */
export type SpaceKind = {
  readonly space: Space;
  readonly notFound: (path: string) => VaultError;
  /** Another program changed the blob at the same time. */
  readonly conflict: (condition: Condition, path: string) => Conflict;
  /** Enough of a blob for all of its sealed metadata; undefined: only the whole blob is. */
  readonly headBytes?: number;
  /** Name of the list in its response. */
  readonly listed: "entries" | "keys";
  readonly describe: (paths: readonly string[], heads: readonly Head[]) => RequestOf<"describe" | "listTransitKeys">;
  /** Wrapper that is stored around a sealed blob. */
  readonly wrapper?: Wrapper;
};

type Wrapper = {
  readonly bytes: number;
  /** @throws VaultError INTEGRITY */
  readonly unwrap: (path: string, stored: Bytes) => Bytes;
  readonly wrap: (stored: Bytes, blob: Bytes) => Bytes;
};

export type SpaceParts = {
  readonly cached: CachedStore;
  readonly lockState: LockState;
  readonly lock: ReadWriteLock;
  /** Whether a put keeps what it replaces. */
  readonly keepsHistory: boolean;
};

/** New blob that the key worker has made of the one before it, not stored yet. */
export type Made = { readonly result: Extract<WriteResult, { ok: true }>; readonly previous: Bytes | Head | null };

/** Work on the blob at a path; null: there is none. */
type Work<T> = (path: string, found: CachedBlob | null) => Promise<T>;

/** Result or error of storage for a path. */
type Read = PromiseSettledResult<Bytes | null>;

/** Response to a write. `removed`: how many versions a prune has removed. */
export type Written = TaggedResponse & { readonly removed: number };

export class SealedSpace {
  /** Turns of all paths; the secrets and the trash share theirs. */
  readonly turns: KeyedMutex;
  readonly #kind: SpaceKind;
  readonly #parts: SpaceParts;
  readonly #cached: CachedStore;
  readonly #lock: ReadWriteLock;
  readonly #lockState: LockState;
  #requests = 0;

  constructor(kind: SpaceKind, parts: SpaceParts, turns = new KeyedMutex()) {
    this.#kind = kind;
    this.#parts = parts;
    this.#cached = parts.cached;
    this.#lock = parts.lock;
    this.#lockState = parts.lockState;
    this.turns = turns;
  }

  /** How many operations there have been. */
  get requests(): number {
    return this.#requests;
  }

  get isShared(): boolean {
    return this.#cached.isShared;
  }

  /** Runs an operation of the unlocked vault. Wipes the body at the end, unless it was moved. */
  async whileUnlocked<T>(work: () => Promise<T>, body: Bytes | SharedBytes | null = null): Promise<T> {
    this.#requests++;
    try {
      if (!this.#lock.tryEnter()) await this.#lock.enter();
      try {
        this.#lockState.mustBeUnlocked();
        return await work();
      } finally {
        this.#lock.leave();
      }
    } finally {
      if (body !== null && body.byteLength > 0) body.fill(0);
    }
  }

  /** Runs a change in its path's turn, if it is permitted then: a token may have been revoked while it waited. */
  change<T>(
    path: string,
    permit: Permit,
    change: () => Promise<T>,
    body: Bytes | SharedBytes | null = null,
  ): Promise<T> {
    const inTurn = async () => {
      permit();
      return this.repeatingIfShared(change);
    };
    return this.whileUnlocked(() => this.turns.run([path], inTurn), body);
  }

  repeatingIfShared<T>(change: () => Promise<T>): Promise<T> {
    return this.isShared ? repeating(change) : change();
  }

  /** Runs background work in a path's turn, whether the vault is locked or not. */
  aside<T>(path: string, work: () => Promise<T>): Promise<T> {
    return this.#lock.shared(() => this.turns.run([path], work));
  }

  /** See `LockState.ask`. */
  ask<R extends Request>(request: R): Promise<Success<R>> {
    return this.#lockState.ask(request);
  }

  /** Returns the blob as storage has it, or its first bytes; null when there is none. */
  stored(path: string, first?: number): Promise<Bytes | null> {
    return this.#cached.store.read(path, first, this.#kind.space);
  }

  /** Returns the whole blob, from memory or storage; null when there is none. */
  async whole(path: string): Promise<Bytes | null> {
    return this.#inMemory(path)?.blob ?? this.stored(path);
  }

  /** Like `whole`, from memory without the earlier versions. */
  async current(path: string): Promise<Bytes | null> {
    const found = this.#inMemory(path);
    return found === undefined ? this.stored(path) : currentBytes(found);
  }

  /** Returns the head of the current blob, from memory or storage; null when there is none. */
  async head(path: string): Promise<Head | null> {
    const found = this.#inMemory(path);
    if (found !== undefined) return found.head;
    const bytes = await this.stored(path, this.#kind.headBytes);
    return bytes && blobHead(bytes);
  }

  /** Like `head`; "" when there is none, and for a file that is no blob. */
  async headOrNone(path: string): Promise<Head> {
    try {
      return (await this.head(path)) ?? "";
    } catch (error) {
      if (isDamage(error)) return "";
      throw error;
    }
  }

  /** Like `stored`; no bytes for a file that is no blob, which cannot be opened either. */
  async storedOrDamaged(path: string, first?: number): Promise<Bytes | null> {
    try {
      return await this.stored(path, first);
    } catch (error) {
      if (isDamage(error)) return new Uint8Array();
      throw error;
    }
  }

  /** @throws VaultError NOT_FOUND when there is none */
  must<B>(path: string, found: B | null): B {
    if (found === null) throw this.#kind.notFound(path);
    return found;
  }

  /**
   * Runs work on the whole blob, from memory or storage; an intact blob stays in memory. A blob that is damaged
   * in memory is read again, since its file may have been repaired.
   */
  use<T>(path: string, work: Work<T>): Promise<T> {
    const found = this.#inMemory(path);
    return found === undefined ? this.#useStored(path, work) : this.#useInMemory(path, found, work);
  }

  /** Like `use`, for several blobs: work begins in the order of the paths, once all are read. Settles once all have ended. */
  useAll<T>(paths: readonly string[], work: Work<T>): Promise<PromiseSettledResult<T>[]> {
    return this.#cached.blobs.reading(async (keep) => {
      const found = paths.map((path) => this.#inMemory(path));
      const read = await this.#readAll(paths.filter((_, i) => found[i] === undefined));
      const working = paths.map((path, i) => {
        const cached = found[i];
        if (cached !== undefined) return this.#useInMemory(path, cached, work);
        return this.#useRead(path, read.get(path), work, keep);
      });
      return Promise.allSettled(working);
    });
  }

  async #useInMemory<T>(path: string, found: CachedBlob, work: Work<T>): Promise<T> {
    try {
      return await work(path, found);
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.#cached.blobs.drop(cacheKey(this.#kind.space, path));
      return this.#useStored(path, work);
    }
  }

  #useStored<T>(path: string, work: Work<T>): Promise<T> {
    return this.#cached.blobs.reading(async (keep) => {
      const read = await this.#readAll([path]);
      return this.#useRead(path, read.get(path), work, keep);
    });
  }

  /** DANGER: awaits nothing before the work begins, which has an order. */
  async #useRead<T>(path: string, read: Read | undefined, work: Work<T>, keep: Keep): Promise<T> {
    if (read?.status === "rejected") throw read.reason;
    const blob = read?.value ?? null;
    const found = blob && this.#readBlob(blob);
    const result = await work(path, found);
    if (found !== null) keep(cacheKey(this.#kind.space, path), found);
    return result;
  }

  async #readAll(paths: readonly string[]): Promise<ReadonlyMap<string, Read>> {
    if (paths.length === 0) return new Map();
    const read = await Promise.allSettled(paths.map((path) => this.stored(path)));
    return new Map(read.map((one, i) => [paths[i] ?? "", one]));
  }

  /** Asks the key worker about the blob at a path. @throws VaultError NOT_FOUND, INTEGRITY, VAULT_LOCKED, UNAVAILABLE */
  askAbout<R extends Request>(path: string, createRequest: (found: CachedBlob) => R): Promise<Success<R>> {
    return this.whileUnlocked(() =>
      this.use(path, async (_, found) => this.ask(createRequest(this.must(path, found)))),
    );
  }

  /** Opens the current version. @throws VaultError NOT_FOUND, INTEGRITY */
  open(path: string, forVault = false): Promise<TaggedResponse> {
    return this.use(path, (_, found) => this.openFound(path, found, forVault));
  }

  /** Like `open`, of a blob that was found at the path. */
  async openFound(path: string, found: CachedBlob | null, forVault = false): Promise<TaggedResponse> {
    const cached = this.must(path, found);
    const blob = cached.blob.subarray(0, cached.currentLength); // `packed` copies it
    const { response, etag, currentLength } = await this.#lockState.ask({ op: "open", path, blob, forVault });
    cached.currentLength = currentLength;
    return { response, tag: etag };
  }

  /**
   * Asks the key worker for what a write makes of the blob at a path. A damaged blob is read again: a version that is
   * misread once would be written so, and be lost, although the disk still has it.
   *
   * @param isPlanned the body has been checked; else a body is checked before the condition
   */
  async make(path: string, write: Write, condition = unconditional, isPlanned = !("body" in write)): Promise<Made> {
    const needsHead = write.kind === "put" && !this.#parts.keepsHistory;
    const previous = await (needsHead ? this.head(path) : this.whole(path));
    if (isPlanned) requireCurrent(condition, path, previous);
    try {
      return await this.#makeFrom(path, write, condition, previous, false);
    } catch (error) {
      if (error instanceof VaultError && error.code === "NOT_FOUND") requireCurrent(condition, path, previous);
      if (previous === null || !isDamage(error)) throw error;
      return this.#makeFrom(path, write, condition, this.must(path, await this.stored(path)), true);
    }
  }

  async #makeFrom(
    path: string,
    write: Write,
    condition: Condition,
    previous: Bytes | Head | null,
    reread: boolean,
  ): Promise<Made> {
    const asked = { op: "write", path, previous, reread } as const;
    const result = await ("body" in write && !isShared(write.body)
      ? askWithCopy(write.body, (body) => this.#lockState.ask({ ...asked, ...write, body }))
      : this.#lockState.ask({ ...asked, ...write }));
    requireCurrent(condition, path, previous);
    return { result, previous };
  }

  /** Makes a new blob of the one at the path, and stores it. It must be the path's turn. */
  async write(path: string, write: Write, condition = unconditional): Promise<Written> {
    const { result, previous } = await this.make(path, write, condition);
    const { removed = 0 } = result;
    if (result.blob === null) return { response: new Uint8Array(), tag: "", removed };
    const isBased = this.isShared || isConditional(condition);
    await this.replace(path, result, isBased ? expectedAs(previous) : undefined, condition);
    return { response: result.response, tag: result.etag, removed };
  }

  /** Stores a blob, or with null removes the stored one. It must be the path's turn. @throws Conflict */
  async replace(
    path: string,
    made: Pick<SealResult, "blob"> | null,
    expected: Expected | undefined,
    condition = unconditional,
  ): Promise<void> {
    const { space } = this.#kind;
    const change: Change = { space, path, blob: made?.blob ?? null, ...(expected && { expected }) };
    const sealed = made === null ? [] : [{ space, path, blob: made.blob }];
    const { committed } = await this.commit([change], sealed);
    if (!committed) throw this.#kind.conflict(condition, path);
  }

  /** See `CachedStore.commit`. */
  commit(changes: readonly Change[], sealed: readonly SealedBlob[] = []): Promise<CommitResult> {
    return this.#cached.commit(changes, sealed);
  }

  /**
   * Seals a blob again that the old master key sealed; returns false when it is damaged, also on a second read. A blob
   * that a first read finds damaged is not written: re-sealed, it would be lost, although the disk may still have it.
   */
  reseal(path: string): Promise<boolean> {
    const reseal = async () => (await this.#resealOnce(path, false)) || this.#resealOnce(path, true);
    return this.aside(path, () => this.repeatingIfShared(reseal));
  }

  async #resealOnce(path: string, asItIs: boolean): Promise<boolean> {
    const { space, wrapper, conflict } = this.#kind;
    const stored = await this.stored(path);
    if (stored === null) return true;
    const blob = wrapper?.unwrap(path, stored) ?? stored;
    const resealed = await this.ask({ op: "reseal", path, blob, isKey: space === "keys" });
    const { blob: sealed, intact, currentLength } = resealed;
    if (!intact && !asItIs) return false;
    if (sealed === null) {
      await this.#cached.store.flush(path, space); // or a power cut may bring back one that the old key sealed
      return intact;
    }
    const change = { space, path, blob: wrapper?.wrap(stored, sealed) ?? sealed, expected: expectedAs(stored) };
    const isKept = wrapper === undefined && this.#cached.blobs.has(cacheKey(space, path));
    const { committed } = await this.commit([change], isKept ? [{ ...change, currentLength }] : []);
    if (!committed) throw conflict(unconditional, path);
    return intact;
  }

  /** See `NameQuery`. */
  names(query: NameQuery, limit: number): Promise<readonly string[]> {
    return listNames(
      (prefix, after, most) => this.#cached.store.list(prefix, after, most, this.#kind.space),
      query,
      limit,
    );
  }

  /** Yields all names, at most `size` at a time. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  pages(query: NameQuery, size: number): AsyncGenerator<readonly string[], void, void> {
    const list = (after: string) => this.whileUnlocked(() => this.names({ ...query, after }, size));
    return readPages(list, size, query.after);
  }

  /**
   * Yields the response in parts. Between two parts a lock or a forced init need not wait: it ends the list.
   * @throws VaultError VAULT_LOCKED, UNAVAILABLE
   */
  async *list(query: ListQuery): AsyncGenerator<ListPart, void, void> {
    const { vaults } = this.#cached;
    const parts = listParts(this, this.#kind.listed, query);
    for (;;) {
      const { value } = await this.whileUnlocked(() => {
        if (this.#cached.vaults === vaults) return parts.next();
        throw new VaultError("UNAVAILABLE", "a new vault has replaced this one: list again");
      });
      if (!value) return;
      yield value;
    }
  }

  /** Like `SecretStore.list`; fills `heads` where storage returns them in the same round trip. */
  async namesWithHeads(prefix: string, after: string, limit: number, heads: Heads): Promise<readonly string[]> {
    const { space, headBytes } = this.#kind;
    const { shared } = this.#cached.store;
    if (shared === undefined || headBytes === undefined) return this.#cached.store.list(prefix, after, limit, space);
    const found = await shared.listWithHeads(prefix, after, limit, headBytes, space);
    for (const { path, head } of found) heads.set(path, blobHead(head));
    return found.map(({ path }) => path);
  }

  /** Returns what a list shows of blobs. `listed`: heads that came with the names. `isFilling`: see `Keep`. */
  describe(wanted: readonly string[], listed: Heads, isFilling: boolean): Promise<Described> {
    const { space, headBytes = Number.POSITIVE_INFINITY } = this.#kind;
    return this.#cached.blobs.reading(async (keep) => {
      const cached = wanted.map((path) => this.#inMemory(path)); // most are there, and need no promise
      const read = await this.#readHeads(wanted.filter((path, i) => cached[i] === undefined && !listed.has(path)));
      const heads = wanted.map((path, i) => (cached[i] ?? read.get(path))?.head ?? listed.get(path) ?? null);
      const paths = wanted.filter((_, i) => heads[i] !== null); // without those that were deleted since
      const request = this.#kind.describe(
        paths,
        heads.filter((head) => head !== null),
      );
      const described = await this.ask(request);
      const damaged = new Set(described.damaged);
      for (const [path, found] of read) {
        const isWhole = found.blob.length < headBytes;
        if (isWhole && !damaged.has(path)) keep(cacheKey(space, path), found, isFilling);
      }
      return described;
    });
  }

  /**
   * Reads blobs, of large ones only the first bytes.
   * DANGER: settles only when no read is still running, even if one fails: no lock or init may run beside one.
   */
  async #readHeads(paths: readonly string[]): Promise<Map<string, CachedBlob>> {
    const read = new Map<string, CachedBlob>();
    const reading = paths.map(async (path) => {
      const blob = await this.storedOrDamaged(path, this.#kind.headBytes);
      if (blob !== null) read.set(path, this.#readBlob(blob));
    });
    await Promise.all(reading).finally(() => Promise.allSettled(reading));
    return read;
  }

  #inMemory(path: string): CachedBlob | undefined {
    return this.#cached.blobs.get(cacheKey(this.#kind.space, path));
  }

  #readBlob(blob: Bytes): CachedBlob {
    return cachedBlob(blob, blob.length, this.#kind.wrapper?.bytes);
  }
}

function isDamage(error: unknown): boolean {
  return error instanceof VaultError && error.code === "INTEGRITY";
}

/** Whether both threads see the body: any other is moved when it is sent, and may have to be sent again. */
function isShared(body: Bytes | SharedBytes): body is SharedBytes {
  return body.buffer instanceof SharedArrayBuffer;
}

/** The copy is moved with the message. DANGER: a copy that is refused before it is sent would keep the value. */
function askWithCopy<T>(body: Uint8Array, ask: (copy: Bytes) => Promise<T>): Promise<T> {
  const copy = new Uint8Array(new ArrayBuffer(body.length)); // unlike that of a short `slice`, it can be moved and wiped
  copySecret(copy, body);
  return wipingAfter(copy, ask(copy));
}
