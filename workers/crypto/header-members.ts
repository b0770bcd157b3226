/** Members of the header: what they are, their bounds, and the one way to write each. */
import { base64url, fromBase64url } from "../memory.js";
import type { Bytes } from "../owned-bytes.js";

export const vaultIdBytes = 16;
export const saltBytes = 16;
export const masterKeyBytes = 32;
export const macBytes = 32;

/** Fixed. A header with others was not written by this program, and could cost minutes. */
export const scryptShape = { r: 8, p: 1 };

export type Kdf = { readonly logN: number; readonly salt: Bytes };

export type WrappedKey = { readonly createdAt: string; readonly wrappedKey: Bytes; readonly check: Bytes };
export type PassphraseSlot = WrappedKey & { readonly kind: "passphrase"; readonly kdf: Kdf };
export type KeySlot = WrappedKey & {
  readonly kind: "key";
  readonly id: string;
  readonly label: string;
  readonly salt: Bytes;
};
export type Slot = PassphraseSlot | KeySlot;

/** What the MAC covers. */
export interface HeaderContent {
  readonly vaultId: Bytes;
  readonly createdAt: string;
  readonly slots: readonly Slot[];
  readonly oldKey: Bytes | null;
}

export interface Header extends HeaderContent {
  readonly version: 1 | 2;
  /** The file, byte for byte. */
  readonly bytes: Bytes;
  readonly mac: Bytes;
}

export type Members = { readonly [name: string]: unknown };

export function kdfText({ logN, salt }: Kdf): string {
  const { r, p } = scryptShape;
  return `{"name":"scrypt","logN":${logN},"r":${r},"p":${p},"salt":${base64(salt)}}`;
}

export function parseKdf(kdf: unknown, minLogN: number): Kdf {
  const { logN, salt } = kdf as Members;
  return { logN: boundedInteger(logN, minLogN, 20), salt: fromBase64(salt, saltBytes) };
}

export function base64(bytes: Bytes): string {
  return `"${base64url(bytes)}"`;
}

export function fromBase64(text: unknown, length: number): Bytes {
  const decoded = fromBase64url(String(text));
  if (decoded.length !== length) throw new RangeError("length");
  return decoded;
}

export function boundedInteger(value: unknown, min: number, max: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max)
    throw new RangeError("bounds");
  return value;
}

export function isoTime(text: unknown): string {
  return new Date(String(text)).toISOString();
}
