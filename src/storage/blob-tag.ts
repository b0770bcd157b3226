/**
 * Tag of a blob: distinguishes two states of a secret, without the key. It is the first half of the random nonce with which
 * the blob's metadata is sealed, as base64url. It is in the blob's head, which ends with the sealed metadata.
 *
 *   offset  size
 *   0       5     magic, version
 *   5       4     m, length of the metadata box, big endian
 *   9       m     metadata box, of which the first 24 bytes are its nonce (see `workers/crypto/blob.ts`)
 */
const lengthAt = 5;
const nonceAt = 9;
const tagBytes = 12;

/** Bytes of a blob that its tag needs. */
export const tagHeadBytes = nonceAt + tagBytes;

/** Returns the tag of a blob, of which the first bytes are enough; a shorter one has a shorter tag. */
export function blobTag(blob: Uint8Array): string {
  return Buffer.from(blob.subarray(nonceAt, tagHeadBytes)).toString("base64url");
}

/** Returns the end of the head of a blob that begins at `start`, or the end of the bytes where they are shorter. */
export function headEnd(bytes: Uint8Array, start = 0): number {
  let length = 0;
  for (let at = start + lengthAt; at < start + nonceAt; at++) length = length * 256 + (bytes[at] ?? 0);
  return Math.min(start + nonceAt + length, bytes.length);
}
