/** File keys of age in X25519 stanzas (C2SP's specification of age), and how age writes recipients. */
import {
  createCipheriv,
  createHmac,
  createPublicKey,
  diffieHellman,
  type KeyObject,
  timingSafeEqual,
} from "node:crypto";
import { bech32 } from "@scure/base";
import { allocate, asBuffer, bytesFrom, concatScratch, decryptInto, scratch, utf8, wipe } from "../memory.js";
import { hexBytes } from "./key-types.js";

/** Length of a share, and of a wrapped file key with its tag. */
export const stanzaPartBytes = 32;

const prefix = "age";
const fileKeyBytes = 16;
const info = utf8("age-encryption.org/v1/X25519");
/** SPKI up to the 32 public bytes (RFC 8410). */
const spkiPrefix = hexBytes("302a300506032b656e032100");
/** Each wrapping key is used once. */
const nonce = allocate(12);
/** Block counter of the cipher, little endian, and the nonce: the block before makes the key of the tag (RFC 8439 section 2.8). */
const firstBlock = allocate(16);
firstBlock[0] = 1;

export function recipientText(publicKey: Uint8Array): string {
  return bech32.encodeFromBytes(prefix, publicKey);
}

/** Returns the file key, in scratch memory; null when the stanza is damaged or for another recipient. */
export function unwrapFileKey(
  identity: KeyObject,
  recipient: string,
  share: Uint8Array,
  wrapped: Uint8Array,
): Uint8Array | "low order" | null {
  const secret = sharedSecret(identity, share);
  if (secret === null) return "low order";
  const salt = concatScratch(share, bech32.decodeToBytes(recipient).bytes);
  const key = wrappingKey(salt, secret);
  wipe(secret);
  try {
    return openChaCha(key, wrapped.subarray(0, fileKeyBytes), wrapped.subarray(fileKeyBytes));
  } finally {
    wipe(key);
  }
}

/** Returns X25519 of both; null for a share of low order, of which OpenSSL makes none. */
function sharedSecret(privateKey: KeyObject, share: Uint8Array): Uint8Array | null {
  const der = asBuffer(concatScratch(spkiPrefix, share));
  const publicKey = createPublicKey({ key: der, format: "der", type: "spki" });
  try {
    return diffieHellman({ privateKey, publicKey });
  } catch {
    return null;
  }
}

/** HKDF-SHA256 of one block (RFC 5869). DANGER: `hkdfSync` keeps a copy of its input. */
function wrappingKey(salt: Uint8Array, secret: Uint8Array): Uint8Array {
  const extracted = createHmac("sha256", salt).update(secret).digest();
  try {
    return createHmac("sha256", extracted).update(info).update(bytesFrom(1)).digest();
  } finally {
    wipe(extracted);
  }
}

/** ChaCha20-Poly1305 under a nonce of zeros; null when the tag does not match. As in `openGcm`, no decipher sees it. */
function openChaCha(key: Uint8Array, ciphertext: Uint8Array, tag: Uint8Array): Uint8Array | null {
  const opened = scratch(ciphertext.length);
  const cipher = createCipheriv("chacha20", key, firstBlock);
  decryptInto(opened, cipher, ciphertext);
  cipher.final();
  const sealing = createCipheriv("chacha20-poly1305", key, nonce, { authTagLength: tag.length });
  sealing.update(opened);
  sealing.final();
  if (timingSafeEqual(tag, sealing.getAuthTag())) return opened;
  wipe(opened); // DANGER: nothing may be read of what is not authentic
  return null;
}
