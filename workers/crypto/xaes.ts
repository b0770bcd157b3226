/**
 * XAES-256-GCM (C2SP specification, c2sp.org/XAES-256-GCM): AES-256-GCM under a subkey derived for each 24-byte nonce, so
 * that random nonces never run out. `seal` makes its own nonces.
 */
import { createDecipheriv, type Decipher } from "node:crypto";
import { allocate, concat, concatScratch, freshMask, freshNonce, scratch, wipe } from "../memory.js";
import type { Bytes } from "../protocol.js";
import { openGcm, sealGcm, tagBytes } from "./gcm.js";
import { giveBackKnownBoxes, type KnownBoxes, type Sealed, takeKnownBoxes } from "./known-boxes.js";

const keyBytes = 32;
export const nonceBytes = 24;
const blockBytes = 16;
/** Bytes of the nonce, or of the name of another use, in a block that derives a key. */
const useBytes = 12;
const zeroBlock = allocate(blockBytes);
/** Keys that are derived at once. */
const mostDerived = 256;

/** "X", as XAES prescribes, and "K" for other uses. */
const xaesLabel = 0x58;
const otherLabel = 0x4b;

/**
 * A key that seals and opens, held only in OpenSSL's AES key schedule, out of JavaScript's reach. It is reused, because
 * making a cipher costs as much as a whole small GCM.
 */
export class XaesKey {
  readonly #cipher: Decipher;
  readonly #k1: Bytes;
  #known: KnownBoxes | null = null;

  /** Wipes the 32 bytes that it is given. */
  constructor(key: Bytes) {
    try {
      this.#cipher = createDecipheriv("aes-256-cfb", key, zeroBlock);
    } finally {
      wipe(key);
    }
    const l = this.#cipher.update(zeroBlock);
    this.#k1 = doubled(l);
    wipe(l);
  }

  /** Wipes the key. DANGER: a cipher that never reaches final() keeps its key schedule until garbage collection. */
  end(): void {
    this.#cipher.final();
    wipe(this.#k1);
    if (this.#known !== null) giveBackKnownBoxes(this.#known);
    this.#known = null;
  }

  /** Boxes that have opened under this key. */
  get known(): KnownBoxes {
    this.#known ??= takeKnownBoxes();
    return this.#known;
  }

  /**
   * Derives the AES-256 keys for these nonces, concatenated, by CMAC (NIST SP 800-108r1, counter mode, two blocks). The
   * caller wipes them.
   */
  deriveSubkeys(nonces: readonly Uint8Array[]): Uint8Array {
    return this.#derive(nonces, xaesLabel);
  }

  /**
   * Derives a 256-bit key for another use than sealing, in scratch memory: as a subkey, but with another label, so that
   * no nonce leads to it. `use`: exactly 12 ASCII characters, all that fits.
   */
  deriveKey(use: string): Uint8Array {
    if (use.length !== useBytes) throw new Error("the use of a derived key does not have 12 characters");
    return this.#derive([concatScratch(use)], otherLabel);
  }

  #derive(contexts: readonly Uint8Array[], label: number): Uint8Array {
    const keys = scratch(contexts.length * keyBytes);
    for (let at = 0; at < contexts.length; at += mostDerived) {
      this.#deriveInto(keys.subarray(at * keyBytes), contexts.slice(at, at + mostDerived), label);
    }
    return keys;
  }

  /**
   * Encrypts two blocks for each context. CFB decrypts a block by xor with the encryption of the block before it: each of
   * ours has a random one behind it, so that the output, of which Node frees a copy, is their keys xor random bytes, which
   * are wiped. One more takes the place of our last one in the cipher's memory.
   */
  #deriveInto(keys: Uint8Array, contexts: readonly Uint8Array[], label: number): void {
    const blocks = freshMask((4 * contexts.length + 1) * blockBytes);
    for (const [i, context] of contexts.entries()) {
      this.#writeBlock(blocks, 4 * i * blockBytes, 1, label, context);
      this.#writeBlock(blocks, (4 * i + 2) * blockBytes, 2, label, context);
    }
    const output = this.#cipher.update(blocks);
    for (let key = 0, at = blockBytes; at < output.length; at += 2 * blockBytes) {
      for (let i = 0; i < blockBytes; i++) keys[key++] = (output[at + i] ?? 0) ^ (blocks[at + i] ?? 0);
    }
    wipe(blocks);
  }

  /** K1 xor (counter (2, big endian) ‖ label ‖ 0 ‖ the context's first 12 bytes). */
  #writeBlock(blocks: Uint8Array, at: number, counter: number, label: number, context: Uint8Array): void {
    const k1 = this.#k1;
    blocks[at] = k1[0] ?? 0;
    blocks[at + 1] = (k1[1] ?? 0) ^ counter;
    blocks[at + 2] = (k1[2] ?? 0) ^ label;
    blocks[at + 3] = k1[3] ?? 0;
    for (let i = 0; i < useBytes; i++) blocks[at + 4 + i] = (k1[4 + i] ?? 0) ^ (context[i] ?? 0);
  }
}

/** K1: L multiplied by x in GF(2^128), as in CMAC (NIST SP 800-38B section 6.1). Useless without the key. */
function doubled(l: Uint8Array): Bytes {
  const k1 = allocate(blockBytes);
  // Arithmetic instead of a branch: the top bit of L depends on the key.
  const carry = ((l[0] ?? 0) >> 7) * 0x87;
  for (let i = 0; i < blockBytes; i++) k1[i] = ((l[i] ?? 0) << 1) | ((l[i + 1] ?? 0) >> 7);
  k1[blockBytes - 1] = (k1[blockBytes - 1] ?? 0) ^ carry;
  return k1;
}

/** A plaintext and its AAD, which may depend on the nonces of all boxes that are sealed together. */
type Part = { readonly plaintext: Uint8Array; readonly aad: (nonces: readonly Uint8Array[]) => Uint8Array };

/** The pieces of a box, in order: nonce (24) ‖ ciphertext ‖ tag (16). */
export type Box = readonly Uint8Array[];

/** Seals under fresh random nonces. */
export function seal(key: XaesKey, parts: readonly Part[]): Box[] {
  const nonces = parts.map(() => freshNonce(nonceBytes));
  const subkeys = key.deriveSubkeys(nonces);
  try {
    return parts.map(({ plaintext, aad }, i) => {
      const nonce = nonces[i] ?? zeroBlock;
      return [nonce, ...sealGcm(subkeyAt(subkeys, i), nonce.subarray(12), plaintext, aad(nonces))];
    });
  } finally {
    wipe(subkeys);
  }
}

/** Returns the plaintexts in scratch memory; null for a box that was not sealed under this key and AAD. */
export function open(key: XaesKey, sealed: readonly Sealed[]): (Uint8Array | null)[] {
  const subkeys = key.deriveSubkeys(sealed.map(({ box }) => box.subarray(0, nonceBytes)));
  try {
    return sealed.map(({ box, aad }, i) => openBox(subkeyAt(subkeys, i), box, aad));
  } finally {
    wipe(subkeys);
  }
}

/** Like `open`, but does not decrypt a small box again that was opened lately. */
export function openKnown(key: XaesKey, sealed: readonly Sealed[]): (Uint8Array | null)[] {
  const { known } = key;
  const found = known.find(sealed);
  const others = sealed.filter((_, i) => found[i] === null);
  if (others.length === 0) return found;
  const opened = open(key, others);
  known.keep(others.flatMap((other, i) => (opened[i] ? [{ ...other, plaintext: opened[i] }] : [])));
  const rest = opened.values();
  return found.map((plaintext) => plaintext ?? rest.next().value ?? null);
}

/** Returns the plaintext of a box, in `target` of its length if there is one, else in scratch memory; null as in `open`. */
export function openBox(
  subkey: Uint8Array,
  box: Uint8Array,
  aad: Uint8Array,
  target: Uint8Array | null = null,
): Uint8Array | null {
  if (box.length < nonceBytes + tagBytes) return null;
  const nonce = box.subarray(12, nonceBytes);
  const ciphertext = box.subarray(nonceBytes, box.length - tagBytes);
  return openGcm(subkey, nonce, ciphertext, box.subarray(box.length - tagBytes), aad, target);
}

/**
 * Seals what was sealed before under another key. The nonce keeps its first half, by which a secret's tag is known; the
 * second half is fresh.
 * DANGER: not the whole nonce: an owner of the other key could have chosen it, equal to a nonce in use under this key.
 */
export function sealAnew(key: XaesKey, before: Uint8Array, { plaintext, aad }: Part): Uint8Array {
  const nonce = concatScratch(before.subarray(0, 12), freshNonce(nonceBytes - 12));
  return concatScratch(nonce, sealWithNonce(key, nonce, plaintext, aad([nonce])));
}

/** Returns ciphertext ‖ tag. DANGER: for test vectors and `sealAnew` only. A nonce used twice under one key reveals both plaintexts. */
export function sealWithNonce(key: XaesKey, nonce: Uint8Array, plaintext: Uint8Array, aad: Uint8Array): Bytes {
  const subkey = key.deriveSubkeys([nonce]);
  try {
    return concat(sealGcm(subkey, nonce.subarray(12), plaintext, aad));
  } finally {
    wipe(subkey);
  }
}

export function subkeyAt(subkeys: Uint8Array, i: number): Uint8Array {
  return subkeys.subarray(i * keyBytes, (i + 1) * keyBytes);
}
