/** Secret operations of an unlocked vault: seal a put's body, open a blob for a get, describe blobs for a list. */
import { openMetadata, openPresent, openPresents, type PathAndBlob, type SealingKey } from "../crypto/blob.js";
import { metadataEnd, presentEtag } from "../crypto/blob-structure.js";
import { openPage, sealPage } from "../crypto/page.js";
import type { Keyring } from "../keyring.js";
import { allocate, concat, fromLatin1, lengthOf, wipe } from "../memory.js";
import type { ReplyOf, RequestOf } from "../protocol.js";
import { damaged } from "../refusals.js";
import type { DescribeReply } from "../replies.js";
import type { BodyReaders, PutBody } from "../request-bodies.js";
import type { HistoryLimits } from "../worker-settings.js";
import { getReply, listEntry, suppliedMetadata, valueText } from "./entry.js";
import { type Content, sealNext } from "./next-version.js";

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
      return this.#keyring.withKey((key) => {
        const read = this.#readers.put(body);
        if (!read.ok) return read;
        const place = { path, previous: typeof previous === "string" ? fromLatin1(previous) : previous, now };
        return sealNext(key, place, contentOfBody(read.fields), this.#limits);
      });
    } finally {
      wipe(body);
    }
  }

  open({ path, blob }: RequestOf<"open">): ReplyOf<"open"> {
    return this.#keyring.withKey((key) => {
      const opened = openPresent(key, path, blob);
      if (opened === null) return damaged(path);
      const reply = concat(getReply(path, opened.value, opened.metadata, presentEtag(blob)));
      return { ok: true, reply, presentLength: opened.length };
    });
  }

  openMany({ paths, blobs }: RequestOf<"openMany">): ReplyOf<"openMany"> {
    return this.#keyring.withKey((key) => {
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
    return this.#keyring.withKey((key) => {
      const blobs = paths.map((path, i) => ({ path, blob: fromLatin1(heads[i] ?? "") }));
      return describeBlobs(key, blobs);
    });
  }

  reveal({ page }: RequestOf<"reveal">): ReplyOf<"reveal"> {
    return this.#keyring.withKey((key) => ({ ok: true, reply: openPage(key, page) }));
  }
}

function contentOfBody(body: PutBody): Content {
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
