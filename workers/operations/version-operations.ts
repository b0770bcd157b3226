/** Operations on the versions of a secret: list them, open one, make one the newest, remove the past, check them all. */
import {
  type OpenedVersion,
  openMetadata,
  openPresent,
  openVersion,
  openVersionsMetadata,
  type SealingKey,
} from "../crypto/blob.js";
import { etagOf, type SealedVersion, splitBlob } from "../crypto/blob-structure.js";
import { decodeString, inScratch } from "../json/json-string.js";
import type { Keyring } from "../keyring.js";
import { concat } from "../memory.js";
import type { ReplyOf, RequestOf } from "../protocol.js";
import { damaged, damagedVersion, noSecret, noVersion } from "../refusals.js";
import type { Refusal } from "../replies.js";
import type { BodyReaders } from "../request-bodies.js";
import type { HistoryLimits } from "../worker-settings.js";
import { getReply, readMetadata, versionEntry } from "./entry.js";
import { type Content, sealNext } from "./next-version.js";

export class Versions {
  readonly #keyring: Keyring;
  readonly #readers: BodyReaders;
  readonly #limits: HistoryLimits;

  constructor(keyring: Keyring, readers: BodyReaders, limits: HistoryLimits) {
    this.#keyring = keyring;
    this.#readers = readers;
    this.#limits = limits;
  }

  history({ path, blob }: RequestOf<"history">): ReplyOf<"history"> {
    return this.#keyring.withKey((key) => {
      const known = knownVersions(key, path, blob);
      return known === null ? damaged(path) : { ok: true, reply: historyReply(path, known) };
    });
  }

  openVersion({ path, blob, version }: RequestOf<"openVersion">): ReplyOf<"openVersion"> {
    return this.#keyring.withKey((key) => {
      const found = findVersion(key, path, blob, version);
      if (!("sealed" in found)) return found;
      const opened = openVersion(key, path, found.sealed);
      if (opened === null) return damagedVersion(path, version);
      return { ok: true, reply: concat(getReply(path, opened.value, opened.metadata, etagOf(found.sealed.metadata))) };
    });
  }

  undo({ path, body, blob, now }: RequestOf<"undo">): ReplyOf<"undo"> {
    return this.#keyring.withKey((key) => {
      const read = this.#readers.undo(body);
      if (!read.ok) return read;
      if (blob === null) return noSecret(path);
      const { version } = read.fields;
      const found = findVersion(key, path, blob, version);
      if (!("sealed" in found)) return found;
      const opened = openVersion(key, path, found.sealed);
      return opened
        ? sealNext(key, { path, previous: blob, now }, contentOf(opened), this.#limits)
        : damagedVersion(path, version);
    });
  }

  prune({ path, blob }: RequestOf<"prune">): ReplyOf<"prune"> {
    return this.#keyring.withKey((key) => {
      const split = splitBlob(blob);
      const known = split && knownVersions(key, path, blob);
      if (split === null || known === null) return damaged(path);
      return { ok: true, blob: concat([blob.subarray(0, split.presentLength)]), removed: split.past.length };
    });
  }

  check({ path, blob }: RequestOf<"check">): ReplyOf<"check"> {
    return this.#keyring.withKey((key) => {
      const past = splitBlob(blob)?.past ?? [];
      const opens = openPresent(key, path, blob) && past.every((version) => openVersion(key, path, version));
      return opens ? { ok: true } : damaged(path);
    });
  }
}

/** `metadata`: opened. */
type Known = { readonly sealed: SealedVersion; readonly metadata: Uint8Array };

/** `damaged`: number of earlier versions whose metadata does not open; a damaged structure counts as one. */
type KnownVersions = { readonly versions: readonly Known[]; readonly damaged: number };

/** Returns the versions whose metadata opens, the present first; null when the present's does not. */
function knownVersions(key: SealingKey, path: string, blob: Uint8Array): KnownVersions | null {
  const split = splitBlob(blob);
  const [present = null] = openMetadata(key, [{ path, blob }]);
  if (split === null || present === null) return null;
  const all = [split.present, ...split.past];
  const opened = openVersionsMetadata(key, path, all);
  const versions = all.flatMap((sealed, i) => {
    const metadata = opened[i] ?? null;
    return metadata === null ? [] : [{ sealed, metadata }];
  });
  return { versions, damaged: all.length - versions.length + (split.isWhole ? 0 : 1) };
}

function historyReply(path: string, { versions, damaged: lost }: KnownVersions) {
  const entries = versions.flatMap(({ sealed, metadata }, i) => [
    i > 0 ? "," : "",
    ...versionEntry(metadata, etagOf(sealed.metadata)),
  ]);
  const end = lost === 0 ? "]}" : `],"damaged":${lost}}`;
  return concat([`{"path":${JSON.stringify(path)},"versions":[`, ...entries, end]);
}

/** A version that is not found among damaged ones may be one of them. */
function findVersion(key: SealingKey, path: string, blob: Uint8Array, version: number): Known | Refusal {
  const known = knownVersions(key, path, blob);
  if (known === null) return damaged(path);
  const numbered = known.versions.map(({ sealed, metadata }) => ({
    sealed,
    metadata,
    version: readMetadata(metadata).version,
  }));
  const found = numbered.find((one) => one.version === version);
  if (found !== undefined) return found;
  const isPast = version < (numbered[0]?.version ?? 0);
  return known.damaged > 0 && isPast ? damagedVersion(path, version) : noVersion(path, version);
}

/** Returns what a put of an opened version would seal. */
export function contentOf({ value, metadata }: OpenedVersion): Content {
  const valueBytes = decodeString(value.subarray(1, -1), inScratch).bytes.length;
  return { value, valueBytes, supplied: JSON.stringify(readMetadata(metadata).metadata) };
}
