/** Opening of secrets for gets: blobs from memory or storage, opened by the key worker. */
import type { Bytes } from "../../workers/protocol.js";
import { tagOf } from "../storage/blob-tag.js";
import type { ReplyBudget } from "./batch/reply-budget.js";
import type { CachedStore } from "./cached-store.js";
import type { Keep } from "./ciphertext-cache.js";
import { notFound, type TaggedReply } from "./condition.js";
import type { KeyState } from "./key-state.js";

/** Larger blobs go to the key worker in a message each, so that other requests have their turn. */
const smallBytes = 16 * 1024;

export class Opener {
  readonly #cached: CachedStore;
  readonly #keyState: KeyState;

  constructor(cached: CachedStore, keyState: KeyState) {
    this.#cached = cached;
    this.#keyState = keyState;
  }

  /** `blob`: what the caller found in memory. @throws VaultError NOT_FOUND, INTEGRITY */
  async one(path: string, blob = this.#cached.cachedPresent(path)): Promise<TaggedReply> {
    return blob === undefined
      ? this.#readAndOpen(path)
      : { reply: (await this.#keyState.ask({ op: "open", path, blob })).reply, tag: tagOf(blob) };
  }

  /**
   * As `one`, with one message for all small secrets, and large ones one after the other; returns an error for its path.
   * Settles once all have ended.
   */
  many(paths: readonly string[], budget: ReplyBudget): Promise<PromiseSettledResult<TaggedReply>[]> {
    return this.#cached.readingPresent(async (keep) => {
      const read = async (path: string) => {
        budget.mustLast();
        return this.#blobOf(path);
      };
      const blobs = await Promise.allSettled(paths.map(read));
      const small = paths.filter((_, i) => isSmall(blobs[i]));
      const opened = this.#openSmall(
        small,
        blobs.flatMap((blob) => (isSmall(blob) ? [blob.value] : [])),
        keep,
      );
      let at = 0;
      const replies = paths.map(async (path, i) => {
        const blob = blobs[i];
        if (blob?.status === "rejected") throw blob.reason;
        const place = isSmall(blob) ? at++ : null;
        const one = place === null ? null : (await opened)[place];
        if (!one) return budget.take(() => this.one(path));
        budget.spend(one.reply);
        return one;
      });
      return Promise.allSettled(replies);
    });
  }

  /** Returns null for a damaged one. */
  async #openSmall(
    paths: readonly string[],
    blobs: readonly Bytes[],
    keep: Keep<Bytes>,
  ): Promise<(TaggedReply | null)[]> {
    if (paths.length === 0) return [];
    const { reply, lengths, currentLengths } = await this.#keyState.ask({ op: "openMany", paths, blobs });
    let at = 0;
    return blobs.map((blob, i) => {
      const length = lengths[i] ?? 0;
      const one = reply.subarray(at, at + length);
      at += length;
      if (length === 0) return null;
      keepPresent(keep, paths[i] ?? "", blob, currentLengths[i] ?? 0);
      return { reply: one, tag: tagOf(blob) };
    });
  }

  /** A blob that does not open is not cached: once its file is repaired, the next get finds it. */
  #readAndOpen(path: string): Promise<TaggedReply> {
    return this.#cached.readingPresent(async (keep) => {
      const blob = await this.#blobOf(path);
      const { reply, currentLength } = await this.#keyState.ask({ op: "open", path, blob });
      keepPresent(keep, path, blob, currentLength);
      return { reply, tag: tagOf(blob) };
    });
  }

  async #blobOf(path: string): Promise<Bytes> {
    const blob = this.#cached.cachedPresent(path) ?? (await this.#cached.readMissed(path));
    if (blob === null) throw notFound(path);
    return blob;
  }
}

function isSmall(blob: PromiseSettledResult<Bytes> | undefined): blob is PromiseFulfilledResult<Bytes> {
  return blob?.status === "fulfilled" && blob.value.length <= smallBytes;
}

function keepPresent(keep: Keep<Bytes>, path: string, blob: Bytes, currentLength: number): void {
  keep(path, currentLength === blob.length ? blob : blob.slice(0, currentLength));
}
