/** Operations on the versions of a secret: list them, open one, make one the newest, remove the earlier ones, check them all. */
import {
  etagOf,
  openCurrent,
  openMetadata,
  openVersion as openSealed,
  openVersionsMetadata,
  type SealedVersion,
  type SealingKey,
  splitBlob,
} from "../crypto/blob.js";
import { concat } from "../memory.js";
import type { Refusal, ReplyOf, RequestOf } from "../protocol.js";
import { damaged, damagedVersion, noSecret, noVersion } from "../refusals.js";
import { forTransit } from "../transit/key-format.js";
import type { Context } from "./context.js";
import { contentOf, getReply, readMetadata, sealNext, versionEntry } from "./entry.js";

export function history({ keyring }: Context, { path, blob }: RequestOf<"history">): ReplyOf<"history"> {
  return keyring.withKey((key) => {
    const known = knownVersions(key, path, blob);
    return known === null ? damaged(path) : { ok: true, reply: historyReply(path, known) };
  });
}

export function openVersion(
  { keyring }: Context,
  { path, blob, version }: RequestOf<"openVersion">,
): ReplyOf<"openVersion"> {
  return keyring.withKey((key) => {
    const found = findVersion(key, path, blob, version);
    if (!("sealed" in found)) return found;
    const opened = openSealed(key, path, found.sealed);
    if (opened === null) return damagedVersion(path, version);
    return { ok: true, reply: concat(getReply(path, opened.value, opened.metadata, etagOf(found.sealed.metadata))) };
  });
}

export function undo(
  { keyring, readers, settings }: Context,
  { path, body, blob, now }: RequestOf<"undo">,
): ReplyOf<"undo"> {
  return keyring.withKey((key) => {
    const read = readers.undo(body);
    if (!read.ok) return read;
    if (blob === null) return noSecret(path);
    const { version } = read.fields;
    const found = findVersion(key, path, blob, version);
    if (!("sealed" in found)) return found;
    const opened = openSealed(key, path, found.sealed);
    return opened
      ? sealNext(key, { path, previous: blob, now }, contentOf(opened), settings)
      : damagedVersion(path, version);
  });
}

export function prune({ keyring }: Context, { path, blob }: RequestOf<"prune">): ReplyOf<"prune"> {
  return keyring.withKey((key) => {
    const split = splitBlob(blob);
    const known = split && knownVersions(key, path, blob);
    if (split === null || known === null) return damaged(path);
    return { ok: true, blob: concat([blob.subarray(0, split.currentLength)]), removed: split.earlier.length };
  });
}

export function check({ keyring }: Context, { path, blob, isKey }: RequestOf<"check">): ReplyOf<"check"> {
  return keyring.withKey((vaultKey) => {
    const key = isKey ? forTransit(vaultKey) : vaultKey;
    const earlier = splitBlob(blob)?.earlier ?? [];
    const opens = openCurrent(key, path, blob) && earlier.every((version) => openSealed(key, path, version));
    return opens ? { ok: true } : damaged(path);
  });
}

/** `metadata`: opened. */
type Known = { readonly sealed: SealedVersion; readonly metadata: Uint8Array };

/** `damaged`: number of earlier versions whose metadata does not open; a damaged structure counts as one. */
type KnownVersions = { readonly versions: readonly Known[]; readonly damaged: number };

/** Returns the versions whose metadata opens, the current one first; null when that one does not open. */
function knownVersions(key: SealingKey, path: string, blob: Uint8Array): KnownVersions | null {
  const split = splitBlob(blob);
  const [current = null] = openMetadata(key, [{ path, blob }]);
  if (split === null || current === null) return null;
  const all = [split.current, ...split.earlier];
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
  const isEarlier = version < (numbered[0]?.version ?? 0);
  return known.damaged > 0 && isEarlier ? damagedVersion(path, version) : noVersion(path, version);
}
