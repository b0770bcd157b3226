/**
 * Tag of a blob: distinguishes two states of a secret, without the key. It is the first half of the random nonce with which
 * the blob's metadata is sealed, at a fixed place (see `workers/crypto/blob.ts`), as base64url.
 *
 *   offset  size
 *   0       9     magic, version, length of the metadata box
 *   9       24    nonce of the metadata box
 */
const nonceAt = 9;
const tagBytes = 12;

/** Bytes of a blob that its tag needs. */
export const tagHeadBytes = nonceAt + tagBytes;

/** Returns the tag of a blob, of which the first bytes are enough; a shorter one has a shorter tag. */
export function blobTag(blob: Uint8Array): string {
  return Buffer.from(blob.subarray(nonceAt, tagHeadBytes)).toString("base64url");
}
