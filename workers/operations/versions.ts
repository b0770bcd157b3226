/** Operations on the versions of a secret: list them, open one, make one the newest, destroy some, remove the earlier ones, check them all. */
import {
  metadataEtag,
  type OpenedVersion,
  openCurrent,
  openMetadata,
  openVersion as openSealed,
  openVersionsMetadata,
  privatePart,
  type SealedVersion,
  type SealingKey,
  type SplitBlob,
  sealBlob,
  sealEarlier,
  splitBlob,
  withEarlier,
} from "../crypto/blob.js";
import { concat, concatScratch, utf8 } from "../memory.js";
import type { Refusal, RequestOf, ResultOf, VersionChange, WriteOf, WriteResult } from "../protocol.js";
import { damaged, damagedVersion, goneVersion, newestVersion, noSecret, noVersion } from "../refusals.js";
import { forTransit } from "../transit/key-format.js";
import type { Context, Writing } from "./context.js";
import {
  getResponse,
  markedDeleted,
  markedDestroyed,
  metadataExpiry,
  readMetadata,
  sealNext,
  versionContent,
  versionEntry,
  versionState,
  withoutMark,
  written,
} from "./entry.js";

export function history({ keyring }: Context, { path, blob }: RequestOf<"history">): ResultOf<"history"> {
  return keyring.withKey((key) => {
    const known = knownVersions(key, path, blob);
    if (known === null) return damaged(path);
    return isWithoutVersion(known) ? noSecret(path) : { ok: true, response: historyResponse(path, known) };
  });
}

export function openVersion(
  { keyring, now }: Context,
  { path, blob, version }: RequestOf<"openVersion">,
): ResultOf<"openVersion"> {
  return keyring.withKey((key) => {
    const found = findVersion(key, path, blob, version);
    if (!("sealed" in found)) return found;
    const state = versionState(found.metadata, now);
    if (state !== "kept") return goneVersion(path, version, state);
    const opened = openSealed(key, path, found.sealed);
    if (opened === null) return damagedVersion(path, version);
    return {
      ok: true,
      response: concat(
        getResponse(path, opened.value, withoutMark(opened.metadata), metadataEtag(found.sealed.metadata)),
      ),
    };
  });
}

export function undo(writing: Writing, { body }: WriteOf<"undo">): WriteResult | Refusal {
  const { key, path, previous, readers, now } = writing;
  const read = readers.undo(body);
  if (!read.ok) return read;
  const { version } = read.fields;
  const found = previous === null ? noSecret(path) : findVersion(key, path, previous, version);
  if (!("sealed" in found)) return found;
  if (versionState(found.metadata, now) === "destroyed") return goneVersion(path, version, "destroyed");
  const opened = openSealed(key, path, found.sealed);
  return opened === null ? damagedVersion(path, version) : sealNext(writing, versionContent(opened));
}

/** Numbers that are not kept are ignored, unless all are. The etag of the secret changes only with its current version. */
export function changeVersions(writing: Writing, request: WriteOf<"changeVersions">): WriteResult | Refusal {
  const { path, previous } = writing;
  const { versions, change, mayDestroyCurrent } = request;
  if (previous === null) return noSecret(path);
  const known = versionsToWrite(writing, previous);
  if (known === null || !known.split.isWhole) return damaged(path);
  const found =
    versions === "current" ? known.versions.slice(0, 1) : versions.map((version) => versionIn(known, path, version));
  const wanted = found.filter((one) => "sealed" in one);
  const [refusal] = found.filter((one) => "ok" in one);
  if (wanted.length === 0 && refusal !== undefined) return refusal;
  const current = wanted.find(({ sealed }) => sealed === known.split.current);
  if (change === "destroy" && !mayDestroyCurrent && current !== undefined) return newestVersion(path);
  return withChanged(writing, previous, known.split, wanted, change);
}

function withChanged(
  { key, path, now }: Writing,
  previous: Uint8Array,
  split: SplitBlob,
  wanted: readonly Known[],
  change: VersionChange,
): WriteResult | Refusal {
  const changes = new Map<SealedVersion, OpenedVersion>();
  for (const one of wanted) {
    const changed = changedVersion(key, path, one, change, now);
    if (changed === "damaged") return damagedVersion(path, readMetadata(one.metadata).version);
    if (changed !== "same") changes.set(one.sealed, changed);
  }
  if (changes.size === 0) return { ok: true, blob: null };
  const earlier = split.earlier.map((sealed) => {
    const changed = changes.get(sealed);
    return changed === undefined ? sealed : sealEarlier(key, path, changed.metadata, changed.value);
  });
  const current = changes.get(split.current);
  return written(
    current === undefined
      ? withEarlier(previous, split, earlier)
      : sealBlob(key, path, withPrivatePart(current.metadata), current.value, earlier),
  );
}

function changedVersion(
  key: SealingKey,
  path: string,
  { sealed, metadata }: Known,
  change: VersionChange,
  now: number,
): OpenedVersion | "same" | "damaged" {
  const state = versionState(metadata, now);
  if (change === "destroy")
    return state === "destroyed" ? "same" : { metadata: markedDestroyed(metadata), value: emptyText };
  if (state !== (change === "delete" ? "kept" : "deleted")) return "same";
  const opened = openSealed(key, path, sealed);
  if (opened === null) return "damaged";
  return {
    metadata: change === "delete" ? markedDeleted(withoutMark(metadata), now) : withoutMark(metadata),
    value: opened.value,
  };
}

/** A program that knows no states must not take a deleted current version for an existing one. */
function withPrivatePart(metadata: Uint8Array): Uint8Array {
  return privatePart(metadata) === null ? concatScratch(metadata, "\n{}") : metadata;
}

const emptyText = utf8('""');

export function prune(writing: Writing): WriteResult | Refusal {
  const { path, previous } = writing;
  if (previous === null) return noSecret(path);
  const known = versionsToWrite(writing, previous);
  if (known === null) return damaged(path);
  const removed = known.split.earlier.length;
  const isSame = removed === 0 && known.split.isWhole;
  return isSame ? { ok: true, blob: null, removed } : { ...written(withEarlier(previous, known.split, [])), removed };
}

export function check({ keyring }: Context, { path, blob, isKey }: RequestOf<"check">): ResultOf<"check"> {
  return keyring.withKey((vaultKey) => {
    const key = isKey ? forTransit(vaultKey) : vaultKey;
    const earlier = splitBlob(blob)?.earlier ?? [];
    const current = openCurrent(key, path, blob);
    const opens = current !== null && earlier.every((version) => openSealed(key, path, version) !== null);
    return opens ? { ok: true, expiresAt: metadataExpiry(current.metadata) } : damaged(path);
  });
}

function isWithoutVersion({ versions: [current] }: KnownVersions): boolean {
  return current !== undefined && readMetadata(current.metadata).version === 0;
}

/** `metadata`: opened. */
export type Known = { readonly sealed: SealedVersion; readonly metadata: Uint8Array };

/** `damaged`: number of earlier versions whose metadata does not open; a damaged structure counts as one. */
type KnownVersions = { readonly split: SplitBlob; readonly versions: readonly Known[]; readonly damaged: number };

/** Returns the versions whose metadata opens, the current one first; null when that one does not open. */
export function knownVersions(key: SealingKey, path: string, blob: Uint8Array): KnownVersions | null {
  const split = splitBlob(blob);
  const [current = null] = openMetadata(key, [{ path, blob }]);
  if (split === null || current === null) return null;
  const all = [split.current, ...split.earlier];
  const opened = openVersionsMetadata(key, path, all);
  const versions = all.flatMap((sealed, i) => {
    const metadata = opened[i] ?? null;
    return metadata === null ? [] : [{ sealed, metadata }];
  });
  return { split, versions, damaged: all.length - versions.length + (split.isWhole ? 0 : 1) };
}

/** Like `knownVersions`, for a blob whose current version is written as it is; null also after a possible misread. */
function versionsToWrite({ key, path, reread }: Writing, blob: Uint8Array): KnownVersions | null {
  return reread || openCurrent(key, path, blob) !== null ? knownVersions(key, path, blob) : null;
}

function historyResponse(path: string, { versions, damaged: lost }: KnownVersions) {
  const entries = versions.flatMap(({ sealed, metadata }, i) => [
    i > 0 ? "," : "",
    ...versionEntry(metadata, metadataEtag(sealed.metadata)),
  ]);
  const end = lost === 0 ? "]}" : `],"damaged":${lost}}`;
  return concat([`{"path":${JSON.stringify(path)},"versions":[`, ...entries, end]);
}

function findVersion(key: SealingKey, path: string, blob: Uint8Array, version: number): Known | Refusal {
  const known = knownVersions(key, path, blob);
  return known === null ? damaged(path) : versionIn(known, path, version);
}

/** A version that is not found among damaged ones may be one of them. */
export function versionIn({ versions, damaged: lost }: KnownVersions, path: string, version: number): Known | Refusal {
  const numbers = versions.map(({ metadata }) => readMetadata(metadata).version);
  const found = versions[numbers.indexOf(version)];
  if (found !== undefined) return found;
  const isEarlier = version < (numbers[0] ?? 0);
  return lost > 0 && isEarlier ? damagedVersion(path, version) : noVersion(path, version);
}
