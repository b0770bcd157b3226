/**
 * Private keys: made, imported, exported, and held for `node:crypto`.
 *
 * OpenSSL's own copy of an asymmetric key lasts until garbage collection, whatever is done, and is cleared by it, or by the
 * end of the thread, which a lock brings about. So each key is parsed once and kept.
 */
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import {
  allocate,
  asBuffer,
  bytesView,
  concatScratch,
  freshNonce,
  randomize,
  scratch,
  scrubFreed,
  takeOver,
  wipe,
} from "../memory.js";
import type { Bytes } from "../protocol.js";
import { copySecret } from "../registers.js";
import { recipientText } from "./age.js";
import { hexBytes, type KeyType, keyTypes, type Material } from "./key-types.js";
import { signPkcs1, verifyPkcs1 } from "./rsa-digest.js";

const curveBytes = 32;

export const p256Order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const p256OrderBytes = hexBytes(p256Order.toString(16));

/** Makes the private part of a key of a type that needs no search for primes, in scratch memory. */
export function makePrivatePart(type: KeyType): Uint8Array {
  const { material } = keyTypes[type];
  if (material.kind === "rsa") throw new Error("RSA keys are made in a thread of their own");
  const part = randomize(allocate(material.kind === "bytes" ? material.made : curveBytes));
  try {
    // One in 2^32 scalars is not below the order of the curve.
    return isP256(type) && !isScalar(part) ? makePrivatePart(type) : concatScratch(part);
  } finally {
    wipe(part);
  }
}

/** Makes an RSA key in a thread of libuv's pool; the caller wipes it. It cannot be interrupted. */
export function makeRsaPrivatePart(type: KeyType): Promise<Bytes> {
  const { material } = keyTypes[type];
  const options = {
    modulusLength: material.kind === "rsa" ? material.modulusLength : 0,
    publicKeyEncoding: { type: "spki", format: "der" },
    privateKeyEncoding: { type: "pkcs8", format: "der" },
  } as const;
  return new Promise((resolve, reject) => {
    generateKeyPair("rsa", options, (error, _, privateKey) => {
      if (error) return reject(error);
      const part = takeOver(privateKey);
      scrubFreed(part.length);
      resolve(part);
    });
  });
}

/** Parses a private part. OpenSSL frees a copy of the text without clearing it. */
export function parsePrivatePart(type: KeyType, part: Uint8Array): KeyObject {
  const der = privateKeyDer(type, part);
  try {
    return createPrivateKey({ key: asBuffer(der), format: "der", type: "pkcs8" });
  } finally {
    scrubFreed(der.length);
  }
}

/** PKCS #8 of an asymmetric key, in scratch memory. */
export function privateKeyDer(type: KeyType, part: Uint8Array): Uint8Array {
  const { material } = keyTypes[type];
  return material.kind === "curve" ? concatScratch(material.prefix, part) : part;
}

/** The public key as clients see it: a recipient of age, else PEM. */
export function publicText(type: KeyType, privateKey: KeyObject): string {
  if (!keyTypes[type].unwraps) return publicPem(privateKey);
  return recipientText(
    bytesView(createPublicKey(privateKey).export({ type: "spki", format: "der" })).subarray(-curveBytes),
  );
}

function publicPem(privateKey: KeyObject): string {
  return createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString();
}

/** Why key material cannot be imported: it is no key of the type, or its parts do not belong together. */
type ImportProblem = "foreign" | "damaged";

/**
 * Checks key material that a client brings: PKCS #8 (DER) of an asymmetric key, else the key's bytes. Returns the private
 * part, in scratch memory, or why there is none.
 */
export function importPrivatePart(type: KeyType, material: Uint8Array): Uint8Array | ImportProblem {
  const row = keyTypes[type].material;
  if (row.kind === "bytes") {
    const [least, most] = row.imported;
    if (material.length < least || material.length > most) return "foreign";
    return concatScratch(material, makePrivatePart(type).subarray(material.length));
  }
  const key = parseMaterial(material);
  if (key === null || !fitsMaterial(row, key)) return "foreign";
  return row.kind === "rsa" ? rsaPart(material) : curvePart(type, material, key);
}

function parseMaterial(material: Uint8Array): KeyObject | null {
  try {
    return parsePrivatePart("rsa-2048", material);
  } catch {
    return null;
  }
}

function fitsMaterial(material: Material, { asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  if (material.kind === "rsa")
    return asymmetricKeyType === "rsa" && asymmetricKeyDetails?.modulusLength === material.modulusLength;
  return material.kind === "curve" && (asymmetricKeyDetails?.namedCurve ?? asymmetricKeyType) === material.curve;
}

/**
 * OpenSSL takes numbers that do not belong together. It signs by the Chinese remainder theorem, and where the result does not
 * verify, by the private exponent: each of the two hides damage of the other, and so each is tried with the other spoiled.
 */
function rsaPart(material: Uint8Array): Uint8Array | ImportProblem {
  const [, , , exponent, , , remainderExponent] = rsaNumbers(material);
  if (exponent === undefined || remainderExponent === undefined) return "foreign";
  return [exponent, remainderExponent].every((spoiled) => signsWithout(material, spoiled)) ? material : "damaged";
}

function signsWithout(material: Uint8Array, { end }: Element): boolean {
  const spoiled = concatScratch(material);
  spoiled[end - 1] = (spoiled[end - 1] ?? 0) ^ 1;
  const digest = freshNonce(32);
  try {
    const key = parsePrivatePart("rsa-2048", spoiled);
    return verifyPkcs1(createPublicKey(key), "sha256", digest, signPkcs1(key, "sha256", digest));
  } catch {
    return false;
  }
}

/** Where the content of an element of DER is. */
type Element = { readonly start: number; readonly end: number };

/** Version, n, e, d, p, q and d's remainders in PKCS #8 (RFC 5208 section 5, RFC 8017 appendix A.1.2). */
function rsaNumbers(der: Uint8Array): readonly Element[] {
  const [pkcs8] = elementsIn(der, { start: 0, end: der.length });
  const [, , octets] = elementsIn(der, pkcs8);
  const [key] = elementsIn(der, octets);
  return elementsIn(der, key);
}

function elementsIn(der: Uint8Array, outer: Element | undefined): readonly Element[] {
  const elements: Element[] = [];
  const end = Math.min(outer?.end ?? 0, der.length);
  for (let at = outer?.start ?? 0; at < end; at = elements.at(-1)?.end ?? end) elements.push(elementAt(der, at));
  return elements;
}

function elementAt(der: Uint8Array, at: number): Element {
  const first = der[at + 1] ?? 0;
  const start = at + 2 + (first < 0x80 ? 0 : first & 0x7f);
  if (first < 0x80) return { start, end: start + first };
  return { start, end: der.subarray(at + 2, start).reduce((length, byte) => 256 * length + byte, 0) + start };
}

/** Finds the 32 private bytes: the one run of the material that has the same public key. */
function curvePart(type: KeyType, material: Uint8Array, key: KeyObject): Uint8Array | ImportProblem {
  const wanted = publicPem(key);
  let problem: ImportProblem = "foreign";
  for (let at = 0; at + curveBytes + 2 <= material.length; at++) {
    // DANGER: the private bytes stand in an octet string of their length; a shorter scalar is refused with the rest.
    if (material[at] !== 0x04 || material[at + 1] !== curveBytes) continue;
    problem = "damaged";
    const part = scratch(curveBytes);
    copySecret(part, material.subarray(at + 2, at + 2 + curveBytes));
    if (isP256(type) && !isScalar(part)) continue;
    if (publicPem(parsePrivatePart(type, part)) === wanted) return part;
  }
  return problem;
}

function isP256(type: KeyType): boolean {
  return keyTypes[type].signature === "ecdsa";
}

function isScalar(bytes: Uint8Array): boolean {
  // Compared by bytes: a BigInt of the scalar would stay on the heap.
  const at = bytes.findIndex((byte, i) => byte !== p256OrderBytes[i]);
  return at >= 0 && (bytes[at] ?? 0) < (p256OrderBytes[at] ?? 0) && bytes.some((byte) => byte !== 0);
}

/** Parsed private keys by their public keys, the most recently used ones. */
export class PrivateKeys {
  readonly #keys = new Map<string, KeyObject>();
  readonly #most: number;

  constructor(most = 256) {
    this.#most = most;
  }

  /**
   * Returns the parsed key of this public key. `part` is called when it is not held yet.
   * DANGER: not by the number of a version: an older state of the key may be put back, and get another version of that number.
   */
  get(publicKey: string, type: KeyType, part: () => Uint8Array): KeyObject {
    const key = this.#keys.get(publicKey) ?? parsePrivatePart(type, part());
    this.#keys.delete(publicKey);
    this.#keys.set(publicKey, key);
    const [oldest] = this.#keys.keys();
    if (this.#keys.size > this.#most && oldest !== undefined) this.#keys.delete(oldest);
    return key;
  }

  clear(): void {
    this.#keys.clear();
  }
}
