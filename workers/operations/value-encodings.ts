/**
 * Encodings in which a value is searched for, as bytes in scratch memory: UTF-16, hex, and base64 at each of the three places
 * within a group where the value may begin, as in `user:password` of Basic authentication.
 */
import { scratch, utf8 } from "../memory.js";
import { toBase64 } from "../transit/base64.js";

/** Limit in bytes: a larger value is searched for only as it is. */
const mostEncoded = 64 * 1024;

/** Limit in bytes for hex and UTF-16: a larger value, such as a keystore, is hardly ever written so. */
const mostSpread = 4 * 1024;

const groupBytes = 3;
const [lowerHex, upperHex] = [utf8("0123456789abcdef"), utf8("0123456789ABCDEF")];

export function encodeValue(value: Uint8Array, isText: boolean): readonly Uint8Array[] {
  if (value.length > mostEncoded) return [];
  if (value.length > mostSpread) return base64Parts(value);
  const wide = isText ? [utf16(value, 0), utf16(value, 1)] : [];
  return [
    ...base64Parts(value),
    inHex(value, lowerHex),
    inHex(value, upperHex),
    ...wide,
    ...wide.slice(0, 1).flatMap(base64Parts), // as PowerShell's encoded commands
  ];
}

/**
 * Returns the whole groups of the value's base64, for each place where it may begin within a group; also in the URL alphabet
 * where that differs.
 */
function base64Parts(value: Uint8Array): Uint8Array[] {
  return Array.from({ length: groupBytes }, (_, before) => {
    const start = (groupBytes - before) % groupBytes;
    const end = value.length - ((value.length - start) % groupBytes);
    return end > start ? [toBase64(value.subarray(start, end))] : [];
  })
    .flat()
    .flatMap((text) => (text.some(isOther) ? [text, inUrlAlphabet(text)] : [text]));
}

const [plus, slash, minus, underline] = [0x2b, 0x2f, 0x2d, 0x5f];

function isOther(byte: number): boolean {
  return byte === plus || byte === slash;
}

function inUrlAlphabet(text: Uint8Array): Uint8Array {
  const other = scratch(text.length);
  for (const [at, byte] of text.entries()) other[at] = byte === plus ? minus : byte === slash ? underline : byte;
  return other;
}

function inHex(value: Uint8Array, digits: Uint8Array): Uint8Array {
  const text = scratch(2 * value.length);
  for (const [at, byte] of value.entries()) {
    text[2 * at] = digits[byte >> 4] ?? 0;
    text[2 * at + 1] = digits[byte & 15] ?? 0;
  }
  return text;
}

/** Encodes a UTF-8 text. `low`: where in each pair the low byte is, 0 in little endian and 1 in big endian. */
function utf16(value: Uint8Array, low: 0 | 1): Uint8Array {
  const text = scratch(2 * value.length); // no character has more units than bytes of UTF-8
  let end = 0;
  const put = (unit: number) => {
    text[end + low] = unit & 0xff;
    text[end + 1 - low] = unit >> 8;
    end += 2;
  };
  for (let at = 0; at < value.length; ) {
    const length = sequenceLength(value[at] ?? 0);
    let point = length === 1 ? (value[at] ?? 0) : (value[at] ?? 0) & (0xff >> (length + 1));
    for (let i = 1; i < length; i++) point = (point << 6) | ((value[at + i] ?? 0) & 0x3f);
    if (point > 0xffff) {
      put(0xd800 | ((point - 0x10000) >> 10));
      put(0xdc00 | ((point - 0x10000) & 0x3ff));
    } else put(point);
    at += length;
  }
  return text.subarray(0, end);
}

/** Returns how many bytes a character of UTF-8 has that begins with this byte. */
function sequenceLength(first: number): number {
  if (first < 0xc0) return 1;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}
