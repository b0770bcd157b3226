/**
 * Uses of transit keys: each function takes one input, and writes the members of its result's JSON once nothing can
 * fail any more.
 */
import { isDigit } from "../json/json-string.js";
import { allocate, concat, concatScratch, randomize, utf8, wipe } from "../memory.js";
import type { Bytes, TransitUse } from "../protocol.js";
import { stanzaPartBytes, unwrapFileKey } from "./age.js";
import {
  decryptGcm,
  decryptOaep,
  encryptGcm,
  encryptOaep,
  hmac,
  mostOaepBytes,
  type SignOptions,
  sign,
  verify,
  verifyHmac,
} from "./algorithms.js";
import { fromBase64, fromGoBase64, toBase64 } from "./base64.js";
import { type Fields, Invalid } from "./body.js";
import { type Encryption, encryptionRules, keyTypes, takesAad, typesThat } from "./key-types.js";
import type { ResponseWriter } from "./response-writer.js";
import { digestBytes, type Hash, hashes } from "./rsa-digest.js";
import type { UsableKey } from "./usable-key.js";

/** Fits into every signature: RSA-2048 with SHA-512 leaves 190. */
const mostSaltBytes = 128;
const noBytes = allocate(0);
const shownPrefix = utf8("vault:v");

export const uses: { readonly [U in TransitUse]: (key: UsableKey, fields: Fields, out: ResponseWriter) => void } = {
  encrypt: (key, fields, out) => {
    const plaintext = fields.bytes("plaintext");
    writeCiphertext(out, key, fields, encrypted(key, plaintext, fields));
  },

  decrypt: (key, fields, out) => writePlaintext(out, decrypted(key, fields)),

  unwrap: (key, fields, out) => {
    mustBe(key, "unwrap", ({ unwraps }) => unwraps);
    const fileKey = unwrapped(key, stanzaPart(fields, "share"), stanzaPart(fields, "wrapped"));
    out.text('"fileKey":"');
    out.base64(fileKey);
    out.text('"');
  },

  rewrap: (key, fields, out) => writeCiphertext(out, key, fields, encrypted(key, decrypted(key, fields), fields)),

  sign: (key, fields, out) => {
    mustBe(key, "sign", ({ signature }) => signature !== null);
    const version = requestedVersion(key, fields);
    const { input, options } = toSign(key, fields);
    const signature = sign(key.info.type, key.privateKey(version), () => key.privatePart(version), input, options);
    const isUrl = (keyTypes[key.info.type].signature === "ecdsa" || fields.isForVault) && options.marshaling === "jws";
    beginShown(out, "signature", version);
    if (isUrl) out.bytes(urlBase64(signature));
    else out.base64(signature);
    endShown(out, fields, version);
  },

  verify: (key, fields, out) => {
    if (fields.isForVault && fields.has("hmac") && fields.has("signature"))
      throw new Invalid("provide one of signature or hmac");
    if (fields.has("hmac")) return writeValidity(out, verifyMac(key, fields));
    mustBe(key, "verify", ({ signature }) => signature !== null);
    const { version, bytes } = parsed(key, fields, "signature");
    const { input, options } = toSign(key, fields);
    writeValidity(out, verify(key.info.type, key.publicKey(version), input, bytes, options));
  },

  hmac: (key, fields, out) => {
    const version = requestedVersion(key, fields);
    const mac = hmac(macKey(key, version), requestedHash(fields), fields.bytes("input"));
    beginShown(out, "hmac", version);
    out.base64(mac);
    out.text('"');
  },

  datakey: (key, fields, out) => {
    const bits = fields.whole("bits", 128, 512, 256);
    if (![128, 256, 512].includes(bits)) throw new Invalid("bits must be 128, 256 or 512");
    const dataKey = randomize(allocate(bits / 8));
    try {
      const plaintext = concatScratch(dataKey);
      const ciphertext = encrypted(key, plaintext, fields);
      if (fields.flag("plaintext", true)) {
        writePlaintext(out, plaintext);
        out.text(",");
      }
      writeCiphertext(out, key, fields, ciphertext);
    } finally {
      wipe(dataKey);
    }
  },
};

/** Whether each input takes one of the messages that a version may encrypt. */
export function countsMessages(use: TransitUse, key: UsableKey): boolean {
  const encrypts = use === "encrypt" || use === "rewrap" || use === "datakey";
  return encrypts && encryptionRules(keyTypes[key.info.type])?.countsMessages === true;
}

/** Returns how many messages of each version are taken by inputs that name these; null: the newest. Others encrypt nothing. */
export function messagesTaken(key: UsableKey, named: readonly (number | null)[]): ReadonlyMap<number, number> {
  const taken = new Map<number, number>();
  for (const name of named) {
    const version = name ?? key.latest;
    if (version > key.latest || version < key.info.minDecryptionVersion) continue;
    taken.set(version, (taken.get(version) ?? 0) + 1);
  }
  return taken;
}

/** Returns the version that encrypts: of our own clients only the newest. @throws Invalid */
export function encryptionVersion(key: UsableKey, fields: Fields): number {
  const { latest } = key;
  const { minDecryptionVersion } = key.info;
  if (!fields.isForVault) {
    if (fields.whole("keyVersion", 1, latest, latest) === latest) return latest;
    throw new Invalid(`keyVersion must be ${latest}: a key encrypts with its newest version only`);
  }
  return fields.whole("keyVersion", minDecryptionVersion, latest, latest);
}

function requestedVersion(key: UsableKey, fields: Fields): number {
  return key.allowed(fields.whole("keyVersion", 1, Number.MAX_SAFE_INTEGER, key.latest));
}

type Cipher = {
  readonly encrypt: (key: UsableKey, version: number, plaintext: Uint8Array, aad: Uint8Array) => Uint8Array;
  /** Returns null for what this key has not encrypted. */
  readonly decrypt: (key: UsableKey, version: number, bytes: Uint8Array, aad: Uint8Array) => Uint8Array | null;
  /** The error text for clients of Vault when `decrypt` returns null. */
  readonly vaultProblem: string;
};

const ciphers: Readonly<Record<Encryption, Cipher>> = {
  gcm: {
    encrypt: (key, version, plaintext, aad) => encryptGcm(key.symmetricKey(version), plaintext, aad),
    decrypt: (key, version, bytes, aad) => decryptGcm(key.symmetricKey(version), bytes, aad),
    vaultProblem: "cipher: message authentication failed",
  },
  oaep: {
    encrypt: (key, version, plaintext) => {
      const { type } = key.info;
      const most = mostOaepBytes(type);
      if (plaintext.length <= most) return encryptOaep(key.publicKey(version), plaintext);
      throw new Invalid(`a key of type ${type} encrypts at most ${most} bytes: use a data key`);
    },
    decrypt: (key, version, bytes) => decryptOaep(key.privateKey(version), bytes),
    vaultProblem: "failed to RSA decrypt the ciphertext",
  },
};

function encrypted(key: UsableKey, plaintext: Uint8Array, fields: Fields): Uint8Array {
  const version = encryptionVersion(key, fields);
  const { cipher, aad } = requestedCipher(key, fields);
  return cipher.encrypt(key, version, plaintext, aad);
}

function decrypted(key: UsableKey, fields: Fields): Uint8Array {
  const { cipher, aad } = requestedCipher(key, fields);
  const { version, bytes } = parsed(key, fields, "ciphertext");
  const plaintext = cipher.decrypt(key, version, bytes, aad);
  if (plaintext !== null) return plaintext;
  const reasons = takesAad(keyTypes[key.info.type]) ? "another key or with another aad" : "another key";
  throw new Invalid(
    `the key ${key.name} does not decrypt this ciphertext: it is damaged, or was made with ${reasons}`,
    cipher.vaultProblem,
  );
}

/** A part of a stanza: both have 32 bytes. @throws Invalid */
function stanzaPart(fields: Fields, name: "share" | "wrapped"): Uint8Array {
  const bytes = fields.bytes(name);
  if (bytes.length === stanzaPartBytes) return bytes;
  throw new Invalid(`${name} must have ${stanzaPartBytes} bytes`);
}

/** Tries the versions that decrypt, newest first: a stanza does not name its recipient. @throws Invalid */
function unwrapped(key: UsableKey, share: Uint8Array, wrapped: Uint8Array): Uint8Array {
  for (let version = key.latest; version >= key.info.minDecryptionVersion; version--) {
    const fileKey = unwrapFileKey(key.privateKey(version), key.publicText(version), share, wrapped);
    if (fileKey === "low order") throw new Invalid("share is a point of low order: the stanza is not age's");
    if (fileKey !== null) return fileKey;
  }
  throw new Invalid(`the key ${key.name} does not unwrap this stanza: it is damaged, or for another recipient`);
}

/** @throws Invalid for a key that does not encrypt, and for an aad that it does not take */
function requestedCipher(key: UsableKey, fields: Fields): { readonly cipher: Cipher; readonly aad: Uint8Array } {
  const { type } = key.info;
  mustBe(
    key,
    "encrypt",
    ({ encryption }) => encryption !== null,
    `message encryption not supported for key type ${type}`,
  );
  const { encryption } = keyTypes[type];
  if (encryption === null) throw new Error("a key that does not encrypt was not refused");
  const aad = fields.optionalBytes("aad");
  if (aad !== undefined && !takesAad(keyTypes[type]))
    throw new Invalid(`aad works with keys of type ${typesThat(takesAad)} only`);
  return { cipher: ciphers[encryption], aad: aad ?? noBytes };
}

function toSign(key: UsableKey, fields: Fields): { readonly input: Uint8Array; readonly options: SignOptions } {
  const hash = requestedHash(fields);
  const isEd25519 = keyTypes[key.info.type].signature === "ed25519";
  const options: SignOptions = {
    hash,
    // Vault's clients expect an Ed25519 signature of what they call a digest.
    isDigest: fields.flag("prehashed", false) && !(fields.isForVault && isEd25519),
    marshaling: fields.choice("marshaling", ["asn1", "jws"], "asn1"),
    padding: fields.choice("signatureAlgorithm", ["pss", "pkcs1v15"], "pss"),
    ...(fields.has("saltLength") && { saltLength: fields.whole("saltLength", 0, mostSaltBytes, 0) }),
  };
  const input = fields.bytes("input");
  if (!options.isDigest) return { input, options };
  if (isEd25519) throw new Invalid("prehashed does not work with Ed25519: send the message itself");
  if (input.length === digestBytes[hash]) return { input, options };
  throw new Invalid(`input must be a digest of ${digestBytes[hash]} bytes: prehashed is true`);
}

function verifyMac(key: UsableKey, fields: Fields): boolean {
  const { version, bytes } = parsed(key, fields, "hmac");
  return verifyHmac(macKey(key, version), requestedHash(fields), fields.bytes("input"), bytes);
}

function macKey(key: UsableKey, version: number): Uint8Array {
  mustBe(key, "make a MAC", ({ macKeyAt }) => macKeyAt !== null);
  return key.privatePart(version).subarray(keyTypes[key.info.type].macKeyAt ?? 0);
}

function requestedHash(fields: Fields): Hash {
  return hashes[fields.choice("hash", ["sha2-256", "sha2-384", "sha2-512"], "sha2-256")];
}

function mustBe(key: UsableKey, verb: string, can: Parameters<typeof typesThat>[0], forVault?: string): void {
  const { type } = key.info;
  if (can(keyTypes[type])) return;
  throw new Invalid(
    `the key ${key.name} is of type ${type} and cannot ${verb}: use a key of type ${typesThat(can)}`,
    forVault ?? `key type ${type} does not support ${verb === "sign" ? "signing" : "this: use a key of another type"}`,
  );
}

function writePlaintext(out: ResponseWriter, bytes: Uint8Array): void {
  out.text('"plaintext":"');
  out.base64(bytes);
  out.text('"');
}

function writeValidity(out: ResponseWriter, isValid: boolean): void {
  out.text(`"valid":${isValid}`);
}

function writeCiphertext(out: ResponseWriter, key: UsableKey, fields: Fields, bytes: Uint8Array): void {
  const version = encryptionVersion(key, fields);
  beginShown(out, "ciphertext", version);
  out.base64(bytes);
  endShown(out, fields, version);
}

/** Ciphertexts, signatures and MACs are written as Vault's clients know them. */
const shownStarts = {
  ciphertext: '"ciphertext":"vault:v',
  signature: '"signature":"vault:v',
  hmac: '"hmac":"vault:v',
} as const;

function beginShown(out: ResponseWriter, name: keyof typeof shownStarts, version: number): void {
  out.text(shownStarts[name]);
  out.text(String(version));
  out.text(":");
}

/** Vault's clients get the version of the key. */
function endShown(out: ResponseWriter, fields: Fields, version: number): void {
  out.text(fields.isForVault ? `","key_version":${version}` : '"');
}

/** Reads the text of a ciphertext, signature or MAC. */
function parsed(
  key: UsableKey,
  fields: Fields,
  name: string,
): { readonly version: number; readonly bytes: Uint8Array } {
  const text = fields.text(name);
  const head = parsePrefix(text);
  const decode = fields.isForVault ? fromGoBase64 : fromBase64;
  const bytes = head && decode(text.subarray(head.length));
  if (bytes) return { version: key.allowed(head.version), bytes };
  const kind = name === "hmac" ? "HMAC" : name;
  throw new Invalid(
    `${name} must begin with vault:v, the key's version and a colon; base64 follows`,
    head ? `invalid ${kind}: could not decode base64` : `invalid ${kind}: no prefix`,
  );
}

/**
 * Returns the version in a text that begins with "vault:v", the version and a colon, and the length of that; null for others.
 * DANGER: what a client sends in place of a ciphertext may be its plaintext, of which no string may be made.
 */
function parsePrefix(text: Uint8Array): { readonly version: number; readonly length: number } | null {
  const digitsAt = shownPrefix.length;
  if (text.length < digitsAt || shownPrefix.some((byte, i) => byte !== text[i])) return null;
  let version = 0;
  let at = digitsAt;
  for (; at < text.length && at < digitsAt + mostVersionDigits && isDigit(text[at]); at++) {
    version = 10 * version + (text[at] ?? 0) - zero;
  }
  const isVersion = at > digitsAt && text[digitsAt] !== zero;
  return isVersion && at < text.length && text[at] === colon ? { version, length: at + 1 } : null;
}

const mostVersionDigits = 9;
const zero = 0x30;
const colon = 0x3a;
const plus = 0x2b;
const slash = 0x2f;
const equals = 0x3d;

/** The URL alphabet without padding (RFC 7515). */
function urlBase64(bytes: Uint8Array): Uint8Array {
  const text = toBase64(bytes);
  for (const [i, letter] of text.entries()) {
    if (letter === plus) text[i] = 0x2d;
    if (letter === slash) text[i] = 0x5f;
  }
  const end = text.indexOf(equals);
  return end < 0 ? text : text.subarray(0, end);
}

/** Random bytes for a client, as JSON. @throws Invalid */
export function randomResponse(fields: Fields): Bytes {
  const bytes = randomize(allocate(fields.whole("bytes", 1, 65_536, 32)));
  try {
    return concat(['{"random":"', toBase64(bytes), '"}']);
  } finally {
    wipe(bytes);
  }
}
