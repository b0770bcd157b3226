/** RSA signatures (RFC 8017) of a digest that was computed elsewhere: `node:crypto` signs and verifies messages only. */
import { constants, createHash, type KeyObject, privateEncrypt, publicDecrypt } from "node:crypto";
import { allocate, bytesFrom, concat, equal, freshNonce, uint32 } from "../memory.js";

/** The names that clients use, and those of `node:crypto`. */
export const hashes = { "sha2-256": "sha256", "sha2-384": "sha384", "sha2-512": "sha512" } as const;
export type Hash = (typeof hashes)[keyof typeof hashes];
export const digestBytes: Readonly<Record<Hash, number>> = { sha256: 32, sha384: 48, sha512: 64 };

/** DER of the SHA-2 algorithms' object identifiers up to their last number (RFC 5754 section 2). */
const sha2 = [6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2];
const lastNumbers: Readonly<Record<Hash, number>> = { sha256: 1, sha384: 2, sha512: 3 };
const trailer = 0xbc;

/** RSASSA-PKCS1-v1_5. */
export function signPkcs1(key: KeyObject, hash: Hash, digest: Uint8Array): Uint8Array {
  return privateEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, digestInfo(hash, digest));
}

export function verifyPkcs1(key: KeyObject, hash: Hash, digest: Uint8Array, signature: Uint8Array): boolean {
  const message = recovered(key, signature);
  if (message === null) return false;
  const info = digestInfo(hash, digest);
  const padding = bytesFrom(0, 1, ...Array.from({ length: message.length - info.length - 3 }, () => 0xff), 0);
  return equal(message, concat([padding, info]));
}

/** RSASSA-PSS, with MGF1 of the same hash and a random salt. The modulus has 2048 or 4096 bits. */
export function signPss(key: KeyObject, hash: Hash, digest: Uint8Array, saltLength = digest.length): Uint8Array {
  const length = modulusBytes(key);
  const salt = freshNonce(saltLength);
  const seed = pssHash(hash, digest, salt);
  const block = concat([allocate(length - digest.length - saltLength - 2), bytesFrom(1), salt]);
  xorMask(hash, seed, block);
  return privateEncrypt(
    { key, padding: constants.RSA_NO_PADDING },
    concat([withoutTopBit(block), seed, bytesFrom(trailer)]),
  );
}

/** Accepts a salt of any length. */
export function verifyPss(key: KeyObject, hash: Hash, digest: Uint8Array, signature: Uint8Array): boolean {
  const message = recovered(key, signature);
  if (message === null || message.at(-1) !== trailer || ((message[0] ?? 0) & 0x80) !== 0) return false;
  const seed = message.subarray(message.length - 1 - digest.length, -1);
  const block = concat([message.subarray(0, message.length - 1 - digest.length)]);
  xorMask(hash, seed, block);
  withoutTopBit(block);
  const one = block.findIndex((byte) => byte !== 0);
  return block[one] === 1 && equal(seed, pssHash(hash, digest, block.subarray(one + 1)));
}

/** DigestInfo in DER (RFC 8017 section 9.2, note 1). */
function digestInfo(hash: Hash, digest: Uint8Array): Uint8Array {
  const size = digest.length;
  const head = bytesFrom(0x30, 17 + size, 0x30, 13, ...sha2, lastNumbers[hash], 5, 0, 4, size);
  return concat([head, digest]);
}

function withoutTopBit(block: Uint8Array): Uint8Array {
  block[0] = (block[0] ?? 0) & 0x7f;
  return block;
}

function pssHash(hash: Hash, digest: Uint8Array, salt: Uint8Array): Uint8Array {
  return createHash(hash).update(allocate(8)).update(digest).update(salt).digest();
}

/** MGF1 (RFC 8017 appendix B.2.1). */
function xorMask(hash: Hash, seed: Uint8Array, block: Uint8Array): void {
  for (let at = 0, counter = 0; at < block.length; counter++) {
    const mask = createHash(hash).update(seed).update(uint32(counter)).digest();
    for (const byte of mask.subarray(0, block.length - at)) block[at] = (block[at++] ?? 0) ^ byte;
  }
}

/** Null when the signature is not a number of the modulus' length below it. */
function recovered(key: KeyObject, signature: Uint8Array): Uint8Array | null {
  if (signature.length !== modulusBytes(key)) return null;
  try {
    return publicDecrypt({ key, padding: constants.RSA_NO_PADDING }, signature);
  } catch {
    return null;
  }
}

function modulusBytes({ asymmetricKeyDetails }: KeyObject): number {
  return (asymmetricKeyDetails?.modulusLength ?? 0) / 8;
}
