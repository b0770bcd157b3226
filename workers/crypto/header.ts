/**
 * Vault header: the master key wrapped under the passphrase, in a strict file format.
 *
 * The file is one line of JSON with the members in this order; binary members are base64url without padding:
 *
 *   {"format":"strongroom","version":1,"vaultId":<16>,"createdAt":<ISO 8601>,
 *    "kdf":{"name":"scrypt","logN":17,"r":8,"p":1,"salt":<16>},"wrappedKey":<32>,"mac":<32>}
 *
 *   KEK        = scrypt(passphrase, salt, N = 2^logN, r = 8, p = 1), 32 bytes (RFC 7914)
 *   wrappedKey = master key xor HMAC-SHA-256(KEK, "strongroom v1 key wrap" ‖ vaultId)
 *   mac        = HMAC-SHA-256(HMAC-SHA-256(KEK, "strongroom v1 header key"), all bytes before `,"mac"`)
 *
 * Every header has a new salt, so a KEK wraps one key once and the xor is a one-time pad; the MAC is checked before
 * anything is unwrapped. An AEAD would do too, but Node's deciphers leave halves of a 32-byte plaintext in freed memory
 * (measured on Node 24), where the master key would survive a lock.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import {
  allocate,
  allocateMapped,
  base64url,
  equal,
  fromBase64url,
  randomize,
  takeOver,
  textOf,
  utf8,
  wipe,
} from "../memory.js";
import type { Bytes } from "../protocol.js";
import { derive } from "./derivation.js";

const vaultIdBytes = 16;
const saltBytes = 16;
const masterKeyBytes = 32;
const macBytes = 32;

/** Fixed by header version 1. A header with others was not written by this program, and could cost minutes. */
const scryptShape = { r: 8, p: 1 };

export interface Header {
  /** The file, byte for byte. */
  readonly bytes: Bytes;
  readonly vaultId: Bytes;
  readonly kdf: { readonly logN: number; readonly salt: Bytes };
  readonly wrappedKey: Bytes;
  readonly mac: Bytes;
}

/** Makes a new vault's header and its master key, which the caller wipes. */
export async function createHeader(
  passphrase: Uint8Array,
  logN: number,
  now: number,
): Promise<{ header: Header; masterKey: Bytes }> {
  const vaultId = randomize(allocate(vaultIdBytes));
  const kdf = { logN, salt: randomize(allocate(saltBytes)) };
  const kek = await deriveKek(passphrase, kdf);
  try {
    const masterKey = randomize(allocateMapped(masterKeyBytes));
    const wrappedKey = xorWithPad(masterKey, kek, vaultId, allocate(masterKeyBytes));
    const signed = signedPart(vaultId, new Date(now).toISOString(), kdf, wrappedKey);
    const mac = headerMac(kek, utf8(signed));
    const bytes = utf8(`${signed},"mac":${base64(mac)}}\n`);
    return { header: { bytes, vaultId, kdf, wrappedKey, mac }, masterKey };
  } finally {
    wipe(kek);
  }
}

/** Returns the master key, which the caller wipes, or null when the passphrase or any byte of the header is wrong. */
export async function unwrapMasterKey(header: Header, passphrase: Uint8Array): Promise<Bytes | null> {
  const kek = await deriveKek(passphrase, header.kdf);
  try {
    const signed = header.bytes.subarray(0, header.bytes.lastIndexOf(0x2c)); // the comma before "mac"
    if (!timingSafeEqual(headerMac(kek, signed), header.mac)) return null;
    return xorWithPad(header.wrappedKey, kek, header.vaultId, allocateMapped(masterKeyBytes));
  } finally {
    wipe(kek);
  }
}

/** Parses a header and checks every bound before any work; null when this program did not write it. */
export function parseHeader(bytes: Bytes, minLogN = 14): Header | null {
  try {
    const parsed: unknown = JSON.parse(textOf(bytes)); // nothing in a header is secret
    return checkedHeader(bytes, parsed, minLogN);
  } catch {
    return null;
  }
}

type Members = { readonly [name: string]: unknown };

function checkedHeader(bytes: Bytes, parsed: unknown, minLogN: number): Header | null {
  const members = parsed as Members;
  const kdfMembers = members["kdf"] as Members;
  const kdf = {
    logN: boundedInteger(kdfMembers["logN"], minLogN, 20),
    salt: fromBase64(kdfMembers["salt"], saltBytes),
  };
  const vaultId = fromBase64(members["vaultId"], vaultIdBytes);
  const wrappedKey = fromBase64(members["wrappedKey"], masterKeyBytes);
  const mac = fromBase64(members["mac"], macBytes);
  const signed = signedPart(vaultId, isoTime(members["createdAt"]), kdf, wrappedKey);
  // One encoding only: written again, the header must be the same bytes.
  if (!equal(bytes, utf8(`${signed},"mac":${base64(mac)}}\n`))) return null;
  return { bytes, vaultId, kdf, wrappedKey, mac };
}

function signedPart(vaultId: Bytes, createdAt: string, kdf: Header["kdf"], wrappedKey: Bytes): string {
  const { r, p } = scryptShape;
  const kdfText = `{"name":"scrypt","logN":${kdf.logN},"r":${r},"p":${p},"salt":${base64(kdf.salt)}}`;
  return (
    `{"format":"strongroom","version":1,"vaultId":${base64(vaultId)},"createdAt":"${createdAt}",` +
    `"kdf":${kdfText},"wrappedKey":${base64(wrappedKey)}`
  );
}

function deriveKek(passphrase: Uint8Array, { logN, salt }: Header["kdf"]): Promise<Bytes> {
  return derive(passphrase, salt, { logN, ...scryptShape });
}

function headerMac(kek: Bytes, signed: Uint8Array): Bytes {
  const macKey = hmac(kek, utf8("strongroom v1 header key"));
  try {
    return hmac(macKey, signed);
  } finally {
    wipe(macKey);
  }
}

function xorWithPad(key: Bytes, kek: Bytes, vaultId: Bytes, result: Bytes): Bytes {
  const pad = hmac(kek, utf8("strongroom v1 key wrap"), vaultId);
  for (let i = 0; i < masterKeyBytes; i++) result[i] = (key[i] ?? 0) ^ (pad[i] ?? 0);
  wipe(pad);
  return result;
}

function hmac(key: Bytes, ...parts: readonly Uint8Array[]): Bytes {
  const mac = createHmac("sha256", key);
  for (const part of parts) mac.update(part);
  return takeOver(mac.digest());
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
