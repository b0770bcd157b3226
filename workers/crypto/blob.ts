/**
 * Blob format: one entry as storage sees it, with metadata and value sealed separately, so that a list never opens a value.
 *
 *   offset  size  content
 *   0       4     magic, "SRVB"
 *   4       1     version, 1
 *   5       4     m, length of the metadata box, big endian
 *   9       m     metadata box: nonce (24) ‖ ciphertext ‖ tag (16), XAES-256-GCM under the master key
 *   9 + m   …     value box, the same, to the end
 *
 * Plaintexts are UTF-8 JSON, so that a reply is a concatenation:
 *   metadata  {"metadata":{…},"createdAt":"…","updatedAt":"…"}
 *   value     a JSON string as JSON.stringify writes it
 *
 * The AAD binds a box to its vault, part and path, and a value to the metadata it was written with:
 *   "strongroom v1 entry" ‖ vault id (16) ‖ "m" or "v" ‖ length of path (4, big endian) ‖ path ‖ (value) metadata nonce (24)
 */
import { allocate, byteLength, bytesOf, concat, readUint32, scratchOf, uint32, utf8 } from "../memory.js";
import type { BlobFault, Bytes } from "../protocol.js";
import { nonceBytes, open, seal, tagBytes, type XaesKey } from "./xaes.js";

const magic = utf8("SRVB");
const version = 1;
const versionByte = bytesOf(version);
const boxesAt = 9;
const shortestBox = nonceBytes + tagBytes;
const label = utf8("strongroom v1 entry");
const metadataPart = utf8("m");
const valuePart = utf8("v");

/** Opens under no key. */
const noBox = allocate(0);

/** What an unlocked vault seals with. */
export type SealingKey = { readonly masterKey: XaesKey; readonly vaultId: Bytes };

export function sealBlob(key: SealingKey, path: string, metadata: Uint8Array, value: Uint8Array): Bytes {
  const [metadataBox = [], valueBox = []] = seal(key.masterKey, [
    { plaintext: metadata, aad: () => metadataAad(key, path) },
    { plaintext: value, aad: ([metadataNonce]) => valueAad(key, path, metadataNonce) },
  ]);
  return concat([magic, versionByte, uint32(metadata.length + shortestBox), ...metadataBox, ...valueBox]);
}

export type PathAndBlob = { readonly path: string; readonly blob: Uint8Array };

/** Opens the metadata of blobs, whose heads are enough, into scratch memory; null where damaged, moved or foreign. */
export function openMetadata(key: SealingKey, blobs: readonly PathAndBlob[]): (Uint8Array | null)[] {
  const sealed = blobs.map(({ path, blob }) => ({ box: metadataBox(blob) ?? noBox, aad: metadataAad(key, path) }));
  return open(key.masterKey, sealed);
}

export type OpenedBlob = { readonly metadata: Uint8Array; readonly value: Uint8Array };

/** Opens a whole blob into scratch memory; null when it is damaged, moved or foreign. */
export function openBlob(key: SealingKey, path: string, blob: Uint8Array): OpenedBlob | null {
  const box = metadataBox(blob);
  if (box === null) return null;
  const [metadata, value] = open(key.masterKey, [
    { box, aad: metadataAad(key, path) },
    { box: blob.subarray(boxesAt + box.length), aad: valueAad(key, path, box.subarray(0, nonceBytes)) },
  ]);
  return metadata && value ? { metadata, value } : null;
}

/** Returns where the metadata of a valid blob ends. */
export function metadataEnd(blob: Uint8Array): number {
  return boxesAt + readUint32(blob, 5);
}

/** Checks the structure of a blob of this length that begins with `head`; null when nothing is wrong without the key. */
export function faultOf(head: Uint8Array, length: number): BlobFault | null {
  if (head.length < boxesAt) return "length";
  if (!magic.every((byte, i) => head[i] === byte)) return "foreign";
  if (head[magic.length] !== version) return "version";
  const metadataLength = readUint32(head, 5);
  return metadataLength >= shortestBox && boxesAt + metadataLength + shortestBox <= length ? null : "length";
}

/** A head is enough: the value may be missing. */
function metadataBox(blob: Uint8Array): Uint8Array | null {
  if (faultOf(blob, Number.POSITIVE_INFINITY) !== null) return null;
  const end = metadataEnd(blob);
  return end <= blob.length ? blob.subarray(boxesAt, end) : null;
}

function metadataAad(key: SealingKey, path: string): Uint8Array {
  return scratchOf(label, key.vaultId, metadataPart, uint32(byteLength(path)), path);
}

function valueAad(key: SealingKey, path: string, metadataNonce: Uint8Array = noBox): Uint8Array {
  return scratchOf(label, key.vaultId, valuePart, uint32(byteLength(path)), path, metadataNonce);
}
