/** Time-based one-time codes (RFC 6238) of a seed: an `otpauth://totp/` URL or base32. The seed never becomes a string. */
import { createHmac } from "node:crypto";
import { allocate, fromLatin1, readUint32, scratch, textOf, utf8 } from "../memory.js";

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
  readonly isUrl: boolean;
};

/** Fewer characters are no secret that an issuer gives: 16 are 80 bits. */
const fewestCharacters = 16;

/** A longer value is no seed: a million empty fields would hold up everything else that waits for the key worker. */
const mostBytes = 4096;

const scheme = utf8("otpauth://totp/");
const question = 0x3f;
const ampersand = 0x26;
const equals = 0x3d;
const hash = 0x23;
const algorithms: Readonly<Record<string, string>> = { SHA1: "sha1", SHA256: "sha256", SHA512: "sha512" };

/** What is wrong with a URL: the field, and what it may be. */
export type UnusableSeed = { readonly problem: string };

/** Returns the code at a time in milliseconds, or null when the value is no seed. */
export function oneTimeCode(value: Uint8Array, now: number): OneTimeCode | UnusableSeed | null {
  const seed = value.length <= mostBytes ? seedOf(trimmed(value)) : null;
  if (seed === null || "problem" in seed) return seed;
  const seconds = Math.floor(now / 1000);
  const mac = createHmac(seed.algorithm, seed.secret)
    .update(counterBytes(Math.floor(seconds / seed.period)))
    .digest();
  const at = (mac.at(-1) ?? 0) & 0x0f;
  const number = readUint32(mac, at) % 2 ** 31;
  const code = String(number % 10 ** seed.digits).padStart(seed.digits, "0");
  const { period, isUrl } = seed;
  return { code, validFor: period - (seconds % period), period, isUrl };
}

function seedOf(value: Uint8Array): Seed | UnusableSeed | null {
  if (!startsWith(value, scheme)) {
    const bare = base32(value);
    const isLong = bare !== null && bare.length >= Math.floor((fewestCharacters * 5) / 8);
    return isLong ? { secret: bare, algorithm: "sha1", digits: 6, period: 30, isUrl: false } : null;
  }
  const start = value.indexOf(question);
  const fields = fieldsOf(value.subarray(start < 0 ? value.length : start + 1));
  const text = (name: FieldName, absent: string) => shortText(fields.get(name)) ?? absent;
  const number = (name: FieldName, absent: string) => wholeNumber(text(name, absent));
  const secret = base32(fields.get("secret") ?? allocate(0));
  return checked(secret, text("algorithm", "SHA1"), number("digits", "6"), number("period", "30"));
}

/** As long as `SHA512`. */
const longestText = 6;

/** Returns "", which no field may be, for a longer text: it may be a secret in the wrong place. */
function shortText(field: Uint8Array | undefined): string | undefined {
  if (field === undefined) return undefined;
  return field.length > longestText ? "" : textOf(field);
}

/** Returns 0, which no field may be, for what is no number in decimal digits. */
function wholeNumber(text: string): number {
  return /^\d{1,4}$/.test(text) ? Number(text) : 0;
}

/** DANGER: the problem must not quote a field: any may hold what is secret. */
function checked(secret: Uint8Array | null, name: string, digits: number, period: number): Seed | UnusableSeed {
  const algorithm = algorithms[name.toUpperCase()];
  if (secret === null || secret.length === 0) return { problem: "its secret is missing, or not in base32" };
  if (algorithm === undefined) return { problem: "its algorithm must be SHA1, SHA256 or SHA512" };
  if (digits < 6 || digits > 8) return { problem: "its digits must be 6 to 8" };
  if (period < 1 || period > 3600) return { problem: "its period must be 1 to 3600 seconds" };
  return { secret, algorithm, digits, period, isUrl: true };
}

const fieldNames = ["secret", "algorithm", "digits", "period"] as const;
type FieldName = (typeof fieldNames)[number];

/** The query's fields; nothing of them becomes a string. */
function fieldsOf(query: Uint8Array): Map<FieldName, Uint8Array> {
  const end = query.indexOf(hash);
  const fields = new Map<FieldName, Uint8Array>();
  for (const field of parts(end < 0 ? query : query.subarray(0, end), ampersand)) {
    const name = fieldNames.find((one) => isNamed(field, one));
    if (name !== undefined) fields.set(name, unescaped(field.subarray(name.length + 1)));
  }
  return fields;
}

/** Whether a field has this name, in either case. */
function isNamed(field: Uint8Array, name: string): boolean {
  if (field[name.length] !== equals) return false;
  for (let i = 0; i < name.length; i++) if (((field[i] ?? 0) | 0x20) !== name.charCodeAt(i)) return false;
  return true;
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

/** Percent-decoded. A malformed escape stays, and is no base32. */
function unescaped(text: Uint8Array): Uint8Array {
  if (!text.includes(percent)) return text;
  const decoded = scratch(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] === percent ? hexByte(text, at + 1) : -1;
    if (byte >= 0) at += 2;
    decoded[length++] = byte >= 0 ? byte : (text[at] ?? 0);
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

function counterBytes(counter: number): Uint8Array {
  const bytes = fromLatin1("\0".repeat(8));
  for (let i = 7, rest = counter; i >= 0; i--, rest = Math.floor(rest / 256)) bytes[i] = rest % 256;
  return bytes;
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, i) => byte === (i < 7 ? (bytes[i] ?? 0) | 0x20 : bytes[i]) || byte === bytes[i]);
}

function trimmed(value: Uint8Array): Uint8Array {
  const isSpace = (byte = 0) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
  let [start, end] = [0, value.length];
  while (start < end && isSpace(value[start])) start++;
  while (end > start && isSpace(value[end - 1])) end--;
  return value.subarray(start, end);
}
