/**
 * Private keys in files: OpenSSH's own format (PROTOCOL.key of OpenSSH), PEM as OpenSSL writes it, and age's identities. All
 * become PKCS #8.
 */
import { createDecipheriv, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { bech32 } from "@scure/base";
import { pbkdf } from "bcrypt-pbkdf";
import { sshPublicKey } from "./ssh-public-key.js";
import { MalformedMessage, WireReader } from "./ssh-wire.js";

/** Types of transit keys that such files hold. */
export type FileKeyType = "ed25519" | "ecdsa-p256" | "x25519" | "rsa-2048" | "rsa-4096";

/** `der`: PKCS #8; the caller wipes it. */
export type FileKey = { readonly type: FileKeyType; readonly der: Buffer; readonly comment: string };

/** Why a file's key cannot be used. */
export class UnusableKey extends Error {
  readonly reason: "format" | "type" | "passphrase";

  constructor(reason: UnusableKey["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

const armor = /-----BEGIN OPENSSH PRIVATE KEY-----([\sA-Za-z0-9+/=]+)-----END OPENSSH PRIVATE KEY-----/;
const ageIdentities = /^AGE-SECRET-KEY-1\S+/gim;
const magic = "openssh-key-v1\0";
const pkcs8Prefixes = {
  ed25519: "302e020100300506032b657004220420",
  "ecdsa-p256": "3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420",
  x25519: "302e020100300506032b656e04220420",
} as const;

/** Reads a key with its passphrase, which may be null where it has none. @throws UnusableKey */
export function readKeyFile(bytes: Buffer, passphrase: Uint8Array | null): FileKey {
  const text = bytes.toString("latin1");
  const openSsh = armor.exec(text)?.[1];
  if (openSsh !== undefined) return readOpenSsh(Buffer.from(openSsh, "base64"), passphrase);
  const identities = text.match(ageIdentities);
  if (identities !== null) return readIdentity(identities);
  if (!text.includes("-----BEGIN ")) throw otherFormat();
  return readPem(bytes, /ENCRYPTED/.test(text) ? mustHave(passphrase) : null);
}

function mustHave(passphrase: Uint8Array | null): Uint8Array {
  if (passphrase !== null) return passphrase;
  throw new UnusableKey("passphrase", "the key has a passphrase");
}

function otherFormat(): UnusableKey {
  return new UnusableKey("format", "the file is no private key in OpenSSH's form, PEM or age's form");
}

/** Reads an identity of age, as age-keygen writes it. */
function readIdentity([identity = "", another]: readonly string[]): FileKey {
  if (another !== undefined) throw severalKeys();
  const { bytes } = bech32.decodeUnsafe(identity) === undefined ? { bytes: null } : bech32.decodeToBytes(identity);
  if (bytes?.length !== 32) throw damaged();
  try {
    return { type: "x25519", der: Buffer.concat([Buffer.from(pkcs8Prefixes.x25519, "hex"), bytes]), comment: "" };
  } finally {
    bytes.fill(0);
  }
}

function severalKeys(): UnusableKey {
  return new UnusableKey("format", "the file holds several keys");
}

function readPem(pem: Buffer, passphrase: Uint8Array | null): FileKey {
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, ...(passphrase && { passphrase: asBuffer(passphrase) }) });
  } catch {
    if (passphrase !== null) throw wrongPassphrase();
    throw otherFormat();
  }
  return { type: fileKeyType(key), der: key.export({ format: "der", type: "pkcs8" }), comment: "" };
}

/** Returns a view of the same bytes. */
function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

function fileKeyType({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): FileKeyType {
  if (type === "ed25519" || type === "x25519") return type;
  if (type === "ec" && details?.namedCurve === "prime256v1") return "ecdsa-p256";
  if (type === "rsa" && details?.modulusLength === 2048) return "rsa-2048";
  if (type === "rsa" && details?.modulusLength === 4096) return "rsa-4096";
  throw otherType();
}

function readOpenSsh(bytes: Buffer, passphrase: Uint8Array | null): FileKey {
  if (bytes.toString("latin1", 0, magic.length) !== magic) throw damaged();
  try {
    const reader = new WireReader(bytes.subarray(magic.length));
    const [cipher, kdf, options] = [reader.text(), reader.text(), reader.bytes()];
    if (reader.uint32() !== 1) throw severalKeys();
    const publicKey = reader.bytes();
    const sealed = reader.bytes();
    if (cipher === "none") return matching(parseFileKey(sealed), publicKey);
    const opened = decrypt(cipher, kdf, options, sealed, reader.rest(), mustHave(passphrase));
    try {
      return matching(parseFileKey(opened), publicKey);
    } finally {
      opened.fill(0);
    }
  } catch (error) {
    if (error instanceof MalformedMessage) throw damaged();
    throw error;
  }
}

const ciphers = { "aes256-ctr": [32, 16], "aes256-cbc": [32, 16], "aes256-gcm@openssh.com": [32, 12] } as const;

function decrypt(
  cipher: string,
  kdf: string,
  options: Buffer,
  sealed: Buffer,
  tag: Buffer,
  passphrase: Uint8Array,
): Buffer {
  if (kdf !== "bcrypt" || !(cipher in ciphers))
    throw new UnusableKey("format", `the key is encrypted with ${cipher}: use ssh-keygen -p -Z aes256-ctr first`);
  const [keyBytes, ivBytes] = ciphers[cipher as keyof typeof ciphers];
  const reader = new WireReader(options);
  const [salt, rounds] = [reader.bytes(), reader.uint32()];
  const derived = Buffer.alloc(keyBytes + ivBytes);
  pbkdf(passphrase, passphrase.length, salt, salt.length, derived, derived.length, rounds);
  try {
    return openWith(cipher, derived.subarray(0, keyBytes), derived.subarray(keyBytes), sealed, tag);
  } catch {
    throw wrongPassphrase();
  } finally {
    derived.fill(0);
  }
}

function openWith(cipher: string, key: Buffer, iv: Buffer, sealed: Buffer, tag: Buffer): Buffer {
  if (cipher === "aes256-gcm@openssh.com") {
    const decipher = createDecipheriv("aes-256-gcm", key, iv, { authTagLength: 16 }).setAuthTag(tag);
    return Buffer.concat([decipher.update(sealed), decipher.final()]);
  }
  const decipher = createDecipheriv(cipher === "aes256-cbc" ? "aes-256-cbc" : "aes-256-ctr", key, iv);
  decipher.setAutoPadding(false);
  return Buffer.concat([decipher.update(sealed), decipher.final()]);
}

function parseFileKey(opened: Buffer): FileKey {
  const reader = new WireReader(opened);
  const [check, again] = [reader.uint32(), reader.uint32()];
  if (check !== again) throw wrongPassphrase();
  const type = reader.text();
  if (type === "ssh-ed25519") {
    reader.bytes();
    return curveKey("ed25519", reader.bytes().subarray(0, 32), reader);
  }
  if (type === "ecdsa-sha2-nistp256") {
    reader.bytes();
    reader.bytes();
    return curveKey("ecdsa-p256", reader.bytes(), reader);
  }
  if (type === "ssh-rsa") return rsaKey(reader);
  throw otherType();
}

/** Returns the key if its public part is this one: any 32 bytes are a private key, and so damage does not show by itself. */
function matching(key: FileKey, publicKey: Buffer): FileKey {
  const privateKey = createPrivateKey({ key: key.der, format: "der", type: "pkcs8" });
  const pem = createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString();
  if (sshPublicKey(pem)?.equals(publicKey)) return key;
  throw damaged();
}

function curveKey(type: keyof typeof pkcs8Prefixes, digits: Buffer, reader: WireReader): FileKey {
  const secret = Buffer.alloc(32);
  const shortest = digits.length > 32 ? digits.subarray(digits.length - 32) : digits;
  shortest.copy(secret, 32 - shortest.length);
  const der = Buffer.concat([Buffer.from(pkcs8Prefixes[type], "hex"), secret]);
  secret.fill(0);
  return { type, der, comment: reader.text() };
}

function rsaKey(reader: WireReader): FileKey {
  const [n, e, d, qi, p, q] = [1, 2, 3, 4, 5, 6].map(() => reader.bytes());
  if (!n || !e || !d || !qi || !p || !q) throw damaged();
  const numbers = {
    n: parseNumber(n),
    e: parseNumber(e),
    d: parseNumber(d),
    qi: parseNumber(qi),
    p: parseNumber(p),
    q: parseNumber(q),
  };
  if (!isRsaKey(numbers)) throw damaged();
  const [dp, dq] = [numbers.p, numbers.q].map((prime) => numberBytes(numbers.d % (prime - 1n)));
  const text = (digits: Buffer = Buffer.alloc(0)) => digits.subarray(digits[0] === 0 ? 1 : 0).toString("base64url");
  const parts = {
    n: text(n),
    e: text(e),
    d: text(d),
    p: text(p),
    q: text(q),
    dp: text(dp),
    dq: text(dq),
    qi: text(qi),
  };
  const key = createPrivateKey({ key: { kty: "RSA", ...parts }, format: "jwk" });
  return { type: fileKeyType(key), der: key.export({ format: "der", type: "pkcs8" }), comment: reader.text() };
}

type RsaNumbers = Readonly<Record<"n" | "e" | "d" | "qi" | "p" | "q", bigint>>;

/** OpenSSL takes numbers that do not belong together, and signs with them what nothing verifies. */
function isRsaKey({ n, e, d, qi, p, q }: RsaNumbers): boolean {
  const areInverse = (one: bigint, other: bigint, modulus: bigint) => modulus > 1n && (one * other) % modulus === 1n;
  return n === p * q && areInverse(e, d, p - 1n) && areInverse(e, d, q - 1n) && areInverse(qi, q, p);
}

function parseNumber(digits: Buffer): bigint {
  return BigInt(`0x0${digits.toString("hex")}`);
}

function numberBytes(value: bigint): Buffer {
  const hex = value.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
}

function damaged(): UnusableKey {
  return new UnusableKey("format", "the private key in the file is damaged: use an intact copy");
}

function otherType(): UnusableKey {
  return new UnusableKey("type", "the key must be Ed25519, ECDSA with P-256, or RSA with 2048 or 4096 bits");
}

function wrongPassphrase(): UnusableKey {
  return new UnusableKey("passphrase", "the passphrase of the key is wrong");
}
