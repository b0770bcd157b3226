/** Secret operations of an unlocked vault: seal a put's body, open a blob for a get, describe blobs for a list. */
import { metadataEnd, openBlob, openMetadata, type PathAndBlob, type SealingKey, sealBlob } from "./crypto/blob.js";
import { openPage, sealPage } from "./crypto/page.js";
import { getReply, listEntry, metadataText, nextTimes, putReply, suppliedMetadata, valueText } from "./entry.js";
import type { Keyring } from "./keyring.js";
import { concat, fromLatin1, wipe, withScratch } from "./memory.js";
import type { DescribeReply, ReplyOf, RequestOf } from "./protocol.js";
import { damaged, lockedNow } from "./refusals.js";
import type { BodyReaders, PutBody } from "./request-bodies.js";

export class Secrets {
  readonly #keyring: Keyring;
  readonly #readers: BodyReaders;

  constructor(keyring: Keyring, readers: BodyReaders) {
    this.#keyring = keyring;
    this.#readers = readers;
  }

  seal({ path, body, previous, now }: RequestOf<"seal">): ReplyOf<"seal"> {
    try {
      const key = this.#keyring.sealingKey;
      if (key === null) return lockedNow;
      return withScratch(() => {
        const read = this.#readers.put(body);
        return read.ok ? sealFields(key, path, read.fields, previous, now) : read;
      });
    } finally {
      wipe(body);
    }
  }

  open({ path, blob }: RequestOf<"open">): ReplyOf<"open"> {
    const key = this.#keyring.sealingKey;
    if (key === null) return lockedNow;
    return withScratch(() => {
      const opened = openBlob(key, path, blob);
      return opened
        ? { ok: true, reply: getReply(path, opened.value, opened.metadata) }
        : damaged(path, "restore its file from a backup, or delete it");
    });
  }

  describe({ paths, heads }: RequestOf<"describe">): ReplyOf<"describe"> {
    const key = this.#keyring.sealingKey;
    if (key === null) return lockedNow;
    return withScratch(() => {
      const blobs = paths.map((path, i) => ({ path, blob: fromLatin1(heads[i] ?? "") }));
      return describeBlobs(key, blobs);
    });
  }

  reveal({ page }: RequestOf<"reveal">): ReplyOf<"reveal"> {
    const key = this.#keyring.sealingKey;
    if (key === null) return lockedNow;
    const entries = withScratch(() => openPage(key, page));
    if (entries === null) throw new Error("a page that was sealed here does not open");
    return { ok: true, reply: entries };
  }
}

function sealFields(
  key: SealingKey,
  path: string,
  body: PutBody,
  previous: string | null,
  now: number,
): ReplyOf<"seal"> {
  const [before = null] = previous === null ? [] : openMetadata(key, [{ path, blob: fromLatin1(previous) }]);
  if (previous !== null && before === null) return damaged(path, "delete it before you store a new one");
  const supplied = suppliedMetadata(body);
  const blob = sealBlob(key, path, metadataText(supplied, nextTimes(now, before)), valueText(body));
  return { ok: true, blob, headLength: metadataEnd(blob), reply: putReply(path, body.value.bytes.length, supplied) };
}

function describeBlobs(key: SealingKey, blobs: readonly PathAndBlob[]): DescribeReply {
  const opened = openMetadata(key, blobs);
  const parts: (Uint8Array | string)[] = [];
  const unreadable: string[] = [];
  const lengths: number[] = [];
  for (const [i, { path, blob }] of blobs.entries()) {
    const metadata = opened[i] ?? null;
    lengths.push(metadata === null ? 0 : metadataEnd(blob));
    if (metadata === null) unreadable.push(path);
    else parts.push(parts.length > 0 ? "," : "", ...listEntry(path, metadata));
  }
  const reply = concat(parts);
  return { ok: true, reply, page: unreadable.length === 0 ? sealPage(key, reply) : null, damaged: unreadable, lengths };
}
