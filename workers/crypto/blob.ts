/**
 * Blob format: one entry as storage sees it, the current version and the earlier versions that are kept. Metadata and value are
 * sealed separately: a list opens no value, and reads nothing behind the current version's metadata.
 *
 *   offset  size  content
 *   0       4     magic, "SRVB"
 *   4       1     format version: 2, or 3 where a program that knows only 2 would misread a plaintext
 *   5       …     versions: the current version, then the earlier ones, newest first, at most 100. Each:
 *                   4  m, length of the metadata box, big endian
 *                   m  metadata box: nonce (24) ‖ ciphertext ‖ tag (16), XAES-256-GCM under the master key
 *                   4  v, length of the value box, big endian
 *                   v  value box, the same
 *
 * Format version 1, which is read for ever, has only the current version and no v: its value box goes to the end. The next put
 * writes version 2. An earlier version stays sealed as it was.
 *
 * While the master key is being rotated, each version may be under the old key or the new one.
 *
 * Plaintexts are UTF-8 JSON, except binary values, so that a response is a concatenation:
 *   metadata  {"metadata":{…},"createdAt":"…","updatedAt":"…","version":N}, without "version" in format version 1; in format
 *             version 3 a line feed and a second object follow, the private attributes, which no response contains; it is
 *             {} where there are none, or only earlier versions have any. Of a binary value, "encoding":"base64" comes first;
 *             before it, "deletedAt":"…" of a version that is marked as deleted, and "destroyed":true of a destroyed one
 *   value     a JSON string as JSON.stringify writes it; in format version 3, a binary value is a zero byte and its bytes;
 *             "" of a destroyed version
 *
 * The AAD binds a box to its vault, part and path, and a value to the metadata it was written with:
 *   "strongroom v1 entry" ‖ vault id (16) ‖ "m" or "v" ‖ length of path (4, big endian) ‖ path ‖ (value) metadata nonce (24)
 */
import {
  allocate,
  base64urlOfPart,
  byteLength,
  bytesFrom,
  concat,
  concatScratch,
  readUint32,
  totalLength,
  uint32,
  utf8,
} from "../memory.js";
import type { BlobFault, Bytes } from "../protocol.js";
import { copySecret } from "../registers.js";
import { tagBytes } from "./gcm.js";
import type { KnownBoxes, OpenedBox, Sealed } from "./known-boxes.js";
import { type Box, nonceBytes, open, openBox, openKnown, seal, sealAnew, subkeyAt, type XaesKey } from "./xaes.js";

const magic = utf8("SRVB");
const magicNumber = readUint32(magic, 0);
const formatVersion = 2;
const privateFormat = 3;
const lineFeed = 0x0a;
const versionsAt = 5;
const lengthBytes = 4;
const boxesAt = versionsAt + lengthBytes;
const shortestBox = nonceBytes + tagBytes;
const mostVersions = 101;
const etagBytes = 12;

export type SealedVersion = { readonly metadata: Uint8Array; readonly value: Uint8Array };

/** Returns a blob of these boxes, in pieces: of the current version, then of the earlier ones. */
function joinBlob(
  metadata: readonly Uint8Array[],
  value: readonly Uint8Array[],
  earlier: readonly SealedVersion[],
  format: number = formatVersion,
): Bytes {
  return concat([
    magic,
    bytesFrom(format),
    ...lengthAnd(metadata),
    ...lengthAnd(value),
    ...earlier.flatMap(versionPieces),
  ]);
}

function lengthAnd(box: readonly Uint8Array[]): Uint8Array[] {
  return [uint32(totalLength(box)), ...box];
}

function versionPieces({ metadata, value }: SealedVersion): Uint8Array[] {
  return [...lengthAnd([metadata]), ...lengthAnd([value])];
}

/** Returns a blob with the same current version, and other earlier versions behind it. */
export function withEarlier(blob: Uint8Array, { currentLength }: SplitBlob, earlier: readonly SealedVersion[]): Bytes {
  return concat([blob.subarray(0, currentLength), ...earlier.flatMap(versionPieces)]);
}

/** Bytes that a version takes in a blob. */
export function lengthOfVersion({ metadata, value }: SealedVersion): number {
  return 2 * lengthBytes + metadata.length + value.length;
}

/** Whether a blob is of a format of which each version has a number. */
function isNumbered(blob: Uint8Array): boolean {
  return blob[magic.length] === formatVersion || isPrivate(blob);
}

/** Whether a version in the blob may have private attributes, or a binary value. */
export function isPrivate(blob: Uint8Array): boolean {
  return blob[magic.length] === privateFormat;
}

/** Returns the part of opened metadata that responses contain. */
export function publicPart(metadata: Uint8Array): Uint8Array {
  return metadata.subarray(0, endOfPublic(metadata));
}

function endOfPublic(metadata: Uint8Array): number {
  const end = metadata.indexOf(lineFeed);
  return end < 0 ? metadata.length : end;
}

/** Returns the private attributes of opened metadata, a JSON object; null when it has none. */
export function privatePart(metadata: Uint8Array): Uint8Array | null {
  const end = endOfPublic(metadata);
  return end === metadata.length ? null : metadata.subarray(end + 1);
}

export type SplitBlob = {
  readonly current: SealedVersion;
  /** Length of the blob without its earlier versions. */
  readonly currentLength: number;
  /** Newest first. */
  readonly earlier: readonly SealedVersion[];
  /** Whether nothing follows the last version. */
  readonly isWhole: boolean;
};

/** Splits a blob, without opening anything, up to where its structure is damaged; null when the current version is. */
export function splitBlob(blob: Uint8Array): SplitBlob | null {
  if (blobFault(blob, blob.length) !== null) return null;
  return isNumbered(blob) ? splitVersions(blob) : onlyVersion(blob);
}

/** Returns the earlier versions in a blob; null: there is none. */
export function earlierIn(blob: Uint8Array | null): readonly SealedVersion[] {
  return (blob && splitBlob(blob)?.earlier) ?? [];
}

function onlyVersion(blob: Uint8Array): SplitBlob {
  const end = metadataEnd(blob);
  const current = { metadata: blob.subarray(boxesAt, end), value: blob.subarray(end) };
  return { current, currentLength: blob.length, earlier: [], isWhole: true };
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
  const [current, ...earlier] = versions;
  if (current === undefined) return null;
  return { current, currentLength: versionsAt + lengthOfVersion(current), earlier, isWhole: at === blob.length };
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

/** Returns the tag by which clients know a version, as `blobTag` in the storage: half of its metadata's nonce. */
export function metadataEtag(metadataBox: Uint8Array): string {
  return base64urlOfPart(metadataBox, 0, etagBytes);
}

/** Like `metadataEtag`, for the current version of a blob, whose head is enough. */
export function etagOfCurrent(blob: Uint8Array): string {
  return base64urlOfPart(blob, boxesAt, boxesAt + etagBytes);
}

/** Returns the length of a valid blob without its earlier versions. */
export function endOfCurrent(blob: Uint8Array): number {
  return splitBlob(blob)?.currentLength ?? blob.length;
}

/** Returns where the metadata of a valid blob ends. */
export function metadataEnd(blob: Uint8Array): number {
  return boxesAt + readUint32(blob, versionsAt);
}

/** Checks the structure of a blob of this length that begins with `head`; null when nothing is wrong without the key. */
export function blobFault(head: Uint8Array, length: number): BlobFault | null {
  if (head.length < boxesAt) return "length";
  if (readUint32(head, 0) !== magicNumber) return "foreign";
  const format = head[magic.length];
  if (format !== 1 && format !== formatVersion && format !== privateFormat) return "version";
  const behind = (format === 1 ? 0 : lengthBytes) + shortestBox;
  return readUint32(head, versionsAt) >= shortestBox && metadataEnd(head) + behind <= length ? null : "length";
}

/** Returns the box of the current version's metadata; a head is enough, the value may be missing. */
function metadataBox(blob: Uint8Array): Uint8Array | null {
  if (blobFault(blob, Number.POSITIVE_INFINITY) !== null) return null;
  const end = metadataEnd(blob);
  return end <= blob.length ? blob.subarray(boxesAt, end) : null;
}

const label = utf8("strongroom v1 entry");
const metadataPart = utf8("m");
const valuePart = utf8("v");

/** Opens under no key. */
const noBox = allocate(0);

/** Keys of an unlocked vault. `oldKey`: the previous master key, during a rotation; boxes may still be under it. */
export type SealingKey = {
  readonly masterKey: XaesKey;
  readonly oldKey: XaesKey | null;
  readonly vaultId: Bytes;
  /** Label of the space that the blobs belong to; absent for secrets. A blob of one space does not open in another. */
  readonly label?: Bytes;
};

/** Seals the current version, with the earlier versions as they are behind it. */
export function sealBlob(
  key: SealingKey,
  path: string,
  metadata: Uint8Array,
  value: Uint8Array,
  earlier: readonly SealedVersion[] = [],
): Bytes {
  const [sealedMetadata = [], sealedValue = []] = sealBoxes(key, path, metadata, value);
  const format = privatePart(metadata) === null ? formatVersion : privateFormat;
  const blob = joinBlob(sealedMetadata, sealedValue, earlier, format);
  const box = blob.subarray(boxesAt, metadataEnd(blob));
  key.masterKey.known.keep([{ box, aad: metadataAad(key, path), plaintext: metadata }]);
  return blob;
}

/** Seals a version that goes behind another, into scratch memory. */
export function sealEarlier(key: SealingKey, path: string, metadata: Uint8Array, value: Uint8Array): SealedVersion {
  const [sealedMetadata = [], sealedValue = []] = sealBoxes(key, path, metadata, value);
  return { metadata: concatScratch(...sealedMetadata), value: concatScratch(...sealedValue) };
}

function sealBoxes(key: SealingKey, path: string, metadata: Uint8Array, value: Uint8Array): Box[] {
  return seal(key.masterKey, [
    { plaintext: metadata, aad: () => metadataAad(key, path) },
    { plaintext: value, aad: ([metadataNonce]) => valueAad(key, path, metadataNonce) },
  ]);
}

export type PathAndBlob = { readonly path: string; readonly blob: Uint8Array };

/** Opens the current version's metadata, for which heads are enough, into scratch memory; null where damaged, moved or foreign. */
export function openMetadata(key: SealingKey, blobs: readonly PathAndBlob[]): (Uint8Array | null)[] {
  const sealed = blobs.map(({ path, blob }) => ({ box: metadataBox(blob) ?? noBox, aad: metadataAad(key, path) }));
  return openBoxes(key, sealed, openKnown).map((metadata, i) => metadata && ofItsFormat(metadata, blobs[i]?.blob));
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
    openKnown,
  );
}

export type OpenedVersion = { readonly metadata: Uint8Array; readonly value: Uint8Array };

/** Opens a version into scratch memory; null when it is damaged, moved or foreign. */
export function openVersion(key: SealingKey, path: string, version: SealedVersion): OpenedVersion | null {
  const [metadata = null] = openVersionsMetadata(key, path, [version]);
  const value = metadata && openVersionValue(key, path, version);
  return value && { metadata, value };
}

/** Opens the value of a version into scratch memory; null when it is damaged, moved or foreign. */
export function openVersionValue(key: SealingKey, path: string, version: SealedVersion): Uint8Array | null {
  const [, sealed] = versionBoxes(key, path, version);
  const [value = null] = openBoxes(key, [sealed]);
  return value;
}

export function versionBoxes(key: SealingKey, path: PathText, { metadata, value }: SealedVersion): [Sealed, Sealed] {
  return [
    { box: metadata, aad: metadataAad(key, path) },
    { box: value, aad: valueAad(key, path, metadata.subarray(0, nonceBytes)) },
  ];
}

/** Opens boxes under the master key or the old one, into scratch memory; null for a box that opens under neither. */
export function openBoxes(
  key: SealingKey,
  sealed: readonly Sealed[],
  openUnder: typeof open = open,
): (Uint8Array | null)[] {
  return underEither(key, sealed, openUnder);
}

/** Opens under the old key what the master key does not open. */
function underEither<S, O>(
  { masterKey, oldKey }: SealingKey,
  sealed: readonly S[],
  openUnder: (key: XaesKey, sealed: readonly S[]) => (O | null)[],
): (O | null)[] {
  const opened = openUnder(masterKey, sealed);
  if (oldKey === null || !opened.includes(null)) return opened;
  const others = sealed.filter((_, i) => opened[i] === null);
  const older = openUnder(oldKey, others).values();
  return opened.map((one) => one ?? older.next().value ?? null);
}

/** The current version of a blob, of which the metadata is open. */
export type HalfOpen = {
  readonly metadata: Uint8Array;
  readonly valueLength: number;
  /** Length of the blob without its earlier versions. */
  readonly currentLength: number;
  readonly sealedValue: Sealed;
  /** The value's subkey, in scratch memory. */
  readonly valueKey: Uint8Array;
  /** The value, in scratch memory, where it has opened lately. */
  readonly value: Uint8Array | null;
  /** The metadata's box, where it has not opened lately. */
  readonly decrypted: OpenedBox | null;
  readonly known: KnownBoxes;
};

/**
 * Opens the metadata of the current versions of whole blobs into scratch memory; null for what is damaged, moved or foreign.
 * The subkeys of all of them are derived at once.
 */
export function openHalves(key: SealingKey, blobs: readonly LocatedBlob[]): (HalfOpen | null)[] {
  return underEither(key, blobs, (xaesKey, located) => {
    const { known } = xaesKey;
    const sealed = located.map((one) => sealedHalf(key, one));
    const boxes = sealed.flatMap((half) => (half === null ? [] : [half.metadata, half.value]));
    const found = known.find(boxes);
    const unknown = boxes.filter((_, i) => found[i] === null);
    const subkeys = xaesKey.deriveSubkeys(unknown.map(({ box }) => box.subarray(0, nonceBytes)));
    let [taken, derived] = [0, 0];
    const next = () => {
      const plaintext = found[taken++] ?? null;
      return { plaintext, subkey: plaintext === null ? subkeyAt(subkeys, derived++) : noBox };
    };
    const halves = sealed.map((half) => half && openHalf(known, half, next(), next()));
    if (unknown.length > 0) known.keep(halves.flatMap((half) => half?.decrypted ?? []));
    return halves;
  });
}

type LocatedBlob = { readonly path: PathText; readonly blob: Uint8Array };

type SealedHalf = {
  readonly blob: Uint8Array;
  readonly currentLength: number;
  readonly metadata: Sealed;
  readonly value: Sealed;
};

function sealedHalf(key: SealingKey, { path, blob }: LocatedBlob): SealedHalf | null {
  const split = splitBlob(blob);
  if (!split?.isWhole) return null;
  const [metadata, value] = versionBoxes(key, path, split.current);
  return { blob, currentLength: split.currentLength, metadata, value };
}

/** The plaintext of a box that was opened lately, or else the key that opens it. */
type Opener = { readonly plaintext: Uint8Array | null; readonly subkey: Uint8Array };

function openHalf(known: KnownBoxes, half: SealedHalf, ofMetadata: Opener, ofValue: Opener): HalfOpen | null {
  const { blob, currentLength, metadata: sealed, value } = half;
  const metadata = ofMetadata.plaintext ?? openBox(ofMetadata.subkey, sealed.box, sealed.aad);
  if (metadata === null || ofItsFormat(metadata, blob) === null) return null;
  const decrypted = ofMetadata.plaintext === null ? { ...sealed, plaintext: metadata } : null;
  const valueLength = value.box.length - nonceBytes - tagBytes;
  const { plaintext, subkey: valueKey } = ofValue;
  return { metadata, valueLength, currentLength, sealedValue: value, valueKey, value: plaintext, decrypted, known };
}

/** Opens the value, into `target` of its length if there is one, else into scratch memory; null when it is damaged. */
export function openValue(half: HalfOpen, target: Uint8Array | null = null): Uint8Array | null {
  const { sealedValue, valueKey, value, known } = half;
  if (value !== null) {
    if (target !== null) copySecret(target, value);
    return target ?? value;
  }
  const opened = openBox(valueKey, sealedValue.box, sealedValue.aad, target);
  if (opened !== null) known.keepAgain({ ...sealedValue, plaintext: opened });
  return opened;
}

/** Opens the current version of a whole blob into scratch memory; null when it is damaged, moved or foreign. */
export function openCurrent(key: SealingKey, path: string, blob: Uint8Array): OpenedVersion | null {
  const [half = null] = openHalves(key, [{ path, blob }]);
  const value = half && openValue(half);
  return value && { metadata: half.metadata, value };
}

/**
 * A blob whose format byte was changed could pass for another format: versions 2 and 3 have the number of the version, and 3
 * alone has private attributes.
 */
function ofItsFormat(metadata: Uint8Array, blob: Uint8Array | undefined): Uint8Array | null {
  if (blob === undefined || hasNumber(metadata) !== isNumbered(blob)) return null;
  return (privatePart(metadata) !== null) === isPrivate(blob) ? metadata : null;
}

/** Whether the public part of opened metadata ends with the number of its version. */
export function hasNumber(metadata: Uint8Array): boolean {
  return metadata[endOfPublic(metadata) - 2] !== 0x22; // the quote after `updatedAt`
}

/** A path, or its UTF-8. */
type PathText = string | Uint8Array;

function metadataAad(key: SealingKey, path: PathText): Uint8Array {
  return concatScratch(key.label ?? label, key.vaultId, metadataPart, uint32(byteLength(path)), path);
}

function valueAad(key: SealingKey, path: PathText, metadataNonce: Uint8Array = noBox): Uint8Array {
  return concatScratch(key.label ?? label, key.vaultId, valuePart, uint32(byteLength(path)), path, metadataNonce);
}

/** `blob`: null when nothing was sealed again. `intact`: all that the old key sealed opened. */
type Resealing = { readonly blob: Bytes | null; readonly intact: boolean };

/**
 * Seals again, under the master key, all versions in a blob that the old key sealed. The copy that it returns has the same
 * lengths and tags; what is damaged stays as it is.
 */
export function resealBlob(key: SealingKey, path: string, blob: Uint8Array): Resealing {
  const split = splitBlob(blob);
  if (split === null) return { blob: null, intact: false };
  const versions = [split.current, ...split.earlier];
  const current = openVersionsMetadata({ ...key, oldKey: null }, path, versions);
  const others = versions.filter((_, i) => current[i] === null);
  if (key.oldKey === null || others.length === 0) return { blob: null, intact: split.isWhole && others.length === 0 };
  const older = { ...key, masterKey: key.oldKey, oldKey: null };
  const copy = concat([blob]);
  const put = (box: Uint8Array, offset: number) => copy.set(box, offset - blob.byteOffset);
  const results = others.map((version) => resealVersion(key, older, path, version, put));
  const intact = split.isWhole && results.every((result) => result === "whole");
  return { blob: results.every((result) => result === "nothing") ? null : copy, intact };
}

/** Returns what opened under the old key and is sealed again. `put` gets the offsets of the boxes in their buffer. */
function resealVersion(
  key: SealingKey,
  older: SealingKey,
  path: string,
  { metadata, value }: SealedVersion,
  put: (box: Uint8Array, offset: number) => void,
): "whole" | "metadata" | "nothing" {
  const [described, content] = openBoxes(older, versionBoxes(older, path, { metadata, value }));
  if (!described) return "nothing";
  const box = sealAnew(key.masterKey, metadata, { plaintext: described, aad: () => metadataAad(key, path) });
  put(box, metadata.byteOffset);
  if (!content) return "metadata";
  const aad = () => valueAad(key, path, box.subarray(0, nonceBytes));
  put(sealAnew(key.masterKey, value, { plaintext: content, aad }), value.byteOffset);
  return "whole";
}
