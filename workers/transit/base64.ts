/** Base64 (RFC 4648, both alphabets) on bytes: texts of secrets never become strings. */
import { allocate, scratch } from "../memory.js";

const standard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const letters = allocate(64).map((_, i) => standard.charCodeAt(i));
const padding = 0x3d;
const invalid = 0xff;

/** The value of each byte; "-" and "_" of the URL alphabet as "+" and "/". */
const values = allocate(256).fill(invalid);
for (const [i, letter] of letters.entries()) values[letter] = i;
values["-".charCodeAt(0)] = 62;
values["_".charCodeAt(0)] = 63;

/**
 * Decodes either alphabet, with or without padding, into scratch memory. Returns null when the text is malformed: another
 * character, a wrong length, or bits behind the last byte.
 */
export function fromBase64(text: Uint8Array, allowsBitsBehind = false): Uint8Array | null {
  const length = lengthWithoutPadding(text);
  if (length === null || length % 4 === 1) return null;
  const bytes = scratch(Math.floor((length * 3) / 4));
  let at = 0;
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    const a = valueAt(text, i);
    const b = valueAt(text, i + 1);
    const c = valueAt(text, i + 2);
    const d = valueAt(text, i + 3);
    if ((a | b | c | d) > 63) return null;
    bytes[at] = (a << 2) | (b >> 4);
    bytes[at + 1] = (b << 4) | (c >> 2);
    bytes[at + 2] = (c << 6) | d;
    at += 3;
  }
  if (i === length) return bytes;
  const a = valueAt(text, i);
  const b = valueAt(text, i + 1);
  const c = length - i === 3 ? valueAt(text, i + 2) : 0;
  const isWhole = allowsBitsBehind || (length - i === 3 ? (c & 3) === 0 : (b & 15) === 0);
  if ((a | b | c) > 63 || !isWhole) return null;
  bytes[at++] = (a << 2) | (b >> 4);
  if (at < bytes.length) bytes[at] = (b << 4) | (c >> 2);
  return bytes;
}

/** Like `fromBase64`, but also accepts what Go's decoder does: line breaks anywhere, and bits after the last byte. */
export function fromGoBase64(text: Uint8Array): Uint8Array | null {
  if (!text.includes(lineFeed) && !text.includes(carriageReturn)) return fromBase64(text, true);
  const joined = scratch(text.length);
  let length = 0;
  for (const byte of text) if (byte !== lineFeed && byte !== carriageReturn) joined[length++] = byte;
  return fromBase64(joined.subarray(0, length), true);
}

const [lineFeed, carriageReturn] = [0x0a, 0x0d];

/** More than 63: no letter of the alphabets. */
function valueAt(text: Uint8Array, i: number): number {
  return values[text[i] ?? 0] ?? invalid;
}

/** Padding is optional, and where it is given, complete. */
function lengthWithoutPadding(text: Uint8Array): number | null {
  let length = text.length;
  while (length > 0 && length > text.length - 2 && text[length - 1] === padding) length--;
  return length === text.length || text.length % 4 === 0 ? length : null;
}

/** Encodes with the standard alphabet and padding, in scratch memory. */
export function toBase64(bytes: Uint8Array): Uint8Array {
  const text = scratch(base64Length(bytes.length));
  putBase64(text, 0, bytes);
  return text;
}

/** The length of so many bytes in base64. */
export function base64Length(length: number): number {
  return 4 * Math.ceil(length / 3);
}

/** Encodes as `toBase64`, into `target`. */
export function putBase64(target: Uint8Array, at: number, bytes: Uint8Array): void {
  const { length } = bytes;
  let end = at;
  for (let i = 0; i < length; i += 3) {
    const group = ((bytes[i] ?? 0) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    target[end] = letters[group >> 18] ?? 0;
    target[end + 1] = letters[(group >> 12) & 63] ?? 0;
    target[end + 2] = letters[(group >> 6) & 63] ?? 0;
    target[end + 3] = letters[group & 63] ?? 0;
    end += 4;
  }
  const missing = (3 - (length % 3)) % 3;
  for (let i = 1; i <= missing; i++) target[end - i] = padding;
}
