/** Secret operations of an unlocked vault: seal a put's body, open a blob for a get, describe blobs for a list. */
import {
  metadataEnd,
  openMetadata,
  openPresent,
  openPresents,
  type PathAndBlob,
  presentEtag,
  type SealingKey,
} from "./crypto/blob.js";
import { openPage, sealPage } from "./crypto/page.js";
import { getReply, listEntry, suppliedMetadata, valueText } from "./entry.js";
import type { Keyring } from "./keyring.js";
import { allocate, concat, fromLatin1, lengthOf, wipe, withScratch } from "./memory.js";
import { type Content, sealNext } from "./next-version.js";
import type { DescribeReply, HistoryLimits, ReplyOf, RequestOf } from "./protocol.js";
import { damaged, lockedNow } from "./refusals.js";
import type { BodyReaders, PutBody } from "./request-bodies.js";

/** Opens under no key. */
const noBlob = allocate(0);

export class Secrets {
  readonly #keyring: Keyring;
  readonly #readers: BodyReaders;
  readonly #limits: HistoryLimits;

  constructor(keyring: Keyring, readers: BodyReaders, limits: HistoryLimits) {
    this.#keyring = keyring;
    this.#readers = readers;
    this.#limits = limits;
  }

  seal({ path, body, previous, now }: RequestOf<"seal">): ReplyOf<"seal"> {
    try {
      const key = this.#keyring.sealingKey;
      if (key === null) return lockedNow;
      return withScratch(() => {
        const read = this.#readers.put(body);
        if (!read.ok) return read;
        const place = { path, previous: typeof previous === "string" ? fromLatin1(previous) : previous, now };
        return sealNext(key, place, contentOf(read.fields), this.#limits);
      });
    } finally {
      wipe(body);
    }
  }

  open({ path, blob }: RequestOf<"open">): ReplyOf<"open"> {
    const key = this.#keyring.sealingKey;
    if (key === null) return lockedNow;
    return withScratch(() => {
      const opened = openPresent(key, path, blob);
      if (opened === null) return damaged(path, "restore its file from a backup, or delete it");
      const reply = concat(getReply(path, opened.value, opened.metadata, presentEtag(blob)));
      return { ok: true, reply, presentLength: opened.length };
    });
  }

  openMany({ paths, blobs }: RequestOf<"openMany">): ReplyOf<"openMany"> {
    const key = this.#keyring.sealingKey;
    if (key === null) return lockedNow;
    return withScratch(() => {
      const pairs = paths.map((path, i) => ({ path, blob: blobs[i] ?? noBlob }));
      const opened = openPresents(key, pairs);
      const replies = opened.map((one, i) => {
        const { path, blob } = pairs[i] ?? { path: "", blob: noBlob };
        return one === null ? [] : getReply(path, one.value, one.metadata, presentEtag(blob));
      });
      return {
        ok: true,
        reply: concat(replies.flat()),
        lengths: replies.map(lengthOf),
        presentLengths: opened.map((one) => one?.length ?? 0),
      };
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

function contentOf(body: PutBody): Content {
  return { value: valueText(body), valueBytes: body.value.bytes.length, supplied: suppliedMetadata(body) };
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
    else parts.push(parts.length > 0 ? "," : "", ...listEntry(path, metadata, presentEtag(blob)));
  }
  const reply = concat(parts);
  return { ok: true, reply, page: unreadable.length === 0 ? sealPage(key, reply) : null, damaged: unreadable, lengths };
}
