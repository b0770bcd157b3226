/** Operations on secrets: seal a put's body, describe blobs for a list, and the steps of a batch. */
import { maxOperations } from "../body-limits.js";
import {
  etagOfCurrent,
  faultOf,
  isPrivate,
  metadataEnd,
  openMetadata,
  openVersion,
  type PathAndBlob,
  type SealedVersion,
  type SealingKey,
  sealBlob,
  sealEarlier,
  splitBlob,
} from "../crypto/blob.js";
import { readElements } from "../json/json-reader.js";
import { concat, fromLatin1, wipe } from "../memory.js";
import type { DescribeResult, PlannedOperation, RequestOf, ResultOf } from "../protocol.js";
import { damaged, noOperations, noSecret } from "../refusals.js";
import type { Context } from "./context.js";
import {
  contentOf,
  contentOfBody,
  contentWith,
  listEntry,
  metadataText,
  openSecret,
  readMetadata,
  sealNext,
  sealResult,
  stateOf,
  trashEntry,
  withAttributes,
  withoutMark,
} from "./entry.js";

export function inspect(_: Context, { blobs }: RequestOf<"inspect">): ResultOf<"inspect"> {
  return { ok: true, faults: blobs.map(({ head, length }) => faultOf(head, length)) };
}

export function seal(
  { keyring, readers, settings }: Context,
  { path, body, previous, now, reread }: RequestOf<"seal">,
): ResultOf<"seal"> {
  try {
    return keyring.withKey((key) => {
      const read = readers.put(body);
      if (!read.ok) return read;
      const place = { path, previous: typeof previous === "string" ? fromLatin1(previous) : previous, now, reread };
      return sealNext(key, place, contentOfBody(read.fields), settings);
    });
  } finally {
    if (body.buffer instanceof ArrayBuffer) wipe(body); // a shared one is wiped by its sender, which may ask again
  }
}

export function describe(
  { keyring, now }: Context,
  { paths, heads, deletedAt }: RequestOf<"describe">,
): ResultOf<"describe"> {
  return keyring.withKey((key) => {
    const blobs = paths.map((path, i) => ({ path, blob: fromLatin1(heads[i] ?? "") }));
    return describeBlobs(key, blobs, deletedAt ?? null, now);
  });
}

/** Checks a batch's body. The values stay in the body, which `seal` reads. */
export function plan({ keyring, readers }: Context, { body }: RequestOf<"plan">): ResultOf<"plan"> {
  return keyring.withKey(() => {
    const elements = readElements(body, "operations", maxOperations);
    if (elements === null) return noOperations;
    const operations: PlannedOperation[] = [];
    for (const [index, { start, end }] of elements.entries()) {
      const read = readers.operation(body.subarray(start, end));
      if (!read.ok) return { ...read, index };
      const { kind, path, to, trashReplaced = false, ifMatch, ifNoneMatch } = read.fields;
      const conditions = { ifMatch: ifMatch?.toString() ?? null, ifNoneMatch: ifNoneMatch?.toString() ?? null };
      const target = { to: to?.toString() ?? null, trashReplaced };
      operations.push({ kind, path: path.toString(), ...target, ...conditions, start, end });
    }
    return { ok: true, operations };
  });
}

/** Each version keeps its value, metadata, times and number; all are sealed again, because the path is in their AAD. */
export function move({ keyring, now }: Context, { path, to, blob }: RequestOf<"move">): ResultOf<"move"> {
  return keyring.withKey((key) => {
    const current = openSecret(key, path, blob, now);
    if ("ok" in current) return current;
    const earlier = splitBlob(blob)?.earlier.map((version) => resealed(key, path, to, version)) ?? [];
    if (earlier.includes(null)) return damaged(path, "restore its file from a backup, or delete its earlier versions");
    const content = contentOf(current);
    const { version, attributes, ...times } = readMetadata(current.metadata);
    const metadata = isPrivate(blob)
      ? withAttributes(current.metadata, attributes)
      : metadataText(content, times, version);
    const intact = earlier.filter((sealed) => sealed !== null);
    const moved = sealBlob(key, to, metadata, content.value, intact);
    return sealResult(to, moved, { ...content, version });
  });
}

/** A put of the current value with other metadata. The body is checked also when there is no secret. */
export function changeMetadata(
  { keyring, readers, settings }: Context,
  { path, body, blob, now, reread }: RequestOf<"changeMetadata">,
): ResultOf<"changeMetadata"> {
  return keyring.withKey((key) => {
    const read = readers.changeMetadata(body);
    if (!read.ok) return read;
    if (blob === null) return noSecret(path);
    const current = openSecret(key, path, blob, now);
    if ("ok" in current) return current;
    return sealNext(key, { path, previous: blob, now, reread }, contentWith(current, read.fields), settings);
  });
}

/** As a put of the current value and metadata at the other path, where nothing is. */
export function copy({ keyring, settings }: Context, { path, to, blob, now }: RequestOf<"copy">): ResultOf<"copy"> {
  return keyring.withKey((key) => {
    const current = openSecret(key, path, blob, now);
    if ("ok" in current) return current;
    return sealNext(key, { path: to, previous: null, now }, contentOf(current), settings);
  });
}

/** @param deletedAt of secrets in the trash, null for others: one whose current version is deleted or destroyed is left out */
function describeBlobs(
  key: SealingKey,
  blobs: readonly PathAndBlob[],
  deletedAt: readonly number[] | null,
  now: number,
): DescribeResult {
  const opened = openMetadata(key, blobs);
  const parts: (Uint8Array | string)[] = [];
  const unreadable: string[] = [];
  const lengths: number[] = [];
  for (const [i, { path, blob }] of blobs.entries()) {
    const metadata = opened[i] ?? null;
    lengths.push(metadata === null ? 0 : metadataEnd(blob));
    if (metadata === null) unreadable.push(path);
    else parts.push(...separated(parts, entryOf(path, metadata, etagOfCurrent(blob), deletedAt?.[i] ?? null, now)));
  }
  return { ok: true, response: concat(parts), damaged: unreadable, lengths };
}

function entryOf(
  path: string,
  metadata: Uint8Array,
  etag: string,
  deletedAt: number | null,
  now: number,
): (Uint8Array | string)[] {
  if (deletedAt !== null) return trashEntry(path, metadata, etag, deletedAt);
  return stateOf(metadata, now) === "kept" ? listEntry(path, withoutMark(metadata), etag) : [];
}

function separated(before: readonly unknown[], entry: readonly (Uint8Array | string)[]): (Uint8Array | string)[] {
  return before.length > 0 && entry.length > 0 ? [",", ...entry] : [...entry];
}

function resealed(key: SealingKey, path: string, to: string, sealed: SealedVersion): SealedVersion | null {
  const opened = openVersion(key, path, sealed);
  return opened && sealEarlier(key, to, opened.metadata, opened.value);
}
