/** Batch operations: check a batch's body, and seal a secret for another path. */
import { maxOperations } from "../body-schemas.js";
import { openPresent, openVersion, type SealingKey, sealBlob, sealPast } from "../crypto/blob.js";
import { metadataEnd, presentEtag, type SealedVersion, splitBlob } from "../crypto/blob-structure.js";
import { readElements } from "../json/json-reader.js";
import type { Keyring } from "../keyring.js";
import type { PlannedOperation, ReplyOf, RequestOf } from "../protocol.js";
import { damaged, noOperations } from "../refusals.js";
import type { BodyReaders } from "../request-bodies.js";
import type { HistoryLimits } from "../worker-settings.js";
import { metadataText, putReply, readMetadata } from "./entry.js";
import { sealNext } from "./next-version.js";
import { contentOf } from "./version-operations.js";

export class Batches {
  readonly #keyring: Keyring;
  readonly #readers: BodyReaders;
  readonly #limits: HistoryLimits;

  constructor(keyring: Keyring, readers: BodyReaders, limits: HistoryLimits) {
    this.#keyring = keyring;
    this.#readers = readers;
    this.#limits = limits;
  }

  /** The values stay in the body, which `seal` reads. */
  plan({ body }: RequestOf<"plan">): ReplyOf<"plan"> {
    return this.#keyring.withKey(() => {
      const elements = readElements(body, "operations", maxOperations);
      if (elements === null) return noOperations;
      const operations: PlannedOperation[] = [];
      for (const [index, { start, end }] of elements.entries()) {
        const read = this.#readers.operation(body.subarray(start, end));
        if (!read.ok) return { ...read, index };
        const { kind, path, to, ifMatch, ifNoneMatch } = read.fields;
        const conditions = { ifMatch: ifMatch?.toString() ?? null, ifNoneMatch: ifNoneMatch?.toString() ?? null };
        operations.push({ kind, path: path.toString(), to: to?.toString() ?? null, ...conditions, start, end });
      }
      return { ok: true, operations };
    });
  }

  /** Each version keeps its value, metadata, times and number; all are sealed anew, because the path is in their AAD. */
  move({ path, to, blob }: RequestOf<"move">): ReplyOf<"move"> {
    return this.#keyring.withKey((key) => {
      const present = openPresent(key, path, blob);
      if (present === null) return damaged(path);
      const past = splitBlob(blob)?.past.map((version) => resealed(key, path, to, version)) ?? [];
      if (past.includes(null)) return damaged(path, "restore its file from a backup, or delete its earlier versions");
      const { value, valueBytes, supplied } = contentOf(present);
      const { version, ...times } = readMetadata(present.metadata);
      const metadata = metadataText(supplied, times, version);
      const moved = sealBlob(
        key,
        to,
        metadata,
        value,
        past.filter((sealed) => sealed !== null),
      );
      const reply = putReply(to, valueBytes, supplied, version, presentEtag(moved));
      return { ok: true, blob: moved, headLength: metadataEnd(moved), reply };
    });
  }

  /** As a put of the present value and metadata at the other path, where nothing is. */
  copy({ path, to, blob, now }: RequestOf<"copy">): ReplyOf<"copy"> {
    return this.#keyring.withKey((key) => {
      const present = openPresent(key, path, blob);
      if (present === null) return damaged(path);
      return sealNext(key, { path: to, previous: null, now }, contentOf(present), this.#limits);
    });
  }
}

function resealed(key: SealingKey, path: string, to: string, sealed: SealedVersion): SealedVersion | null {
  const opened = openVersion(key, path, sealed);
  return opened && sealPast(key, to, opened.metadata, opened.value);
}
