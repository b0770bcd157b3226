/** The next version of a secret: its number and times, and which earlier versions it keeps. */
import { openMetadata, openVersion, type SealingKey, sealBlob } from "../crypto/blob.js";
import { lengthOfVersion, metadataEnd, presentEtag, type SealedVersion, splitBlob } from "../crypto/blob-structure.js";
import { equal } from "../memory.js";
import type { ReplyOf } from "../protocol.js";
import { damaged } from "../refusals.js";
import type { HistoryLimits } from "../worker-settings.js";
import { metadataText, nextTimes, putReply, readMetadata } from "./entry.js";

/** `value`: as it is sealed, a JSON string; `valueBytes`: its length in UTF-8; `supplied`: the `metadata` object. */
export type Content = { readonly value: Uint8Array; readonly valueBytes: number; readonly supplied: string };

/** Where and when it is stored. `previous`: the blob that it replaces, a head without history. */
export type Place = { readonly path: string; readonly previous: Uint8Array | null; readonly now: number };

/** Seals a secret's next version; the same value and metadata make no new version, but new times and a new tag. */
export function sealNext(key: SealingKey, place: Place, content: Content, limits: HistoryLimits): ReplyOf<"seal"> {
  const { path, previous, now } = place;
  const [opened = null] = previous === null ? [] : openMetadata(key, [{ path, blob: previous }]);
  if (previous !== null && opened === null) return damaged(path, "delete it before you store a new one");
  const last = opened && readMetadata(opened);
  const { past, isSame } = history(key, place, content, last && JSON.stringify(last.metadata), limits);
  const version = (last?.version ?? 0) + (isSame ? 0 : 1);
  const { value, valueBytes, supplied } = content;
  const blob = sealBlob(key, path, metadataText(supplied, nextTimes(now, last), version), value, past);
  const reply = putReply(path, valueBytes, supplied, version, presentEtag(blob));
  return { ok: true, blob, headLength: metadataEnd(blob), reply };
}

type History = { readonly past: readonly SealedVersion[]; readonly isSame: boolean };

/** A present whose value does not open is not kept, and an earlier version is kept unopened: damage must not refuse a put. */
function history(
  key: SealingKey,
  { path, previous }: Place,
  content: Content,
  lastSupplied: string | null,
  limits: HistoryLimits,
): History {
  const split = previous === null || limits.keepVersions === 0 ? null : splitBlob(previous);
  if (split === null) return { past: [], isSame: false };
  const replaced = openVersion(key, path, split.present);
  const isSame = replaced !== null && lastSupplied === content.supplied && equal(replaced.value, content.value);
  const earlier = replaced === null || isSame ? split.past : [split.present, ...split.past];
  return { past: kept(earlier, limits), isSame };
}

/** Returns the newest, and of the others, newest first, as many as fit both limits. */
function kept(
  versions: readonly SealedVersion[],
  { keepVersions, keepVersionBytes }: HistoryLimits,
): readonly SealedVersion[] {
  let bytes = 0;
  const fits = (version: SealedVersion) => {
    bytes += lengthOfVersion(version);
    return bytes <= keepVersionBytes;
  };
  const end = versions.findIndex((version, i) => i >= keepVersions || (!fits(version) && i > 0));
  return end < 0 ? versions : versions.slice(0, end);
}
