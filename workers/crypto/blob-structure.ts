/** Structure of a blob, which `blob.ts` draws: where its versions and their boxes are. Needs no key. */
import { base64url, bytesOf, concat, lengthOf, readUint32, uint32, utf8 } from "../memory.js";
import type { Bytes } from "../owned-bytes.js";
import type { BlobFault } from "../protocol.js";
import { nonceBytes, tagBytes } from "./xaes.js";

const magic = utf8("SRVB");
const formatVersion = 2;
const formatByte = bytesOf(formatVersion);
const versionsAt = 5;
const lengthBytes = 4;
const boxesAt = versionsAt + lengthBytes;
const shortestBox = nonceBytes + tagBytes;
const mostVersions = 101;
const etagBytes = 12;

/** The boxes of one version. */
export type SealedVersion = { readonly metadata: Uint8Array; readonly value: Uint8Array };

/** Returns a blob of these boxes, in pieces: of the present, then of the past. */
export function blobOf(
  metadata: readonly Uint8Array[],
  value: readonly Uint8Array[],
  past: readonly SealedVersion[],
): Bytes {
  return concat([magic, formatByte, ...lengthAnd(metadata), ...lengthAnd(value), ...past.flatMap(piecesOf)]);
}

function lengthAnd(box: readonly Uint8Array[]): Uint8Array[] {
  return [uint32(lengthOf(box)), ...box];
}

function piecesOf({ metadata, value }: SealedVersion): Uint8Array[] {
  return [...lengthAnd([metadata]), ...lengthAnd([value])];
}

/** Bytes that a version takes in a blob. */
export function lengthOfVersion({ metadata, value }: SealedVersion): number {
  return 2 * lengthBytes + metadata.length + value.length;
}

/** Whether a blob is of the newest format, of which each version has a number. */
export function isNumbered(blob: Uint8Array): boolean {
  return blob[magic.length] === formatVersion;
}

type SplitBlob = {
  readonly present: SealedVersion;
  /** Length of the blob without its past. */
  readonly presentLength: number;
  /** Newest first. */
  readonly past: readonly SealedVersion[];
  /** Whether nothing follows the last version. */
  readonly isWhole: boolean;
};

/** Splits a blob, without opening anything, up to where its structure is damaged; null when the present is. */
export function splitBlob(blob: Uint8Array): SplitBlob | null {
  if (faultOf(blob, blob.length) !== null) return null;
  return isNumbered(blob) ? splitVersions(blob) : onlyVersion(blob);
}

function onlyVersion(blob: Uint8Array): SplitBlob {
  const end = metadataEnd(blob);
  const present = { metadata: blob.subarray(boxesAt, end), value: blob.subarray(end) };
  return { present, presentLength: blob.length, past: [], isWhole: true };
}

function splitVersions(blob: Uint8Array): SplitBlob | null {
  const versions: SealedVersion[] = [];
  let at = versionsAt;
  while (versions.length < mostVersions) {
    const version = versionAt(blob, at);
    if (version === null) break;
    versions.push(version);
    at += lengthOfVersion(version);
  }
  const [present, ...past] = versions;
  if (present === undefined) return null;
  return { present, presentLength: versionsAt + lengthOfVersion(present), past, isWhole: at === blob.length };
}

function versionAt(blob: Uint8Array, at: number): SealedVersion | null {
  const metadata = boxAt(blob, at);
  const value = metadata && boxAt(blob, at + lengthBytes + metadata.length);
  return value && { metadata, value };
}

function boxAt(blob: Uint8Array, at: number): Uint8Array | null {
  const start = at + lengthBytes;
  const end = start + readUint32(blob, at);
  return end - start >= shortestBox && end <= blob.length ? blob.subarray(start, end) : null;
}

/** Returns the tag by which clients know a version, as `tagOf` in the storage: half of its metadata's nonce. */
export function etagOf(metadataBox: Uint8Array): string {
  return base64url(metadataBox.subarray(0, etagBytes));
}

/** As `etagOf`, of the present of a blob, whose head is enough. */
export function presentEtag(blob: Uint8Array): string {
  return etagOf(blob.subarray(boxesAt));
}

/** Returns the length of a valid blob without its past. */
export function presentEnd(blob: Uint8Array): number {
  return splitBlob(blob)?.presentLength ?? blob.length;
}

/** Returns where the metadata of a valid blob ends. */
export function metadataEnd(blob: Uint8Array): number {
  return boxesAt + readUint32(blob, versionsAt);
}

/** Checks the structure of a blob of this length that begins with `head`; null when nothing is wrong without the key. */
export function faultOf(head: Uint8Array, length: number): BlobFault | null {
  if (head.length < boxesAt) return "length";
  if (!magic.every((byte, i) => head[i] === byte)) return "foreign";
  const format = head[magic.length];
  if (format !== 1 && format !== formatVersion) return "version";
  const behind = (format === 1 ? 0 : lengthBytes) + shortestBox;
  return readUint32(head, versionsAt) >= shortestBox && metadataEnd(head) + behind <= length ? null : "length";
}

/** Returns the box of the present's metadata; a head is enough, the value may be missing. */
export function metadataBox(blob: Uint8Array): Uint8Array | null {
  if (faultOf(blob, Number.POSITIVE_INFINITY) !== null) return null;
  const end = metadataEnd(blob);
  return end <= blob.length ? blob.subarray(boxesAt, end) : null;
}
