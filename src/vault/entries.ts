/**
 * Secrets of an unlocked vault: the order of storage and key worker calls for each. It never looks into a body, nor into a
 * blob beyond its tag.
 */
import type { Bytes, Head, SealReply, SharedBytes } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import { tagHeadBytes, tagOf } from "../storage/blob-tag.js";
import type { Change, Expected, SecretStore } from "../storage/secret-store.js";
import type { BatchPermit } from "./batch/batch-plan.js";
import { Batches } from "./batch/batches.js";
import { CachedStore, type SealedBlob } from "./cached-store.js";
import {
  type Condition,
  changedMeanwhile,
  expectedAs,
  includesTag,
  isConditional,
  type MaybeReply,
  notFound,
  requireCondition,
  type TaggedReply,
  type Tags,
  tagOrNone,
} from "./condition.js";
import type { KeyState } from "./key-state.js";
import { Lister, type ListPart, type ListQuery } from "./lister.js";
import { Opener } from "./opener.js";
import { copyOf, repeating, repeatingWith } from "./shared/repeating.js";
import { KeyedMutex } from "./sync/keyed-mutex.js";

export type EntriesOptions = {
  readonly store: SecretStore;
  readonly keyState: KeyState;
  readonly clock: Clock;
  readonly log: Log;
  readonly cacheBytes: number;
  readonly maxBatchBytes: number;
  /** Whether a put keeps what it replaces. */
  readonly keepsHistory: boolean;
};

export class Entries {
  readonly #store: SecretStore;
  readonly #keyState: KeyState;
  readonly #clock: Clock;
  readonly #cached: CachedStore;
  readonly #paths = new KeyedMutex();
  readonly #lister: Lister;
  readonly #opener: Opener;
  readonly #batches: Batches;

  constructor(options: EntriesOptions) {
    const { store, keyState, clock } = options;
    const cached = new CachedStore(options);
    this.#store = store;
    this.#keyState = keyState;
    this.#clock = clock;
    this.#cached = cached;
    this.#lister = new Lister(cached, keyState);
    this.#opener = new Opener(cached, keyState);
    this.#batches = new Batches({ ...options, cached, paths: this.#paths, opener: this.#opener });
  }

  get cacheFigures(): CachedStore["figures"] {
    return this.#cached.figures;
  }

  put(path: string, body: Bytes, condition: Condition): Promise<TaggedReply> {
    const put = (given: Bytes) => this.#putExclusively(path, given, condition);
    return this.#paths.run(path, () => (this.#cached.isShared ? repeatingWith(body, copyOf, put) : put(body)));
  }

  async get(path: string, unlessTagged: Tags | null): Promise<MaybeReply> {
    const blob = this.#cached.cachedPresent(path);
    const head = blob ?? (unlessTagged && (await this.#store.read(path, tagHeadBytes)));
    if (unlessTagged !== null && head && includesTag(unlessTagged, tagOf(head)))
      return { reply: null, tag: tagOf(head) };
    return this.#opener.one(path, blob);
  }

  remove(path: string, condition: Condition): Promise<void> {
    const remove = async () => {
      const expected = isConditional(condition) ? await this.#judged(path, condition) : "present";
      const { committed } = await this.#cached.commit([{ path, blob: null, expected }], []);
      if (!committed) throw expected === "present" ? notFound(path) : changedMeanwhile(condition, path);
    };
    return this.#paths.run(path, () => this.#repeatingIfShared(remove));
  }

  async history(path: string): Promise<Bytes> {
    return (await this.#keyState.ask({ op: "history", path, blob: await this.#mustRead(path) })).reply;
  }

  async version(path: string, version: number): Promise<Bytes> {
    return (await this.#keyState.ask({ op: "openVersion", path, blob: await this.#mustRead(path), version })).reply;
  }

  undo(path: string, body: Bytes, condition: Condition): Promise<TaggedReply> {
    const undo = (given: Bytes) => this.#undoExclusively(path, given, condition);
    return this.#paths.run(path, () => (this.#cached.isShared ? repeatingWith(body, copyOf, undo) : undo(body)));
  }

  prune(path: string, condition: Condition): Promise<number> {
    return this.#paths.run(path, () => this.#repeatingIfShared(() => this.#pruneExclusively(path, condition)));
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

  /**
   * Seals a secret again that the old master key sealed; returns false when it is damaged, also on a second read. What a
   * first read finds damaged is not written: sealed anew, it would be lost, although the disk may still have it.
   */
  reseal(path: string): Promise<boolean> {
    const reseal = async () => (await this.#resealExclusively(path, false)) || this.#resealExclusively(path, true);
    return this.#paths.run(path, () => this.#repeatingIfShared(reseal));
  }

  /** Returns the response. */
  batch(body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    return this.#batches.run(body, permit);
  }

  list(query: ListQuery): AsyncGenerator<ListPart, void, void> {
    return this.#lister.list(query);
  }

  /** Empties the caches for a new vault. No other operation may run meanwhile. */
  forget(): void {
    this.#cached.clear();
  }

  #repeatingIfShared<T>(change: () => Promise<T>): Promise<T> {
    return this.#cached.isShared ? repeating(change) : change();
  }

  /** The body is judged before the condition. */
  async #putExclusively(path: string, body: Bytes, condition: Condition): Promise<TaggedReply> {
    const previous = await this.#cached.previous(path);
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
      await this.#mustCommit(condition, { path, blob, expected: expectedAs(previous) });
    return removed;
  }

  async #resealExclusively(path: string, asItIs: boolean): Promise<boolean> {
    const before = await this.#store.read(path);
    if (before === null) return true;
    const { blob, intact, ...lengths } = await this.#keyState.ask({ op: "reseal", path, blob: before });
    if (!intact && !asItIs) return false;
    if (blob !== null) await this.#cached.commitResealed({ path, blob, ...lengths }, expectedAs(before));
    else await this.#store.settle(path); // or a power cut may bring back one that the old key sealed
    return intact;
  }

  async #replace(
    path: string,
    condition: Condition,
    previous: Bytes | Head | null,
    sealed: Sealed,
  ): Promise<TaggedReply> {
    requireCondition(condition, path, tagOrNone(previous));
    const { blob, reply } = sealed;
    const expected = expectedAs(previous);
    const change = { path, blob, ...((this.#cached.isShared || isConditional(condition)) && { expected }) };
    await this.#mustCommit(condition, change, { ...sealed, path });
    return { reply, tag: tagOf(blob) };
  }

  async #mustRead(path: string): Promise<Bytes> {
    const blob = await this.#store.read(path);
    if (blob === null) throw notFound(path);
    return blob;
  }

  async #judged(path: string, condition: Condition): Promise<Expected> {
    const tag = tagOrNone(await this.#store.read(path, tagHeadBytes));
    requireCondition(condition, path, tag);
    return tag === null ? "present" : { tag };
  }

  /** Another program has changed what the change is based on: the condition does not hold, or the caller tries again. */
  async #mustCommit(condition: Condition, change: Change, ...sealed: SealedBlob[]): Promise<void> {
    const { committed } = await this.#cached.commit([change], sealed);
    if (!committed) throw changedMeanwhile(condition, change.path);
  }
}

type Sealed = Pick<SealReply, "blob" | "headLength" | "reply">;
