/**
 * Owns XAES-256-GCM (C2SP specification c2sp.org/XAES-256-GCM): AES-256-GCM under a subkey that is derived for each
 * 24-byte nonce, so that random nonces never run out. Whoever seals anew calls `seal`, which makes its own nonce.
 */
import { createCipheriv, createDecipheriv } from "node:crypto";
import { allocate, bytesOf, concat, randomize, wipe } from "./memory.js";
import type { Bytes } from "./protocol.js";

export const keyBytes = 32;
export const nonceBytes = 24;
export const tagBytes = 16;
const blockBytes = 16;

/** nonce (24) ‖ ciphertext ‖ tag (16), under a fresh random nonce. */
export function seal(key: Bytes, plaintext: Uint8Array, aad: Uint8Array): Bytes {
  const nonce = randomize(allocate(nonceBytes));
  return concat([nonce, sealWithNonce(key, nonce, plaintext, aad)]);
}

/** The plaintext, in memory that the caller wipes; null when the box was not sealed under this key and AAD. */
export function open(key: Bytes, box: Uint8Array, aad: Uint8Array): Bytes | null {
  if (box.length < nonceBytes + tagBytes) return null;
  const nonce = box.subarray(0, nonceBytes);
  const ciphertext = box.subarray(nonceBytes, box.length - tagBytes);
  const tag = box.subarray(box.length - tagBytes);
  const subkey = deriveSubkey(key, nonce);
  try {
    return openGcm(subkey, nonce.subarray(12), ciphertext, tag, aad);
  } finally {
    wipe(subkey);
  }
}

/** ciphertext ‖ tag. DANGER: a nonce used twice under one key gives both plaintexts away; for `seal` and vectors only. */
export function sealWithNonce(key: Bytes, nonce: Uint8Array, plaintext: Uint8Array, aad: Uint8Array): Bytes {
  const subkey = deriveSubkey(key, nonce);
  try {
    return sealGcm(subkey, nonce.subarray(12), plaintext, aad);
  } finally {
    wipe(subkey);
  }
}

/**
 * The AES-256 key for one nonce, as CMAC-based key derivation (NIST SP 800-108r1, counter mode, two blocks).
 * The caller wipes it.
 */
export function deriveSubkey(key: Bytes, nonce: Uint8Array): Bytes {
  const cipher = createCipheriv("aes-256-ecb", key, null).setAutoPadding(false);
  const secrets: Uint8Array[] = [];
  try {
    const l = cipher.update(allocate(blockBytes));
    const k1 = doubled(l);
    const blocks = concat([counterBlock(1, nonce), counterBlock(2, nonce)]);
    for (let i = 0; i < blocks.length; i++) blocks[i] = (blocks[i] ?? 0) ^ (k1[i % blockBytes] ?? 0);
    const encrypted = cipher.update(blocks);
    secrets.push(l, k1, blocks, encrypted);
    return concat([encrypted]);
  } finally {
    cipher.final(); // a cipher that never reaches final() keeps its key schedule until garbage collection
    wipe(...secrets);
  }
}

function counterBlock(counter: number, nonce: Uint8Array): Uint8Array {
  return concat([bytesOf(0, counter, 0x58, 0), nonce.subarray(0, 12)]);
}

/** Multiplication by x in GF(2^128), as in CMAC (NIST SP 800-38B section 6.1). */
function doubled(block: Uint8Array): Bytes {
  const result = allocate(blockBytes);
  for (let i = 0; i < blockBytes; i++) {
    result[i] = ((block[i] ?? 0) << 1) | ((block[i + 1] ?? 0) >> 7);
  }
  // Arithmetic instead of a branch: the top bit of L depends on the key.
  result[blockBytes - 1] = (result[blockBytes - 1] ?? 0) ^ (((block[0] ?? 0) >> 7) * 0x87);
  return result;
}

/** AES-256-GCM, NIST SP 800-38D: ciphertext ‖ tag. */
export function sealGcm(key: Bytes, nonce: Uint8Array, plaintext: Uint8Array, aad: Uint8Array): Bytes {
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(aad);
  const ciphertext = cipher.update(plaintext);
  cipher.final();
  return concat([ciphertext, cipher.getAuthTag()]);
}

/** AES-256-GCM: the plaintext in memory of its own, or null when the tag does not fit. */
export function openGcm(
  key: Bytes,
  nonce: Uint8Array,
  ciphertext: Uint8Array,
  tag: Uint8Array,
  aad: Uint8Array,
): Bytes | null {
  // DANGER: without authTagLength Node accepts tags of 4 bytes.
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(aad).setAuthTag(tag);
  const plaintext = decipher.update(ciphertext);
  try {
    decipher.final();
    return concat([plaintext]);
  } catch {
    return null;
  } finally {
    wipe(plaintext);
  }
}
