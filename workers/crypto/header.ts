/**
 * Vault header: the master key wrapped in slots, one for the passphrase and one for each further key, in a strict file
 * format.
 *
 * The file is one line of JSON with the members in this order; binary members are base64url without padding:
 *
 *   {"format":"strongroom","version":2,"vaultId":<16>,"createdAt":<ISO 8601>,"spaces":["secrets","trash","keys"],
 *    "slots":[…],"oldKey":<32>,"oldKeyFor":"sealing","mac":<32>}
 *
 *   spaces: what is sealed under the master key. A program that does not know the member refuses the header, as it must: it
 *     knows neither the trash nor transit keys, and a rotation by it would leave both under a key that is gone. Missing in a
 *     header of an earlier program; the first unlock adds it
 *   slots: 1 to 16; the passphrase's, if any, is the first
 *     {"kind":"passphrase","createdAt":<ISO 8601>,"kdf":{"name":"scrypt","logN":17,"r":8,"p":1,"salt":<16>},
 *      "wrappedKey":<32>,"check":<32>}
 *     {"kind":"key","id":<8 letters>,"label":<text>,"createdAt":<ISO 8601>,"salt":<16>,"wrappedKey":<32>,"check":<32>}
 *   oldKey: only while the master key is being rotated
 *   oldKeyFor: the old key's MACs of records, such as client tokens, are not valid. Missing only in a rotation that an
 *     earlier program began
 *
 *   KEK        = scrypt(passphrase, salt, N = 2^logN, r = 8, p = 1), 32 bytes (RFC 7914), or
 *                HMAC-SHA-256(key, "strongroom v2 key slot" ‖ salt)
 *   wrappedKey = master key xor HMAC-SHA-256(KEK, "strongroom v2 key wrap" ‖ vaultId)
 *   check      = HMAC-SHA-256(HMAC-SHA-256(KEK, "strongroom v2 slot check"), vaultId ‖ the slot before `,"check"`)
 *   oldKey     = the master key before the rotation xor K("old key wrap")
 *   mac        = HMAC-SHA-256(K("header check"), all bytes before `,"mac"`)
 *   K(use)     = `XaesKey.deriveKey` of the master key
 *
 * The check commits to the KEK and to all parameters of its slot; the MAC, to all slots: without the master key no slot
 * can be added, changed or dropped. Whenever a slot is wrapped it gets a new salt, so a KEK wraps one key once and the xor
 * is a one-time pad. An AEAD would do too, but Node's deciphers leave halves of a 32-byte plaintext in freed memory
 * (measured on Node 24), where the master key would survive a lock.
 *
 * Version 1, which is read for ever (see `parseVersion1`), has only the passphrase. The first unlock writes 2.
 */
import { maxLabelBytes, mostKeys } from "../body-limits.js";
import { base64url, byteLength, decodeText, equal, fromBase64url, utf8 } from "../memory.js";
import type { Bytes } from "../protocol.js";

export const vaultIdBytes = 16;
export const saltBytes = 16;
export const masterKeyBytes = 32;
const macBytes = 32;

/** Fixed. A header with others was not written by this program, and could cost minutes. */
export const scryptShape = { r: 8, p: 1 };

export type Kdf = { readonly logN: number; readonly salt: Bytes };

type WrappedKey = { readonly createdAt: string; readonly wrappedKey: Bytes; readonly check: Bytes };
export type PassphraseSlot = WrappedKey & { readonly kind: "passphrase"; readonly kdf: Kdf };
export type KeySlot = WrappedKey & {
  readonly kind: "key";
  readonly id: string;
  readonly label: string;
  readonly salt: Bytes;
};
export type Slot = PassphraseSlot | KeySlot;

/** The fields that the MAC covers. */
export interface HeaderContent {
  readonly vaultId: Bytes;
  readonly createdAt: string;
  readonly slots: readonly Slot[];
  readonly oldKey: Bytes | null;
  /** Whether MACs of records under the old key are still valid, as in a rotation that an earlier version began. */
  readonly oldKeySigns: boolean;
}

export interface Header extends HeaderContent {
  readonly version: 1 | 2;
  /** Whether it has the member `spaces`. */
  readonly namesSpaces: boolean;
  /** The file, byte for byte. */
  readonly bytes: Bytes;
  readonly mac: Bytes;
}

type Members = { readonly [name: string]: unknown };

function kdfText({ logN, salt }: Kdf): string {
  const { r, p } = scryptShape;
  return `{"name":"scrypt","logN":${logN},"r":${r},"p":${p},"salt":${base64(salt)}}`;
}

function parseKdf(kdf: unknown, minLogN: number): Kdf {
  const { logN, salt } = kdf as Members;
  return { logN: boundedInteger(logN, minLogN, 20), salt: fromBase64(salt, saltBytes) };
}

function base64(bytes: Bytes): string {
  return `"${base64url(bytes)}"`;
}

function fromBase64(text: unknown, length: number): Bytes {
  const decoded = fromBase64url(String(text));
  if (decoded.length !== length) throw new RangeError("length");
  return decoded;
}

function boundedInteger(value: unknown, min: number, max: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max)
    throw new RangeError("bounds");
  return value;
}

function isoTime(text: unknown): string {
  return new Date(String(text)).toISOString();
}

/** One for the passphrase, and the keys. */
export const mostSlots = 1 + mostKeys;
const maxHeaderBytes = 16_384;

/** Parses a header and checks every bound before any work; null when this program did not write it. */
export function parseHeader(bytes: Bytes, minLogN = 14): Header | null {
  if (bytes.length > maxHeaderBytes) return null;
  try {
    const members = JSON.parse(decodeText(bytes)) as Members; // nothing in a header is secret
    return members["version"] === 1 ? parseVersion1(bytes, members, minLogN) : parseVersion2(bytes, members, minLogN);
  } catch {
    return null;
  }
}

const spaces = '"spaces":["secrets","trash","keys"],';

/** Returns the text that the MAC covers. */
export function signedText(content: HeaderContent, namesSpaces = true): string {
  const { vaultId, createdAt, slots, oldKey, oldKeySigns } = content;
  const purpose = oldKeySigns ? "" : ',"oldKeyFor":"sealing"';
  return (
    `{"format":"strongroom","version":2,"vaultId":${base64(vaultId)},"createdAt":"${createdAt}",${namesSpaces ? spaces : ""}` +
    `"slots":[${slots.map(slotText).join(",")}]${oldKey === null ? "" : `,"oldKey":${base64(oldKey)}${purpose}`}`
  );
}

export function signedHeader(content: HeaderContent, mac: Bytes, namesSpaces = true): Header {
  const bytes = utf8(`${signedText(content, namesSpaces)},"mac":${base64(mac)}}\n`);
  return { ...content, version: 2, namesSpaces, bytes, mac };
}

/** Returns the text that a slot's check covers. */
export function checkedText(slot: Omit<PassphraseSlot, "check"> | Omit<KeySlot, "check">): string {
  const wrapped = `"wrappedKey":${base64(slot.wrappedKey)}`;
  if (slot.kind === "passphrase")
    return `{"kind":"passphrase","createdAt":"${slot.createdAt}","kdf":${kdfText(slot.kdf)},${wrapped}`;
  const { id, label, createdAt, salt } = slot;
  const name = `"id":"${id}","label":${JSON.stringify(label)},"createdAt":"${createdAt}"`;
  return `{"kind":"key",${name},"salt":${base64(salt)},${wrapped}`;
}

function slotText(slot: Slot): string {
  return `${checkedText(slot)},"check":${base64(slot.check)}}`;
}

function parseVersion2(bytes: Bytes, members: Members, minLogN: number): Header | null {
  const slots = parseSlots(members["slots"], minLogN);
  const content: HeaderContent = {
    vaultId: fromBase64(members["vaultId"], vaultIdBytes),
    createdAt: isoTime(members["createdAt"]),
    slots,
    oldKey: members["oldKey"] === undefined ? null : fromBase64(members["oldKey"], masterKeyBytes),
    oldKeySigns: members["oldKeyFor"] === undefined,
  };
  const header = signedHeader(content, fromBase64(members["mac"], macBytes), members["spaces"] !== undefined);
  return equal(bytes, header.bytes) ? { ...header, bytes } : null; // one encoding only
}

function parseSlots(list: unknown, minLogN: number): readonly Slot[] {
  const members = list as readonly Members[];
  boundedInteger(members.length, 1, mostSlots);
  const slots = members.map((slot, i) =>
    i === 0 && slot["kind"] === "passphrase" ? passphraseSlot(slot, minLogN) : keySlot(slot),
  );
  const keys = slots.filter((slot) => slot.kind === "key");
  for (const names of [keys.map(({ id }) => id), keys.map(({ label }) => label)]) {
    if (new Set(names).size !== keys.length || keys.length >= mostSlots) throw new RangeError("names");
  }
  return slots;
}

function passphraseSlot(members: Members, minLogN: number): PassphraseSlot {
  return { kind: "passphrase", ...parseWrappedKey(members), kdf: parseKdf(members["kdf"], minLogN) };
}

function keySlot(members: Members): KeySlot {
  const { kind, id, label, salt } = members;
  if (kind !== "key" || typeof id !== "string" || !keyId.test(id)) throw new RangeError("kind");
  if (typeof label !== "string" || !isLabel(label)) throw new RangeError("label");
  return { kind, id, label, ...parseWrappedKey(members), salt: fromBase64(salt, saltBytes) };
}

function parseWrappedKey({ createdAt, wrappedKey, check }: Members): WrappedKey {
  return {
    createdAt: isoTime(createdAt),
    wrappedKey: fromBase64(wrappedKey, masterKeyBytes),
    check: fromBase64(check, macBytes),
  };
}

/** See `newId`. */
const keyId = /^[0-9a-hjkmnp-tv-z]{8}$/;

/** DANGER: a header with a label that this refuses never opens again. */
export function isLabel(label: string): boolean {
  return byteLength(label) <= maxLabelBytes && /^[^\p{Cc}\p{Cs}]+$/u.test(label);
}

/**
 * Header version 1, which is read for ever and never written: one passphrase, and a MAC under its KEK.
 *
 *   {"format":"strongroom","version":1,"vaultId":<16>,"createdAt":<ISO 8601>,
 *    "kdf":{"name":"scrypt","logN":17,"r":8,"p":1,"salt":<16>},"wrappedKey":<32>,"mac":<32>}
 *
 *   KEK        = scrypt(passphrase, salt, N = 2^logN, r = 8, p = 1), 32 bytes (RFC 7914)
 *   wrappedKey = master key xor HMAC-SHA-256(KEK, "strongroom v1 key wrap" ‖ vaultId)
 *   mac        = HMAC-SHA-256(HMAC-SHA-256(KEK, "strongroom v1 header key"), all bytes before `,"mac"`)
 *
 * The MAC is the check of the only slot. Null when the bytes are not the one encoding.
 */
function parseVersion1(bytes: Bytes, members: Members, minLogN: number): Header | null {
  const kdf = parseKdf(members["kdf"], minLogN);
  const vaultId = fromBase64(members["vaultId"], vaultIdBytes);
  const createdAt = isoTime(members["createdAt"]);
  const wrappedKey = fromBase64(members["wrappedKey"], masterKeyBytes);
  const mac = fromBase64(members["mac"], macBytes);
  const signed =
    `{"format":"strongroom","version":1,"vaultId":${base64(vaultId)},"createdAt":"${createdAt}",` +
    `"kdf":${kdfText(kdf)},"wrappedKey":${base64(wrappedKey)}`;
  if (!equal(bytes, utf8(`${signed},"mac":${base64(mac)}}\n`))) return null;
  const slots = [{ kind: "passphrase", createdAt, kdf, wrappedKey, check: mac }] as const;
  return { version: 1, namesSpaces: false, bytes, vaultId, createdAt, slots, oldKey: null, oldKeySigns: true, mac };
}
