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
export function fromBase64(text: Uint8Array): Uint8Array | null {
  const length = lengthWithoutPadding(text);
  if (length === null || length % 4 === 1) return null;
  const bytes = scratch(Math.floor((length * 3) / 4));
  let bits = 0;
  let held = 0;
  let at = 0;
  for (let i = 0; i < length; i++) {
    const value = values[text[i] ?? 0] ?? invalid;
    if (value === invalid) return null;
    bits = ((bits << 6) | value) & 0xffffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes[at++] = bits >> held;
  }
  return (bits & ((1 << held) - 1)) === 0 ? bytes : null;
}

/** Padding is optional, and where it is given, complete. */
function lengthWithoutPadding(text: Uint8Array): number | null {
  let length = text.length;
  while (length > 0 && length > text.length - 2 && text[length - 1] === padding) length--;
  return length === text.length || text.length % 4 === 0 ? length : null;
}

/** Encodes with the standard alphabet and padding, in scratch memory. */
export function toBase64(bytes: Uint8Array): Uint8Array {
  const text = scratch(4 * Math.ceil(bytes.length / 3));
  let at = 0;
  for (let i = 0; i < bytes.length; i += 3) {
    const group = ((bytes[i] ?? 0) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    for (let shift = 18; shift >= 0; shift -= 6) text[at++] = letters[(group >> shift) & 63] ?? 0;
  }
  const missing = (3 - (bytes.length % 3)) % 3;
  text.fill(padding, text.length - missing);
  return text;
}
