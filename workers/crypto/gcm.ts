/**
 * AES-256-GCM (NIST SP 800-38D) by `node:crypto`, so that no plaintext stays in memory that is not ours.
 */
import { createCipheriv, timingSafeEqual } from "node:crypto";
import { decryptInto, scratch, wipe } from "../memory.js";

export const tagBytes = 16;

/** DANGER: without authTagLength Node accepts tags of 4 bytes. */
const gcm = { authTagLength: tagBytes };

/** Returns ciphertext and tag. */
export function sealGcm(
  key: Uint8Array,
  nonce: Uint8Array,
  plaintext: Uint8Array,
  aad: Uint8Array,
): [Uint8Array, Uint8Array] {
  const cipher = withoutStackTraces(() => createCipheriv("aes-256-gcm", key, nonce, gcm));
  if (aad.length > 0) cipher.setAAD(aad);
  const ciphertext = cipher.update(plaintext);
  cipher.final();
  return [ciphertext, cipher.getAuthTag()];
}

/** Counter, in CTR mode, of the block that encrypts the first plaintext: one more than the tag's. */
const firstCounter = 2;
const blockBytes = 16;

/**
 * AES-256-GCM: returns the plaintext, in `target` of its length if there is one, else in scratch memory; or null, and zeros
 * there, when the tag does not match. The nonce has 96 bits.
 */
export function openGcm(
  key: Uint8Array,
  nonce: Uint8Array,
  ciphertext: Uint8Array,
  tag: Uint8Array,
  aad: Uint8Array,
  target: Uint8Array | null = null,
): Uint8Array | null {
  const opened = target ?? scratch(ciphertext.length);
  const counter = scratch(blockBytes);
  counter.set(nonce);
  counter[blockBytes - 1] = firstCounter;
  const cipher = withoutStackTraces(() => createCipheriv("aes-256-ctr", key, counter));
  decryptInto(opened, cipher, ciphertext);
  cipher.final();
  // The same plaintext under the same nonce has the same tag. A decipher that checked it would leave the plaintext behind.
  const [, expected] = sealGcm(key, nonce, opened, aad);
  if (timingSafeEqual(tag, expected)) return opened;
  wipe(opened); // DANGER: nothing may be read of what is not authentic
  return null;
}

/**
 * Node 24 throws and catches two errors for each key in raw bytes, whose stack traces take most of the time that making a
 * cipher takes. An error that comes out gets its trace here.
 */
function withoutStackTraces<T>(make: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } catch (error) {
    Error.stackTraceLimit = stackTraceLimit;
    if (error instanceof Error) Error.captureStackTrace(error);
    throw error;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
