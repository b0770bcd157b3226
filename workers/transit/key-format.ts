/**
 * Format of a transit key as storage sees it: a blob as `blob.ts` draws it, with one version in it and a label of its own, so
 * that a key that is moved among the secrets does not open there.
 *
 *   metadata  {"id":"…","type":"ed25519","exportable":false,"deletionAllowed":false,"minDecryptionVersion":1,
 *              "versions":[{"createdAt":"…","publicKey":"-----BEGIN…","messages":4096},…],"version":N}
 *             `id`: 16 random bytes in base64url. `publicKey`: PEM, or a recipient of age, of asymmetric keys. `messages`: how many messages may
 *             have been encrypted, of `aes256-gcm96`. N: the number of versions.
 *   value     for each version, oldest first: length (4, big endian) ‖ private part
 *               aes256-gcm96  AES key (32) ‖ HMAC key (32)
 *               hmac          HMAC key (16 to 512)
 *               ed25519       seed (32)
 *               x25519        scalar (32)
 *               ecdsa-p256    scalar (32)
 *               rsa-*         PKCS #8, DER
 *
 * The AAD has the label "strongroom v1 key" in place of "strongroom v1 entry", and the name of the key as the path.
 */
import { openCurrent, openMetadata, type SealingKey, sealBlob } from "../crypto/blob.js";
import { allocate, base64url, concatScratch, decodeText, randomize, readUint32, uint32, utf8 } from "../memory.js";
import type { Bytes } from "../protocol.js";
import type { KeyType } from "./key-types.js";

/** The most versions of one key: its metadata is read as a whole. */
export const mostKeyVersions = 500;

type KeyVersion = { readonly createdAt: string; readonly publicKey?: string; readonly messages?: number };

/** The properties of a key without its private parts. */
export type KeyInfo = {
  readonly id: string;
  readonly type: KeyType;
  readonly exportable: boolean;
  readonly deletionAllowed: boolean;
  readonly minDecryptionVersion: number;
  /** Oldest first. */
  readonly versions: readonly KeyVersion[];
};

/** `privateParts`: of each version, in scratch memory. */
export type OpenedKey = { readonly info: KeyInfo; readonly privateParts: readonly Uint8Array[] };

const keyLabel = utf8("strongroom v1 key");
const lengthBytes = 4;

/** Returns the key that seals blobs of transit keys. */
export function forTransit(key: SealingKey): SealingKey {
  return { ...key, label: keyLabel };
}

export function newKeyId(): string {
  return base64url(randomize(allocate(16)));
}

/** Seals a key. `name`: its canonical path. */
export function sealKey(key: SealingKey, name: string, { info, privateParts }: OpenedKey): Bytes {
  const metadata = utf8(JSON.stringify({ ...info, version: info.versions.length }));
  const value = concatScratch(...privateParts.flatMap((part) => [uint32(part.length), part]));
  return sealBlob(forTransit(key), name, metadata, value);
}

/** Opens what is known of keys, for which the heads of their blobs are enough; null where damaged, moved or foreign. */
export function openKeyInfos(
  key: SealingKey,
  blobs: readonly { readonly path: string; readonly blob: Uint8Array }[],
): (KeyInfo | null)[] {
  return openMetadata(forTransit(key), blobs).map((metadata) => metadata && parseKeyInfo(metadata));
}

export function openKeyInfo(key: SealingKey, name: string, blob: Uint8Array): KeyInfo | null {
  const [info = null] = openKeyInfos(key, [{ path: name, blob }]);
  return info;
}

/** Opens a key with its private parts; null when it is damaged, moved or foreign. */
export function openKey(key: SealingKey, name: string, blob: Uint8Array): OpenedKey | null {
  const opened = openCurrent(forTransit(key), name, blob);
  return opened && { info: parseKeyInfo(opened.metadata), privateParts: splitParts(opened.value) };
}

function parseKeyInfo(metadata: Uint8Array): KeyInfo {
  const { version: _, ...info } = JSON.parse(decodeText(metadata)) as KeyInfo & { readonly version: number };
  return info;
}

/** Splits the opened value of a blob. */
export function splitParts(value: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < value.length; ) {
    const start = at + lengthBytes;
    at = start + readUint32(value, at);
    parts.push(value.subarray(start, at));
  }
  return parts;
}
