/**
 * Blob format: one entry as storage sees it, the present and the earlier versions that are kept. Metadata and value are
 * sealed separately: a list opens no value, and reads nothing behind the present's metadata.
 *
 *   offset  size  content
 *   0       4     magic, "SRVB"
 *   4       1     format version, 2
 *   5       …     versions: the present, then the earlier ones, newest first, at most 100. Each:
 *                   4  m, length of the metadata box, big endian
 *                   m  metadata box: nonce (24) ‖ ciphertext ‖ tag (16), XAES-256-GCM under the master key
 *                   4  v, length of the value box, big endian
 *                   v  value box, the same
 *
 * Format version 1, which is read for ever, has the present alone and no v: its value box goes to the end. The next put
 * writes version 2. An earlier version stays sealed as it was.
 *
 * While the master key is being rotated, each version may be under the old key or the new one.
 *
 * Plaintexts are UTF-8 JSON, so that a reply is a concatenation:
 *   metadata  {"metadata":{…},"createdAt":"…","updatedAt":"…","version":N}, without "version" in format version 1
 *   value     a JSON string as JSON.stringify writes it
 *
 * The AAD binds a box to its vault, part and path, and a value to the metadata it was written with:
 *   "strongroom v1 entry" ‖ vault id (16) ‖ "m" or "v" ‖ length of path (4, big endian) ‖ path ‖ (value) metadata nonce (24)
 */
import { allocate, byteLength, scratchOf, uint32, utf8 } from "../memory.js";
import type { Bytes } from "../owned-bytes.js";
import { blobOf, isNumbered, metadataBox, type SealedVersion, splitBlob } from "./blob-structure.js";
import { type Box, nonceBytes, open, type Sealed, seal, type XaesKey } from "./xaes.js";

const label = utf8("strongroom v1 entry");
const metadataPart = utf8("m");
const valuePart = utf8("v");

/** Opens under no key. */
const noBox = allocate(0);

/** What an unlocked vault seals with. `oldKey`: what it may have been sealed with, while the master key is being rotated. */
export type SealingKey = { readonly masterKey: XaesKey; readonly oldKey: XaesKey | null; readonly vaultId: Bytes };

/** Seals the present, with `past` as it is behind it. */
export function sealBlob(
  key: SealingKey,
  path: string,
  metadata: Uint8Array,
  value: Uint8Array,
  past: readonly SealedVersion[] = [],
): Bytes {
  const [sealedMetadata = [], sealedValue = []] = sealBoxes(key, path, metadata, value);
  return blobOf(sealedMetadata, sealedValue, past);
}

/** Seals a version that goes behind another, into scratch memory. */
export function sealPast(key: SealingKey, path: string, metadata: Uint8Array, value: Uint8Array): SealedVersion {
  const [sealedMetadata = [], sealedValue = []] = sealBoxes(key, path, metadata, value);
  return { metadata: scratchOf(...sealedMetadata), value: scratchOf(...sealedValue) };
}

function sealBoxes(key: SealingKey, path: string, metadata: Uint8Array, value: Uint8Array): Box[] {
  return seal(key.masterKey, [
    { plaintext: metadata, aad: () => metadataAad(key, path) },
    { plaintext: value, aad: ([metadataNonce]) => valueAad(key, path, metadataNonce) },
  ]);
}

export type PathAndBlob = { readonly path: string; readonly blob: Uint8Array };

/** Opens the present's metadata, for which heads are enough, into scratch memory; null where damaged, moved or foreign. */
export function openMetadata(key: SealingKey, blobs: readonly PathAndBlob[]): (Uint8Array | null)[] {
  const sealed = blobs.map(({ path, blob }) => ({ box: metadataBox(blob) ?? noBox, aad: metadataAad(key, path) }));
  return openBoxes(key, sealed).map((metadata, i) => metadata && ofItsFormat(metadata, blobs[i]?.blob));
}

/** Opens the metadata of versions of one path. */
export function openVersionsMetadata(
  key: SealingKey,
  path: string,
  versions: readonly SealedVersion[],
): (Uint8Array | null)[] {
  const aad = metadataAad(key, path);
  return openBoxes(
    key,
    versions.map(({ metadata: box }) => ({ box, aad })),
  );
}

const noVersion: SealedVersion = { metadata: noBox, value: noBox };

export type OpenedVersion = { readonly metadata: Uint8Array; readonly value: Uint8Array };

/** `length`: of the blob without its past. */
type OpenedPresent = OpenedVersion & { readonly length: number };

/** Opens a version into scratch memory; null when it is damaged, moved or foreign. */
export function openVersion(key: SealingKey, path: string, version: SealedVersion): OpenedVersion | null {
  const [metadata, value] = openBoxes(key, boxesOf(key, path, version));
  return metadata && value ? { metadata, value } : null;
}

export function boxesOf(key: SealingKey, path: string, { metadata, value }: SealedVersion): Sealed[] {
  return [
    { box: metadata, aad: metadataAad(key, path) },
    { box: value, aad: valueAad(key, path, metadata.subarray(0, nonceBytes)) },
  ];
}

/** Opens boxes under the master key or the old one, into scratch memory; null for those that open under neither. */
export function openBoxes({ masterKey, oldKey }: SealingKey, sealed: readonly Sealed[]): (Uint8Array | null)[] {
  const opened = open(masterKey, sealed);
  if (oldKey === null || !opened.includes(null)) return opened;
  const older = open(
    oldKey,
    sealed.filter((_, i) => opened[i] === null),
  );
  return opened.map((plaintext) => plaintext ?? older.shift() ?? null);
}

/** Opens the present of a whole blob into scratch memory; null when it is damaged, moved or foreign. */
export function openPresent(key: SealingKey, path: string, blob: Uint8Array): OpenedPresent | null {
  const split = splitBlob(blob);
  if (!split?.isWhole) return null;
  const opened = openVersion(key, path, split.present);
  return opened && ofItsFormat(opened.metadata, blob) && { ...opened, length: split.presentLength };
}

/** As `openPresent`, which is faster for one; the subkeys of all are derived together. */
export function openPresents(key: SealingKey, blobs: readonly PathAndBlob[]): (OpenedPresent | null)[] {
  const splits = blobs.map(({ blob }) => splitBlob(blob));
  const boxes = blobs.flatMap(({ path }, i) => {
    const present = splits[i]?.isWhole === true ? splits[i].present : null;
    return boxesOf(key, path, present ?? noVersion);
  });
  const opened = openBoxes(key, boxes);
  return blobs.map(({ blob }, i) => {
    const [metadata = null, value = null] = opened.slice(2 * i, 2 * i + 2);
    const whole = metadata && value && ofItsFormat(metadata, blob);
    return whole && { metadata, value, length: splits[i]?.presentLength ?? 0 };
  });
}

/** A blob whose format byte was changed could pass for the other format: only version 2 has the number of the version. */
function ofItsFormat(metadata: Uint8Array, blob: Uint8Array | undefined): Uint8Array | null {
  return blob !== undefined && hasNumber(metadata) === isNumbered(blob) ? metadata : null;
}

/** Whether opened metadata ends with the number of its version. */
export function hasNumber(metadata: Uint8Array): boolean {
  return metadata.at(-2) !== 0x22; // the quote after `updatedAt`
}

export function metadataAad(key: SealingKey, path: string): Uint8Array {
  return scratchOf(label, key.vaultId, metadataPart, uint32(byteLength(path)), path);
}

export function valueAad(key: SealingKey, path: string, metadataNonce: Uint8Array = noBox): Uint8Array {
  return scratchOf(label, key.vaultId, valuePart, uint32(byteLength(path)), path, metadataNonce);
}
