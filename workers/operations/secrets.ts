/** Operations on secrets: describe blobs for a list, plan a batch, and the writes that put, change, move and copy. */
import { maxOperations } from "../body-limits.js";
import {
  blobFault,
  etagOfCurrent,
  isPrivate,
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
import { concat, fromLatin1 } from "../memory.js";
import type {
  DescribeResult,
  PlannedOperation,
  Refusal,
  RequestOf,
  ResultOf,
  WriteOf,
  WriteResult,
} from "../protocol.js";
import { damaged, noOperations, noSecret } from "../refusals.js";
import type { Context, Writing } from "./context.js";
import {
  contentOfBody,
  contentWith,
  listEntry,
  metadataText,
  openSecret,
  readMetadata,
  sealNext,
  sealResult,
  trashEntry,
  versionContent,
  versionState,
  withAttributes,
  withoutMark,
} from "./entry.js";

export function inspect(_: Context, { blobs }: RequestOf<"inspect">): ResultOf<"inspect"> {
  return { ok: true, faults: blobs.map(({ head, length }) => blobFault(head, length)) };
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

export function put(writing: Writing, { body }: WriteOf<"put">): WriteResult | Refusal {
  const read = writing.readers.put(body);
  return read.ok ? sealNext(writing, contentOfBody(read.fields)) : read;
}

/** A put of the current value with other metadata. */
export function changeMetadata(writing: Writing, { body }: WriteOf<"changeMetadata">): WriteResult | Refusal {
  const read = writing.readers.changeMetadata(body);
  if (!read.ok) return read;
  const current = openSecret(writing.key, writing.path, writing.previous, writing.now);
  return "ok" in current ? current : sealNext(writing, contentWith(current, read.fields));
}

/** Each version keeps its value, metadata, times and number; all are sealed again, because the path is in their AAD. */
export function move({ key, path, previous, now }: Writing, { to }: WriteOf<"move">): WriteResult | Refusal {
  const current = openSecret(key, path, previous, now);
  if ("ok" in current || previous === null) return "ok" in current ? current : noSecret(path);
  const earlier = splitBlob(previous)?.earlier.map((version) => resealed(key, path, to, version)) ?? [];
  if (earlier.includes(null)) return damaged(path, "restore its file from a backup, or delete its earlier versions");
  const content = versionContent(current);
  const { version, attributes, ...times } = readMetadata(current.metadata);
  const metadata = isPrivate(previous)
    ? withAttributes(current.metadata, attributes)
    : metadataText(content, times, version);
  const intact = earlier.filter((sealed) => sealed !== null);
  return sealResult(to, sealBlob(key, to, metadata, content.value, intact), { ...content, version });
}

/** Puts the current value and metadata at the other path, where nothing is. */
export function copy(writing: Writing, { to }: WriteOf<"copy">): WriteResult | Refusal {
  const current = openSecret(writing.key, writing.path, writing.previous, writing.now);
  return "ok" in current ? current : sealNext({ ...writing, path: to, previous: null }, versionContent(current));
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
  for (const [i, { path, blob }] of blobs.entries()) {
    const metadata = opened[i] ?? null;
    if (metadata === null) unreadable.push(path);
    else parts.push(...separated(parts, entryPieces(path, metadata, etagOfCurrent(blob), deletedAt?.[i] ?? null, now)));
  }
  return { ok: true, response: concat(parts), damaged: unreadable };
}

function entryPieces(
  path: string,
  metadata: Uint8Array,
  etag: string,
  deletedAt: number | null,
  now: number,
): (Uint8Array | string)[] {
  if (deletedAt !== null) return trashEntry(path, metadata, etag, deletedAt);
  return versionState(metadata, now) === "kept" ? listEntry(path, withoutMark(metadata), etag) : [];
}

function separated(before: readonly unknown[], entry: readonly (Uint8Array | string)[]): (Uint8Array | string)[] {
  return before.length > 0 && entry.length > 0 ? [",", ...entry] : [...entry];
}

function resealed(key: SealingKey, path: string, to: string, sealed: SealedVersion): SealedVersion | null {
  const opened = openVersion(key, path, sealed);
  return opened && sealEarlier(key, to, opened.metadata, opened.value);
}
