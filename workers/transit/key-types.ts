/** Types of transit keys: a row each says what its keys do. A type in openapi.yaml that has no row here does not compile. */
import { bytesFrom } from "../memory.js";
import type { transitKeyTypes } from "../names.js";

export type KeyType = (typeof transitKeyTypes)[number];

/** Private part: random bytes, or 32 bytes of a curve, or PKCS #8 of an RSA key. */
export type Material =
  /** `imported`: bytes of a key that a client brings; what is missing of `made` is then random. */
  | { readonly kind: "bytes"; readonly made: number; readonly imported: readonly [least: number, most: number] }
  /** `curve`: as `node:crypto` calls it. */
  | { readonly kind: "curve"; readonly curve: "ed25519" | "prime256v1" | "x25519"; readonly prefix: Uint8Array }
  | { readonly kind: "rsa"; readonly modulusLength: number };

/** Ways to encrypt. */
const encryptions = {
  gcm: { isSymmetric: true, keyBytes: 32, takesAad: true, countsMessages: true },
  oaep: { isSymmetric: false, takesAad: false, countsMessages: false },
} as const satisfies Readonly<Record<string, EncryptionRules>>;

export type Encryption = keyof typeof encryptions;

/** `keyBytes`: the key is so many first bytes of the private part. `countsMessages`: a version encrypts a limited number. */
type EncryptionRules = { readonly takesAad: boolean; readonly countsMessages: boolean } & (
  | { readonly isSymmetric: true; readonly keyBytes: number }
  | { readonly isSymmetric: false }
);

export type Signature = "ed25519" | "ecdsa" | "rsa";

type KeyTypeRow = {
  readonly material: Material;
  /** Null: its keys do not encrypt. */
  readonly encryption: Encryption | null;
  /** Null: its keys do not sign. */
  readonly signature: Signature | null;
  /** Whether its keys are identities of age. */
  readonly unwraps: boolean;
  /** Offset of the key for MACs in the private part. Null: its keys make none. */
  readonly macKeyAt: number | null;
  /** How many inputs of a batch are worked on before others get their turn. */
  readonly inputsAtOnce: number;
  /** Whether Vault derives keys from those of this type. */
  readonly derivesInVault: boolean;
};

export const hexBytes = (text: string) =>
  bytesFrom(...(text.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16)));

/** PKCS #8 up to the 32 private bytes, which are the last ones (RFC 8410; RFC 5915 without the public key). */
const ed25519Prefix = hexBytes("302e020100300506032b657004220420");
const x25519Prefix = hexBytes("302e020100300506032b656e04220420");
const p256Prefix = hexBytes("3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420");

// biome-ignore format: a row is a line
export const keyTypes: Readonly<Record<KeyType, KeyTypeRow>> = {
  // AES key (32) ‖ HMAC key (32)
  "aes256-gcm96": { material: { kind: "bytes", made: 64, imported: [32, 32] }, encryption: "gcm", signature: null, unwraps: false, macKeyAt: 32, inputsAtOnce: 100, derivesInVault: true },
  ed25519: { material: { kind: "curve", curve: "ed25519", prefix: ed25519Prefix }, encryption: null, signature: "ed25519", unwraps: false, macKeyAt: null, inputsAtOnce: 25, derivesInVault: true },
  "ecdsa-p256": { material: { kind: "curve", curve: "prime256v1", prefix: p256Prefix }, encryption: null, signature: "ecdsa", unwraps: false, macKeyAt: null, inputsAtOnce: 10, derivesInVault: false },
  x25519: { material: { kind: "curve", curve: "x25519", prefix: x25519Prefix }, encryption: null, signature: null, unwraps: true, macKeyAt: null, inputsAtOnce: 25, derivesInVault: false },
  "rsa-2048": { material: { kind: "rsa", modulusLength: 2048 }, encryption: "oaep", signature: "rsa", unwraps: false, macKeyAt: null, inputsAtOnce: 3, derivesInVault: false },
  "rsa-4096": { material: { kind: "rsa", modulusLength: 4096 }, encryption: "oaep", signature: "rsa", unwraps: false, macKeyAt: null, inputsAtOnce: 1, derivesInVault: false },
  hmac: { material: { kind: "bytes", made: 32, imported: [16, 512] }, encryption: null, signature: null, unwraps: false, macKeyAt: 0, inputsAtOnce: 100, derivesInVault: false },
};

export function encryptionRules({ encryption }: Pick<KeyTypeRow, "encryption">): EncryptionRules | null {
  return encryption && encryptions[encryption];
}

export function takesAad(row: KeyTypeRow): boolean {
  return encryptionRules(row)?.takesAad === true;
}

/** Returns the part of a private part that encrypts; null where that is an asymmetric key, or there is none. */
export function symmetricPart(type: KeyType, part: Uint8Array): Uint8Array | null {
  const rules = encryptionRules(keyTypes[type]);
  return rules?.isSymmetric ? part.subarray(0, rules.keyBytes) : null;
}

export function isAsymmetric(type: KeyType): boolean {
  return keyTypes[type].material.kind !== "bytes";
}

export function isRsa(type: KeyType): boolean {
  return keyTypes[type].material.kind === "rsa";
}

/** Returns the names of the types whose keys can do it, for an error. */
export function typesThat(can: (row: KeyTypeRow) => boolean): string {
  const names = Object.entries(keyTypes).flatMap(([name, row]) => (can(row) ? [name] : []));
  return names.join(", ").replace(/, ([^,]+)$/, " or $1");
}
