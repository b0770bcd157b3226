/**
 * Secrets of an unlocked vault: the order of storage and key worker calls for each, and the caches of their ciphertext.
 * It never looks into a body, nor into a blob beyond its tag.
 */
import type { Bytes, Head, SealReply } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import { tagHeadBytes, tagOf } from "../storage/blob-tag.js";
import type { Change, Expected, SecretStore } from "../storage/secret-store.js";
import { CiphertextCache } from "./ciphertext-cache.js";
import {
  type Condition,
  includesTag,
  isConditional,
  preconditionFailed,
  requireCondition,
  type Tags,
} from "./condition.js";
import type { KeyState } from "./key-state.js";
import { headOf, Lister, type ListQuery } from "./lister.js";
import { KeyedMutex } from "./sync/keyed-mutex.js";

export type EntriesOptions = {
  readonly store: SecretStore;
  readonly keyState: KeyState;
  readonly clock: Clock;
  readonly cacheBytes: number;
  /** Whether a put keeps what it replaces. */
  readonly keepsHistory: boolean;
};

/** `tag`: of the present secret. */
export type TaggedReply = { readonly reply: Bytes; readonly tag: string };
export type MaybeReply = { readonly reply: Bytes | null; readonly tag: string };

export class Entries {
  readonly #store: SecretStore;
  readonly #keyState: KeyState;
  readonly #clock: Clock;
  readonly #keepsHistory: boolean;
  readonly #paths = new KeyedMutex();
  /** Blobs without their earlier versions. A get that hits here reads no file, which took a quarter of the main thread's time. */
  readonly #blobs: CiphertextCache<Bytes>;
  /** Whole blobs as a put has written them: the next put keeps them as earlier versions, and reads no file. */
  readonly #written: CiphertextCache<Bytes>;
  /** The first bytes of blobs, up to the end of their sealed metadata, for lists and puts. */
  readonly #heads: CiphertextCache<Head>;
  /** Sealed groups of list entries. Listing 1,000 secrets again takes 5 ms instead of 16, and 1 ms of the key worker's CPU instead of 10. */
  readonly #pages: CiphertextCache<Bytes>;
  readonly #lister: Lister;

  constructor({ store, keyState, clock, cacheBytes, keepsHistory }: EntriesOptions) {
    this.#store = store;
    this.#keyState = keyState;
    this.#clock = clock;
    this.#keepsHistory = keepsHistory;
    this.#blobs = new CiphertextCache(cacheBytes / 2);
    this.#heads = new CiphertextCache(cacheBytes / 4);
    this.#pages = new CiphertextCache((cacheBytes * 3) / 16);
    this.#written = new CiphertextCache(keepsHistory ? cacheBytes / 16 : 0);
    this.#lister = new Lister({ store, keyState, heads: this.#heads, pages: this.#pages });
  }

  put(path: string, body: Bytes, condition: Condition): Promise<TaggedReply> {
    return this.#paths.run(path, () => this.#putExclusively(path, body, condition));
  }

  async get(path: string, unlessTagged: Tags | null): Promise<MaybeReply> {
    const blob = this.#blobs.get(path);
    const head = blob ?? (unlessTagged && (await this.#store.read(path, tagHeadBytes)));
    if (unlessTagged !== null && head && includesTag(unlessTagged, tagOf(head)))
      return { reply: null, tag: tagOf(head) };
    return blob === undefined
      ? this.#readAndOpen(path)
      : { reply: (await this.#open(path, blob)).reply, tag: tagOf(blob) };
  }

  remove(path: string, condition: Condition): Promise<void> {
    return this.#paths.run(path, async () => {
      const expected = isConditional(condition) ? await this.#judged(path, condition) : "present";
      if (!(await this.#commit({ path, blob: null, expected })))
        throw expected === "present" ? notFound(path) : preconditionFailed(path);
    });
  }

  async history(path: string): Promise<Bytes> {
    return (await this.#keyState.ask({ op: "history", path, blob: await this.#mustRead(path) })).reply;
  }

  async version(path: string, version: number): Promise<Bytes> {
    return (await this.#keyState.ask({ op: "openVersion", path, blob: await this.#mustRead(path), version })).reply;
  }

  undo(path: string, body: Bytes, condition: Condition): Promise<TaggedReply> {
    return this.#paths.run(path, () => this.#undoExclusively(path, body, condition));
  }

  prune(path: string, condition: Condition): Promise<number> {
    return this.#paths.run(path, () => this.#pruneExclusively(path, condition));
  }

  /** @throws VaultError BAD_REQUEST for an invalid body of a put that is not carried out */
  async judgePut(path: string, body: Bytes): Promise<void> {
    await this.#keyState.ask({ op: "seal", path, body, previous: null, now: this.#clock.now() });
  }

  /** As `judgePut`, of an undo. */
  async judgeUndo(path: string, body: Bytes): Promise<void> {
    try {
      await this.#keyState.ask({ op: "undo", path, body, blob: null, now: this.#clock.now() });
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== "NOT_FOUND") throw error;
    }
  }

  list(query: ListQuery): Promise<readonly Bytes[]> {
    return this.#lister.list(query);
  }

  /** Empties the caches for a new vault. No other operation may run meanwhile. */
  forget(): void {
    this.#blobs.clear();
    this.#heads.clear();
    this.#written.clear();
    this.#pages.clear();
  }

  /** The body is judged before the condition. */
  async #putExclusively(path: string, body: Bytes, condition: Condition): Promise<TaggedReply> {
    const previous = await (this.#keepsHistory ? this.#whole(path) : this.#lister.head(path));
    const sealed = await this.#keyState.ask({ op: "seal", path, body, previous, now: this.#clock.now() });
    return this.#replace(path, condition, previous, sealed);
  }

  async #undoExclusively(path: string, body: Bytes, condition: Condition): Promise<TaggedReply> {
    const previous = await this.#store.read(path);
    try {
      const sealed = await this.#keyState.ask({ op: "undo", path, body, blob: previous, now: this.#clock.now() });
      return await this.#replace(path, condition, previous, sealed);
    } catch (error) {
      if (error instanceof VaultError && error.code === "NOT_FOUND")
        requireCondition(condition, path, tagOrNone(previous));
      throw error;
    }
  }

  async #pruneExclusively(path: string, condition: Condition): Promise<number> {
    const previous = await this.#store.read(path);
    requireCondition(condition, path, tagOrNone(previous));
    if (previous === null) throw notFound(path);
    const { blob, removed } = await this.#keyState.ask({ op: "prune", path, blob: previous });
    if (blob.length < previous.length)
      await this.#mustCommit(condition, { path, blob, expected: { tag: tagOf(previous) } });
    return removed;
  }

  async #replace(
    path: string,
    condition: Condition,
    previous: Bytes | Head | null,
    sealed: Sealed,
  ): Promise<TaggedReply> {
    const tag = tagOrNone(previous);
    requireCondition(condition, path, tag);
    const { blob, headLength, reply } = sealed;
    const expected: Expected = tag === null ? "absent" : { tag };
    await this.#mustCommit(condition, { path, blob, ...(isConditional(condition) && { expected }) });
    this.#heads.keep(path, headOf(blob, headLength)); // no other change of the path has begun
    this.#written.keep(path, blob);
    return { reply, tag: tagOf(blob) };
  }

  /** A blob that does not open is not cached: once its file is repaired, the next get finds it. */
  #readAndOpen(path: string): Promise<TaggedReply> {
    return this.#blobs.reading(async (keep) => {
      const blob = await this.#mustRead(path);
      const { reply, presentLength } = await this.#open(path, blob);
      keep(path, presentLength === blob.length ? blob : blob.slice(0, presentLength));
      return { reply, tag: tagOf(blob) };
    });
  }

  async #whole(path: string): Promise<Bytes | null> {
    return this.#written.get(path) ?? this.#store.read(path);
  }

  async #mustRead(path: string): Promise<Bytes> {
    const blob = await this.#store.read(path);
    if (blob === null) throw notFound(path);
    return blob;
  }

  #open(path: string, blob: Bytes) {
    return this.#keyState.ask({ op: "open", path, blob });
  }

  async #judged(path: string, condition: Condition): Promise<Expected> {
    const tag = tagOrNone(await this.#store.read(path, tagHeadBytes));
    requireCondition(condition, path, tag);
    return tag === null ? "present" : { tag };
  }

  /** Another program has changed what the change is based on: the condition does not hold, or the caller tries again. */
  async #mustCommit(condition: Condition, change: Change): Promise<void> {
    if (await this.#commit(change)) return;
    if (isConditional(condition)) throw preconditionFailed(change.path);
    throw new VaultError(
      "UNAVAILABLE",
      `the secret at ${change.path} was changed meanwhile by another program: try again`,
    );
  }

  async #commit(change: Change): Promise<boolean> {
    const { path } = change;
    const commit = () => this.#store.commit([change]);
    const uncached = () => this.#written.changing(path, () => this.#blobs.changing(path, commit));
    const { committed } = await this.#heads.changing(path, uncached);
    return committed;
  }
}

type Sealed = Pick<SealReply, "blob" | "headLength" | "reply">;

function tagOrNone(blob: Bytes | Head | null): string | null {
  if (blob === null) return null;
  return tagOf(typeof blob === "string" ? Buffer.from(blob.slice(0, tagHeadBytes), "latin1") : blob);
}

function notFound(path: string): VaultError {
  return new VaultError("NOT_FOUND", `there is no secret at ${path}`);
}
