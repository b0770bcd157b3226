/** Slots of a header: KEKs of a passphrase or a key, and the master key wrapped under each. */
import { createHmac, scrypt, timingSafeEqual } from "node:crypto";
import { allocate, allocateMapped, concat, mapped, randomize, takeOver, utf8, wipe } from "../memory.js";
import type { Bytes } from "../protocol.js";
import {
  checkedText,
  type Header,
  type Kdf,
  type KeySlot,
  masterKeyBytes,
  type PassphraseSlot,
  type Slot,
  saltBytes,
  scryptShape,
} from "./header.js";
import { isKeyText, keyBytes, readKeyText } from "./key-text.js";

/** A KEK that belongs to a slot; the caller wipes it. */
export type Access = { readonly slot: Slot; readonly kek: Bytes };

/** Whether a text is a key's by its form, and mistyped. A vault without keys takes every text for a passphrase. */
export function isMistypedKey(header: Header, text: Uint8Array): boolean {
  if (!header.slots.some(isKeySlot)) return false;
  const key = allocateMapped(keyBytes);
  const wrong = readKeyText(text, key);
  wipe(key);
  return wrong !== null && wrong.length > 0;
}

/** Returns the slot that a passphrase or a key's text opens, and its KEK; null when there is none. */
export async function findAccess(header: Header, text: Uint8Array): Promise<Access | null> {
  const keySlots = header.slots.filter(isKeySlot);
  if (keySlots.length > 0 && isKeyText(text)) return accessByKey(header, keySlots, text);
  const slot = passphraseSlot(header);
  if (slot === null) return null;
  const kek = await deriveKek(text, slot.kdf);
  if (fits(header, slot, kek)) return { slot, kek };
  wipe(kek);
  return null;
}

export function passphraseSlot({ slots }: Header): PassphraseSlot | null {
  return slots.find((slot) => slot.kind === "passphrase") ?? null;
}

export function isKeySlot(slot: Slot): slot is KeySlot {
  return slot.kind === "key";
}

function accessByKey(header: Header, slots: readonly KeySlot[], text: Uint8Array): Access | null {
  const key = allocateMapped(keyBytes);
  try {
    return readKeyText(text, key)?.length === 0 ? accessByKeyBytes(header, slots, key) : null;
  } finally {
    wipe(key);
  }
}

function accessByKeyBytes(header: Header, slots: readonly KeySlot[], key: Uint8Array): Access | null {
  for (const slot of slots) {
    const kek = kekOfKey(key, slot.salt);
    if (fits(header, slot, kek)) return { slot, kek };
    wipe(kek);
  }
  return null;
}

/** A slot that will be wrapped; the caller wipes the KEK. */
export type Wrapping = { readonly plan: SlotPlan; readonly kek: Bytes };

/** Returns the slot of a key, to be wrapped under a new salt; null when its text opens none. */
export function keyWrapping(header: Header, text: Uint8Array): Wrapping | null {
  const key = allocateMapped(keyBytes);
  try {
    if (readKeyText(text, key)?.length !== 0) return null;
    const access = accessByKeyBytes(header, header.slots.filter(isKeySlot), key);
    wipe(access?.kek);
    if (access?.slot.kind !== "key") return null;
    const salt = newSalt();
    return { plan: { ...access.slot, salt }, kek: kekOfKey(key, salt) };
  } finally {
    wipe(key);
  }
}

/** Derives the KEK by scrypt. The caller wipes it. */
export async function deriveKek(passphrase: Uint8Array, { logN, salt }: Kdf): Promise<Bytes> {
  return mapped(await derive(passphrase, salt, { logN, ...scryptShape }));
}

/** The caller wipes it. */
export function kekOfKey(key: Uint8Array, salt: Bytes): Bytes {
  return mapped(hmac(key, utf8("strongroom v2 key slot"), salt));
}

export function newSalt(): Bytes {
  return randomize(allocate(saltBytes));
}

/** Whether a KEK is the slot's, whose parameters are as they were written: in constant time. */
function fits(header: Header, slot: Slot, kek: Bytes): boolean {
  return timingSafeEqual(
    header.version === 1 ? macOfVersion1(header, kek) : slotCheck(slot, kek, header.vaultId),
    slot.check,
  );
}

/** Returns the master key, which the caller wipes. The KEK must fit. */
export function unwrap({ version, vaultId }: Header, { slot, kek }: Access): Bytes {
  return xor(
    slot.wrappedKey,
    hmac(kek, utf8(`strongroom v${version} key wrap`), vaultId),
    allocateMapped(masterKeyBytes),
  );
}

/** A slot before it wraps the master key. */
type SlotPlan = Omit<PassphraseSlot, "wrappedKey" | "check"> | Omit<KeySlot, "wrappedKey" | "check">;

/** DANGER: the KEK must come from a new salt. A KEK that wraps two master keys reveals both. */
export function wrap(masterKey: Bytes, plan: SlotPlan, kek: Bytes, vaultId: Bytes): Slot {
  const pad = hmac(kek, utf8("strongroom v2 key wrap"), vaultId);
  const unchecked = { ...plan, wrappedKey: xor(masterKey, pad, allocate(masterKeyBytes)) };
  return { ...unchecked, check: slotCheck(unchecked, kek, vaultId) };
}

function slotCheck(slot: Parameters<typeof checkedText>[0], kek: Bytes, vaultId: Bytes): Bytes {
  return doubleMac(kek, "strongroom v2 slot check", concat([vaultId, checkedText(slot)]));
}

function macOfVersion1({ bytes }: Header, kek: Bytes): Bytes {
  return doubleMac(kek, "strongroom v1 header key", signedBytes(bytes));
}

/** Returns what the MAC of a header covers: all before the last member. */
export function signedBytes(header: Bytes): Uint8Array {
  return header.subarray(0, header.lastIndexOf(0x2c));
}

function doubleMac(kek: Bytes, use: string, covered: Uint8Array): Bytes {
  const macKey = hmac(kek, utf8(use));
  try {
    return hmac(macKey, covered);
  } finally {
    wipe(macKey);
  }
}

/** Wipes the pad. */
export function xor(bytes: Uint8Array, pad: Uint8Array, result: Bytes): Bytes {
  for (let i = 0; i < result.length; i++) result[i] = (bytes[i] ?? 0) ^ (pad[i] ?? 0);
  wipe(pad);
  return result;
}

export function hmac(key: Uint8Array, ...parts: readonly Uint8Array[]): Bytes {
  const mac = createHmac("sha256", key);
  for (const part of parts) mac.update(part);
  return takeOver(mac.digest());
}

/** scrypt's cost (RFC 7914 section 2): N = 2^logN, block size r, parallelism p. */
type KdfParameters = { readonly logN: number; readonly r: number; readonly p: number };

/** Bytes of a block of PBKDF2 with SHA-256, with which scrypt ends. The blocks do not depend on their number. */
const pbkdf2Block = 32;

/**
 * Derives `length` bytes by scrypt (RFC 7914) off the event loop, in memory that the caller wipes.
 *
 * DANGER: OpenSSL leaves the last block that it computes on the stack of its thread, and on Node 26 nothing overwrites it.
 * So one more block is computed that is not used; the others cannot be computed from it.
 */
export function derive(
  passphrase: Uint8Array,
  salt: Uint8Array,
  { logN, r, p }: KdfParameters,
  length = 32,
): Promise<Bytes> {
  const cost = { N: 2 ** logN, r, p, maxmem: 128 * r * (2 ** logN + p + 2) };
  return new Promise((resolve, reject) => {
    scrypt(passphrase, salt, length + pbkdf2Block, cost, (error, key) => {
      // DANGER: the job keeps its copy of the passphrase until this callback, and all microtasks it queues, have returned.
      setImmediate(() => {
        if (error) return reject(error);
        const derived = concat([key.subarray(0, length)]);
        wipe(key);
        resolve(derived);
      });
    });
  });
}
