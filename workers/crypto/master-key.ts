/** The master key and its header: made, opened by a slot, and signed again after each change of a slot. */
import { timingSafeEqual } from "node:crypto";
import { allocate, allocateMapped, base64url, randomize, utf8, wipe, withScratch } from "../memory.js";
import type { Bytes } from "../protocol.js";
import {
  type Header,
  type HeaderContent,
  type Kdf,
  masterKeyBytes,
  type Slot,
  signedHeader,
  signedText,
  vaultIdBytes,
} from "./header.js";
import { type Access, deriveKek, hmac, newSalt, signedBytes, unwrap, type Wrapping, wrap, xor } from "./slots.js";
import { XaesKey } from "./xaes.js";

/** `oldKey`: while the master key is being rotated. */
export type VaultKeys = { readonly masterKey: XaesKey; readonly oldKey: XaesKey | null };

export function endKeys(keys: VaultKeys | null): void {
  keys?.masterKey.end();
  keys?.oldKey?.end();
}

/** Makes a new vault: its header, and its keys, which the caller ends. */
export async function createVault(
  passphrase: Uint8Array,
  logN: number,
  now: number,
): Promise<{ header: Header; keys: VaultKeys }> {
  const kdf = { logN, salt: newSalt() };
  const kek = await deriveKek(passphrase, kdf);
  const vaultId = randomize(allocate(vaultIdBytes));
  const createdAt = new Date(now).toISOString();
  try {
    return withScratch(() => {
      const raw = randomize(allocateMapped(masterKeyBytes));
      const slot = wrap(raw, { kind: "passphrase", createdAt, kdf }, kek, vaultId);
      const masterKey = new XaesKey(raw);
      const header = signHeader({ vaultId, createdAt, slots: [slot], oldKey: null, oldKeySigns: true }, masterKey);
      return { header, keys: { masterKey, oldKey: null } };
    });
  } finally {
    wipe(kek);
  }
}

/** Opens a header; null when something else than this program has changed it. */
export function openHeader(header: Header, access: Access): VaultKeys | null {
  const masterKey = new XaesKey(unwrap(header, access));
  if (header.version === 2 && !isSignedBy(header, masterKey)) {
    masterKey.end();
    return null;
  }
  return { masterKey, oldKey: header.oldKey && new XaesKey(unwrapOldKey(header.oldKey, masterKey)) };
}

/** Changes the slots of a header with its master key, which `change` must not keep; null as in `openHeader`. */
export function changeSlots(
  header: Header,
  access: Access,
  change: (masterKey: Bytes) => readonly Slot[],
): Header | null {
  const keys = openHeader(header, access);
  if (keys === null) return null;
  const raw = unwrap(header, access);
  try {
    return withSlots(header, change(raw), keys.masterKey);
  } finally {
    wipe(raw);
    endKeys(keys);
  }
}

/** Names a rotation; null when there is none. */
export function headerRotation(header: Header | null): string | null {
  return header?.oldKey ? base64url(header.oldKey) : null;
}

/**
 * Makes a new master key, in only these slots, with the one before sealed under it; null as in `openHeader`. The caller
 * ends the keys.
 */
export function rotateKey(
  header: Header,
  access: Access,
  slots: readonly Wrapping[],
): { header: Header; keys: VaultKeys } | null {
  const before = openHeader(header, access);
  if (before === null) return null;
  const old = unwrap(header, access);
  try {
    const raw = randomize(allocateMapped(masterKeyBytes));
    const { vaultId, createdAt } = header;
    const wrapped = slots.map(({ plan, kek }) => wrap(raw, plan, kek, vaultId));
    const masterKey = new XaesKey(raw);
    const oldKey = xor(old, masterKey.deriveKey("old key wrap"), allocate(masterKeyBytes));
    const next = signHeader({ vaultId, createdAt, slots: wrapped, oldKey, oldKeySigns: false }, masterKey);
    return { header: next, keys: { masterKey, oldKey: before.masterKey } };
  } finally {
    wipe(old);
  }
}

/** Returns the header without the old key: nothing may be sealed under it from then on. */
export function withoutOldKey({ vaultId, createdAt, slots }: Header, masterKey: XaesKey): Header {
  return signHeader({ vaultId, createdAt, slots, oldKey: null, oldKeySigns: true }, masterKey);
}

/** Returns the header with other slots. */
export function withSlots(header: Header, slots: readonly Slot[], masterKey: XaesKey): Header {
  const { vaultId, createdAt, oldKey, oldKeySigns } = header;
  return signHeader({ vaultId, createdAt, slots, oldKey, oldKeySigns }, masterKey);
}

function signHeader(content: HeaderContent, masterKey: XaesKey): Header {
  return signedHeader(content, headerMac(utf8(signedText(content)), masterKey));
}

function isSignedBy(header: Header, masterKey: XaesKey): boolean {
  return timingSafeEqual(headerMac(signedBytes(header.bytes), masterKey), header.mac);
}

function headerMac(signed: Uint8Array, masterKey: XaesKey): Bytes {
  return hmac(masterKey.deriveKey("header check"), signed);
}

function unwrapOldKey(wrapped: Bytes, masterKey: XaesKey): Bytes {
  return xor(wrapped, masterKey.deriveKey("old key wrap"), allocateMapped(masterKeyBytes));
}

/** A higher scrypt cost for the passphrase's slot, when an unlock has shown the passphrase; the caller wipes the KEK. */
type StrongerKdf = { readonly kdf: Kdf; readonly kek: Bytes };

/**
 * Null when the slot's cost is not below, or a key opened it. A slot of version 1 is wrapped again in any case. `logN` 0: the
 * header is not to be changed.
 */
export async function strongerKdf(
  header: Header,
  { slot }: Access,
  passphrase: Uint8Array,
  logN: number,
): Promise<StrongerKdf | null> {
  if (slot.kind !== "passphrase" || logN === 0) return null;
  if (slot.kdf.logN >= logN && header.version !== 1) return null;
  const kdf = { logN: Math.max(logN, slot.kdf.logN), salt: newSalt() };
  return { kdf, kek: await deriveKek(passphrase, kdf) };
}

function withStrongerKdf(header: Header, access: Access, { kdf, kek }: StrongerKdf): Header | null {
  return changeSlots(header, access, (masterKey) =>
    header.slots.map((slot) =>
      slot === access.slot
        ? wrap(masterKey, { kind: "passphrase", createdAt: slot.createdAt, kdf }, kek, header.vaultId)
        : slot,
    ),
  );
}

/** Returns an opened vault's header with the higher cost, if any, and the vault's spaces; null when it has both. */
export function upgradedHeader(
  header: Header,
  access: Access,
  { masterKey }: VaultKeys,
  stronger: StrongerKdf | null,
): Header | null {
  if (stronger !== null) return withStrongerKdf(header, access, stronger);
  return header.version === 2 && !header.namesSpaces ? withSlots(header, header.slots, masterKey) : null;
}
