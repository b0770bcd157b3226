/** Algorithms of transit keys, all by `node:crypto`. Secrets go in and out as bytes that we own. */
import {
  constants,
  createHmac,
  createPublicKey,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
  sign as signMessage,
  timingSafeEqual,
  verify as verifyMessage,
} from "node:crypto";
import { openGcm, sealGcm, tagBytes } from "../crypto/gcm.js";
import { bytesFrom, bytesView, concatScratch, equal, putFreshNonce, scratch, wipe } from "../memory.js";
import { signDigest, verifyDigest } from "./ecdsa-digest.js";
import { type KeyType, keyTypes, type Signature } from "./key-types.js";
import { type Hash, signPkcs1, signPss, verifyPkcs1, verifyPss } from "./rsa-digest.js";

/** How to sign: `isDigest` when the input is a digest already. */
export type SignOptions = {
  readonly hash: Hash;
  readonly isDigest: boolean;
  readonly marshaling: "asn1" | "jws";
  readonly padding: "pss" | "pkcs1v15";
  /** Salt of PSS, in bytes; by default as long as the digest. */
  readonly saltLength?: number;
};

const gcmNonceBytes = 12;
const curveBytes = 32;

/** AES-256-GCM under a random nonce: nonce (12) ‖ ciphertext ‖ tag (16). */
export function encryptGcm(key: Uint8Array, plaintext: Uint8Array, aad: Uint8Array): Uint8Array {
  const sealed = scratch(gcmNonceBytes + plaintext.length + tagBytes);
  putFreshNonce(sealed, gcmNonceBytes);
  const [ciphertext, tag] = sealGcm(key, sealed.subarray(0, gcmNonceBytes), plaintext, aad);
  sealed.set(ciphertext, gcmNonceBytes);
  sealed.set(tag, gcmNonceBytes + plaintext.length);
  return sealed;
}

/** Returns null when the tag does not match. */
export function decryptGcm(key: Uint8Array, sealed: Uint8Array, aad: Uint8Array): Uint8Array | null {
  const end = sealed.length - tagBytes;
  if (end < gcmNonceBytes) return null;
  return openGcm(
    key,
    sealed.subarray(0, gcmNonceBytes),
    sealed.subarray(gcmNonceBytes, end),
    sealed.subarray(end),
    aad,
  );
}

const oaep = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256" } as const;

/** The longest plaintext of OAEP with SHA-256, in bytes (RFC 8017 section 7.1.1). */
export function mostOaepBytes(type: KeyType): number {
  const { material } = keyTypes[type];
  return material.kind === "rsa" ? material.modulusLength / 8 - 66 : 0;
}

export function encryptOaep(key: KeyObject, plaintext: Uint8Array): Uint8Array {
  return publicEncrypt({ key, ...oaep }, plaintext);
}

/** Returns null for what was not encrypted to this key. */
export function decryptOaep(key: KeyObject, ciphertext: Uint8Array): Uint8Array | null {
  try {
    const plaintext = privateDecrypt({ key, ...oaep }, ciphertext);
    try {
      return concatScratch(bytesView(plaintext));
    } finally {
      wipe(plaintext);
    }
  } catch {
    return null;
  }
}

export function hmac(key: Uint8Array, hash: Hash, input: Uint8Array): Uint8Array {
  return createHmac(hash, key).update(input).digest();
}

export function verifyHmac(key: Uint8Array, hash: Hash, input: Uint8Array, mac: Uint8Array): boolean {
  const expected = hmac(key, hash, input);
  return mac.length === expected.length && timingSafeEqual(mac, expected);
}

export function sign(type: KeyType, ...args: Parameters<SignatureScheme["sign"]>): Uint8Array {
  return schemeFor(type).sign(...args);
}

export function verify(type: KeyType, ...args: Parameters<SignatureScheme["verify"]>): boolean {
  return schemeFor(type).verify(...args);
}

function schemeFor(type: KeyType): SignatureScheme {
  const { signature } = keyTypes[type];
  if (signature === null) throw new Error(`keys of type ${type} do not sign`);
  return schemes[signature];
}

type SignatureScheme = {
  /** `scalar`: the private bytes of a P-256 key, for a digest. */
  readonly sign: (key: KeyObject, scalar: () => Uint8Array, input: Uint8Array, options: SignOptions) => Uint8Array;
  readonly verify: (key: KeyObject, input: Uint8Array, signature: Uint8Array, options: SignOptions) => boolean;
};

const schemes: Readonly<Record<Signature, SignatureScheme>> = {
  ed25519: {
    sign: (key, _scalar, input) => signMessage(null, input, key),
    verify: (key, input, signature) => verifyMessage(null, input, key, signature),
  },
  rsa: {
    sign(key, _scalar, input, options) {
      const { hash, isDigest, padding, saltLength } = options;
      return isDigest ? signRsaDigest(key, input, options) : signMessage(hash, input, rsaKey(key, padding, saltLength));
    },
    verify(key, input, signature, { hash, isDigest, padding }) {
      if (!isDigest) return verifyMessage(hash, input, rsaKey(key, padding), signature);
      return padding === "pss" ? verifyPss(key, hash, input, signature) : verifyPkcs1(key, hash, input, signature);
    },
  },
  ecdsa: {
    sign(key, scalar, input, { hash, isDigest, marshaling }) {
      if (!isDigest) return signMessage(hash, input, { key, dsaEncoding: dsaEncodings[marshaling] });
      const signature = signDigest(scalar(), input);
      return marshaling === "jws" ? signature : toDer(signature);
    },
    verify(key, input, signature, { hash, isDigest, marshaling }) {
      if (!isDigest) return verifyMessage(hash, input, { key, dsaEncoding: dsaEncodings[marshaling] }, signature);
      const raw = marshaling === "jws" ? signature : fromDer(signature);
      return raw !== null && verifyDigest(publicPoint(key), input, raw);
    },
  },
};

const dsaEncodings = { asn1: "der", jws: "ieee-p1363" } as const;

function signRsaDigest(key: KeyObject, digest: Uint8Array, { hash, padding, saltLength }: SignOptions): Uint8Array {
  return padding === "pss" ? signPss(key, hash, digest, saltLength) : signPkcs1(key, hash, digest);
}

/** The salt may have any length where we verify. */
function rsaKey(key: KeyObject, padding: SignOptions["padding"], wanted?: number) {
  if (padding === "pkcs1v15") return { key, padding: constants.RSA_PKCS1_PADDING };
  const signs = wanted ?? constants.RSA_PSS_SALTLEN_DIGEST;
  const saltLength = key.type === "private" ? signs : constants.RSA_PSS_SALTLEN_AUTO;
  return { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength };
}

/** The uncompressed point of a P-256 key, which ends its SPKI. */
function publicPoint(key: KeyObject): Uint8Array {
  const publicKey = key.type === "private" ? createPublicKey(key) : key;
  return publicKey.export({ type: "spki", format: "der" }).subarray(-1 - 2 * curveBytes);
}

/** ECDSA-Sig-Value (RFC 3279 section 2.2.3) of r ‖ s. */
function toDer(signature: Uint8Array): Uint8Array {
  const integers = [signature.subarray(0, curveBytes), signature.subarray(curveBytes)].map((number) => {
    const start = number.findIndex((byte) => byte !== 0);
    const digits = number.subarray(start < 0 ? curveBytes - 1 : start);
    return (digits[0] ?? 0) > 0x7f ? concatScratch(bytesFrom(0), digits) : digits;
  });
  const body = concatScratch(...integers.flatMap((integer) => [bytesFrom(2, integer.length), integer]));
  return concatScratch(bytesFrom(0x30, body.length), body);
}

/** Returns r ‖ s of a signature in DER; null for any other spelling. */
function fromDer(der: Uint8Array): Uint8Array | null {
  const first = der[3] ?? 0;
  const r = der.subarray(4, 4 + first);
  const s = der.subarray(6 + first);
  const raw = scratch(2 * curveBytes);
  const numbers = [r, s].map((number) => (number[0] === 0 ? number.subarray(1) : number));
  for (const [i, number] of numbers.entries()) {
    if (number.length > curveBytes) return null;
    raw.set(number, (i + 1) * curveBytes - number.length);
  }
  return equal(toDer(raw), der) ? raw : null;
}
