/**
 * Owns XAES-256-GCM (C2SP specification c2sp.org/XAES-256-GCM): AES-256-GCM under a subkey that is derived for each
 * 24-byte nonce, so that random nonces never run out. Whoever seals anew calls `seal`, which makes its own nonce.
 */
import { createCipheriv, createDecipheriv } from "node:crypto";
import { allocate, concat, freshNonce, wipe } from "./memory.js";
import type { Bytes } from "./protocol.js";

export const keyBytes = 32;
export const nonceBytes = 24;
export const tagBytes = 16;
const blockBytes = 16;

/** nonce (24) ‖ ciphertext ‖ tag (16), under a fresh random nonce. */
export function seal(key: Bytes, plaintext: Uint8Array, aad: Uint8Array): Bytes {
  const nonce = freshNonce(nonceBytes);
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

const zeroBlock = allocate(blockBytes);

/**
 * The AES-256 key for one nonce, as CMAC-based key derivation (NIST SP 800-108r1, counter mode, two blocks).
 * The caller wipes it.
 */
export function deriveSubkey(key: Bytes, nonce: Uint8Array): Bytes {
  const cipher = createCipheriv("aes-256-ecb", key, null).setAutoPadding(false);
  const secrets: Uint8Array[] = [];
  try {
    const l = cipher.update(zeroBlock);
    const blocks = counterBlocks(nonce);
    secrets.push(l, blocks);
    xorDoubled(blocks, l);
    const encrypted = cipher.update(blocks);
    secrets.push(encrypted);
    return concat([encrypted]);
  } finally {
    cipher.final(); // a cipher that never reaches final() keeps its key schedule until garbage collection
    wipe(...secrets);
  }
}

/** For the counters 1 and 2: counter (2, big endian) ‖ "X" ‖ 0 ‖ nonce's first 12 bytes. */
function counterBlocks(nonce: Uint8Array): Bytes {
  const blocks = allocate(2 * blockBytes);
  for (const counter of [1, 2]) {
    const at = (counter - 1) * blockBytes;
    blocks[at + 1] = counter;
    blocks[at + 2] = 0x58;
    blocks.set(nonce.subarray(0, 12), at + 4);
  }
  return blocks;
}

/** Xors K1 into each block: L multiplied by x in GF(2^128), as in CMAC (NIST SP 800-38B section 6.1). */
function xorDoubled(blocks: Bytes, l: Uint8Array): void {
  // Arithmetic instead of a branch: the top bit of L depends on the key.
  const carry = ((l[0] ?? 0) >> 7) * 0x87;
  for (let i = 0; i < blocks.length; i++) {
    const at = i % blockBytes;
    const doubled = ((l[at] ?? 0) << 1) | ((l[at + 1] ?? 0) >> 7);
    blocks[i] = (blocks[i] ?? 0) ^ doubled ^ (at === blockBytes - 1 ? carry : 0);
  }
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
