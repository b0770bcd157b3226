/**
 * Time-based one-time codes (RFC 6238, and Steam's) of a seed, in every spelling that programs write. No part of a seed
 * becomes a string.
 *
 *   GEZDGNBVGY3TQOJQ                                        base32, also with spaces, hyphens or padding
 *   otpauth://totp/LABEL?secret=…&algorithm=…&digits=…      the type and the names in either case, empty members as absent
 *   otpauth://totp/LABEL?secret=…&encoder=steam             KeePassXC; also otpauth://steam/… and steam://SECRET
 *   key=…&size=…&step=…&otpHashMode=…&encoding=…            KeeOtp
 */
import { createHmac } from "node:crypto";
import { allocate, decodeText, fromLatin1, readUint32, scratch, utf8 } from "../memory.js";
import { fromBase64 } from "./base64.js";

/** `validFor` and `period`: seconds. `isUrl`: the value says itself that it is a seed, and not a password, say. */
export type OneTimeCode = {
  readonly code: string;
  readonly validFor: number;
  readonly period: number;
  readonly isUrl: boolean;
};

type Seed = {
  readonly secret: Uint8Array;
  readonly algorithm: string;
  readonly digits: number;
  readonly period: number;
  readonly isSteam: boolean;
  readonly isUrl: boolean;
};

/** Fewer characters are no secret that an issuer gives: 16 are 80 bits. */
const fewestCharacters = 16;

/** A longer value is no seed: a million empty fields would hold up everything else that waits for the key worker. */
const mostBytes = 4096;

const otpauth = utf8("otpauth://");
const migration = utf8("otpauth-migration://");
const steam = utf8("steam://");
const keeOtp = utf8("key=");
const slash = 0x2f;
const question = 0x3f;
const ampersand = 0x26;
const equals = 0x3d;
const hash = 0x23;
const steamLetters = "23456789BCDFGHJKMNPQRTVWXY";
const steamCharacters = 5;

/** A seed that cannot be used: the invalid field, and its allowed values. */
export type UnusableSeed = { readonly problem: string };

/** Returns the code at a time in milliseconds, or null when the value is no seed. */
export function oneTimeCode(value: Uint8Array, now: number): OneTimeCode | UnusableSeed | null {
  const seed = value.length <= mostBytes ? parseSeed(trimmed(value)) : null;
  if (seed === null || "problem" in seed) return seed;
  const seconds = Math.floor(now / 1000);
  const mac = createHmac(seed.algorithm, seed.secret)
    .update(counterBytes(Math.floor(seconds / seed.period)))
    .digest();
  const at = (mac.at(-1) ?? 0) & 0x0f;
  const number = readUint32(mac, at) % 2 ** 31;
  const { period, isUrl, isSteam, digits } = seed;
  const code = isSteam ? steamCode(number) : String(number % 10 ** digits).padStart(digits, "0");
  return { code, validFor: period - (seconds % period), period, isUrl };
}

function steamCode(number: number): string {
  const letter = (i: number) => steamLetters[Math.floor(number / steamLetters.length ** i) % steamLetters.length];
  return Array.from({ length: steamCharacters }, (_, i) => letter(i)).join("");
}

function parseSeed(value: Uint8Array): Seed | UnusableSeed | null {
  if (startsWith(value, migration)) return { problem: "it is an export of several seeds: store the URL of each" };
  if (startsWith(value, otpauth)) return seedOfUrl(value.subarray(otpauth.length));
  if (startsWith(value, steam)) return checked(steamSeed(base32(withoutSlash(value.subarray(steam.length)))));
  if (startsWith(value, keeOtp)) return seedOfKeeOtp(queryFields(value, plus));
  const bare = base32(value);
  return isLongEnough(bare) ? { ...defaults, secret: bare, isUrl: false } : null;
}

function isLongEnough(secret: Uint8Array | null): secret is Uint8Array {
  return secret !== null && secret.length >= Math.floor((fewestCharacters * 5) / 8);
}

const defaults = { algorithm: "sha1", digits: 6, period: 30, isSteam: false };

/** A seed that is not checked: null for an invalid secret or algorithm, 0 for an invalid number. */
type Draft = Omit<Seed, "secret" | "algorithm" | "isUrl"> & {
  readonly secret: Uint8Array | null;
  readonly algorithm: string | null;
};

function steamSeed(secret: Uint8Array | null): Draft {
  return { ...defaults, secret, isSteam: true };
}

/** `rest` follows the scheme. The label may be missing. */
function seedOfUrl(rest: Uint8Array): Seed | UnusableSeed {
  const start = rest.indexOf(question);
  const type = rest.subarray(0, indexOfFirst(rest, slash, question, hash));
  const fields = queryFields(rest.subarray(start < 0 ? rest.length : start + 1));
  const secret = base32(fields.get("secret") ?? allocate(0));
  const encoder = fields.get("encoder");
  if (isText(type, "hotp")) return { problem: counterBased };
  if (isText(type, "steam") || (isText(type, "totp") && encoder !== undefined && isText(encoder, "steam")))
    return checked({ ...steamSeed(secret), period: numberIn(fields, "period", 30) });
  if (!isText(type, "totp")) return { problem: "its type must be totp" };
  if (encoder !== undefined) return { problem: "its encoder must be steam" };
  const [digits, period] = [numberIn(fields, "digits", 6), numberIn(fields, "period", 30)];
  return checked({ secret, algorithm: findAlgorithm(fields.get("algorithm")), digits, period, isSteam: false });
}

const counterBased = "it is counter-based (HOTP), and only time-based codes (TOTP) are computed";

/** A value that has no valid key is not KeeOtp's: a password may begin with `key=`. */
function seedOfKeeOtp(fields: ReadonlyMap<FieldName, Uint8Array>): Seed | UnusableSeed | null {
  const encoding = fields.get("encoding");
  const type = fields.get("type");
  const decode = encoding === undefined ? base32 : encodings.find(([name]) => isText(encoding, name))?.[1];
  if (decode === undefined) return { problem: "its encoding must be Base32, Base64, Hex or UTF8" };
  const secret = decode(fields.get("key") ?? allocate(0));
  if (!isLongEnough(secret)) return null;
  if (type !== undefined && isText(type, "hotp")) return { problem: counterBased };
  if (type !== undefined && isText(type, "steam")) return checked(steamSeed(secret));
  if (type !== undefined && !isText(type, "totp")) return { problem: "its type must be totp" };
  const [digits, period] = [numberIn(fields, "size", 6), numberIn(fields, "step", 30)];
  return checked({ secret, algorithm: findAlgorithm(fields.get("otphashmode")), digits, period, isSteam: false });
}

/** DANGER: the problem must not quote a field: any may hold what is secret. */
function checked({ secret, algorithm, digits, period, isSteam }: Draft): Seed | UnusableSeed {
  if (secret === null || secret.length === 0) return { problem: "its secret is missing, or not in base32" };
  if (algorithm === null) return { problem: "its algorithm must be SHA1, SHA256 or SHA512" };
  if (digits < 6 || digits > 8) return { problem: "its digits must be 6 to 8" };
  if (period < 1 || period > 3600) return { problem: "its period must be 1 to 3600 seconds" };
  return { secret, algorithm, digits, period, isSteam, isUrl: true };
}

const algorithms = ["1", "256", "512"].map((size) => {
  const names = ["sha", "sha-", "sha_"].map((name) => `${name}${size}`);
  return {
    hash: `sha${size}`,
    spellings: ["", "hmac", "hmac-", "hmac_"].flatMap((hmac) => names.map((name) => hmac + name)),
  };
});

/** Takes `SHA-256`, `HmacSHA256`, `HMAC-SHA-256` and `hmac_sha256`; null is unknown. */
function findAlgorithm(field: Uint8Array | undefined): string | null {
  if (field === undefined) return "sha1";
  return algorithms.find(({ spellings }) => spellings.some((name) => isText(field, name)))?.hash ?? null;
}

const fewDigits = 4;

/** Returns 0, which no field may be, for what is no number in decimal digits: it may be a secret in the wrong place. */
function numberIn(fields: ReadonlyMap<FieldName, Uint8Array>, name: FieldName, absent: number): number {
  const field = fields.get(name);
  if (field === undefined) return absent;
  const text = field.length > fewDigits ? "" : decodeText(field);
  return /^\d+$/.test(text) ? Number(text) : 0;
}

const urlFields = ["secret", "algorithm", "digits", "period", "encoder"] as const;
const keeOtpFields = ["key", "size", "step", "type", "otphashmode", "encoding"] as const;
const fieldNames = [...urlFields, ...keeOtpFields];
type FieldName = (typeof fieldNames)[number];

/**
 * Returns the query's fields that are not empty; nothing of them becomes a string.
 * @param plusMeans byte that a `+` stands for: KeeOtp writes the base64 of a key with it, unescaped
 */
function queryFields(query: Uint8Array, plusMeans = space): Map<FieldName, Uint8Array> {
  const end = query.indexOf(hash);
  const fields = new Map<FieldName, Uint8Array>();
  for (const field of parts(end < 0 ? query : query.subarray(0, end), ampersand)) {
    const name = fieldNames.find((one) => field[one.length] === equals && isText(field.subarray(0, one.length), one));
    const value = name === undefined ? allocate(0) : trimmed(unescaped(field.subarray(name.length + 1), plusMeans));
    if (name !== undefined && value.length > 0) fields.set(name, value);
  }
  return fields;
}

/** Returns whether the bytes are this text, which is in lower case, in either case. */
function isText(bytes: Uint8Array, text: string): boolean {
  return bytes.length === text.length && bytes.every((byte, i) => lowerCase(byte) === text.charCodeAt(i));
}

function indexOfFirst(bytes: Uint8Array, ...ends: readonly number[]): number {
  const at = bytes.findIndex((byte) => ends.includes(byte));
  return at < 0 ? bytes.length : at;
}

function withoutSlash(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(0, indexOfFirst(bytes, slash, question, hash));
}

function parts(bytes: Uint8Array, separator: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  let start = 0;
  for (let at = bytes.indexOf(separator); at >= 0; at = bytes.indexOf(separator, start)) {
    found.push(bytes.subarray(start, at));
    start = at + 1;
  }
  return [...found, bytes.subarray(start)];
}

const percent = 0x25;
const plus = 0x2b;
const space = 0x20;

/** Percent-decodes. A malformed escape stays, and is no base32. */
function unescaped(text: Uint8Array, plusMeans: number): Uint8Array {
  if (!text.includes(percent) && !text.includes(plus)) return text;
  const decoded = scratch(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const literal = text[at] === plus ? plusMeans : (text[at] ?? 0);
    const byte = literal === percent ? hexByte(text, at + 1) : -1;
    if (byte >= 0) at += 2;
    decoded[length++] = byte >= 0 ? byte : literal;
  }
  return decoded.subarray(0, length);
}

function hexByte(text: Uint8Array, at: number): number {
  const [high, low] = [hexDigit(text[at]), hexDigit(text[at + 1])];
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

function hexDigit(byte = 0): number {
  return hexDigits.indexOf(byte | 0x20);
}

const hexDigits = utf8("0123456789abcdef");
const alphabet = utf8("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");

/** RFC 4648 section 6, in either case, with or without padding, spaces and hyphens; null for anything else. */
function base32(text: Uint8Array): Uint8Array | null {
  const bytes = scratch(text.length);
  let [bits, held, length] = [0, 0, 0];
  for (const byte of text) {
    if (byte === 0x20 || byte === 0x2d || byte === equals) continue;
    const value = alphabet.indexOf(byte >= 0x61 && byte <= 0x7a ? byte - 0x20 : byte);
    if (value < 0) return null;
    bits = ((bits << 5) | value) & 0xfff;
    held += 5;
    if (held < 8) continue;
    held -= 8;
    bytes[length++] = bits >> held;
  }
  return bytes.subarray(0, length);
}

/** Pairs of hex digits, with spaces between them or not; null for anything else. */
function hex(text: Uint8Array): Uint8Array | null {
  const digits = text.filter((byte) => byte !== 0x20);
  const bytes = scratch(digits.length >> 1);
  for (let i = 0; i < bytes.length; i++) bytes[i] = hexByte(digits, 2 * i);
  const isHex = digits.length % 2 === 0 && digits.every((byte) => hexDigit(byte) >= 0);
  digits.fill(0);
  return isHex ? bytes : null;
}

/** Encodings of a KeeOtp key. */
const encodings: readonly (readonly [name: string, decode: (text: Uint8Array) => Uint8Array | null])[] = [
  ["base32", base32],
  ["base64", fromBase64],
  ["hex", hex],
  ["utf8", (text) => text],
];

function counterBytes(counter: number): Uint8Array {
  const bytes = fromLatin1("\0".repeat(8));
  for (let i = 7, rest = counter; i >= 0; i--, rest = Math.floor(rest / 256)) bytes[i] = rest % 256;
  return bytes;
}

/** `start` is in lower case; letters are compared in either case. */
function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, i) => lowerCase(bytes[i]) === byte);
}

function lowerCase(byte = 0): number {
  return byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
}

function trimmed(value: Uint8Array): Uint8Array {
  const isSpace = (byte = 0) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
  let [start, end] = [0, value.length];
  while (start < end && isSpace(value[start])) start++;
  while (end > start && isSpace(value[end - 1])) end--;
  return value.subarray(start, end);
}
