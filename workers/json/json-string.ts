/** JSON strings (RFC 8259 section 7) as bytes: decoded into memory that can be wiped, written as JSON.stringify does. */
import { allocate, decodeText, scratch, utf8 } from "../memory.js";
import { copySecret } from "../registers.js";

export function code(character: string): number {
  return character.charCodeAt(0);
}

export const quote = code('"');
export const backslash = code("\\");
export const letterU = code("u");

/** A decoded JSON string. It is not well-formed when it has a lone surrogate, which UTF-8 cannot express. */
export class JsonText {
  readonly bytes: Uint8Array;
  readonly wellFormed: boolean;

  constructor(bytes: Uint8Array, wellFormed: boolean) {
    this.bytes = bytes;
    this.wellFormed = wellFormed;
  }

  /** For texts that are not secret. */
  toString(): string {
    return decodeText(this.bytes);
  }
}

/** Returns where a string is decoded to. It never becomes longer. */
export type Memory = (escaped: Uint8Array) => Uint8Array;

export const inScratch: Memory = (escaped) => scratch(escaped.length);

/** Over the escaped string itself: decoding never writes beyond what it has read. */
export const inPlace: Memory = (escaped) => escaped;

/** The letter after the backslash, and the character it means. */
const shortEscapes = new Map(
  Object.entries({ '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }).map(
    ([letter, meaning]) => [code(letter), code(meaning)],
  ),
);

export function isShortEscape(letter: number): boolean {
  return shortEscapes.has(letter);
}

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/** Returns the UTF-16 code unit of four hex digits, or -1. */
export function hexUnit(bytes: Uint8Array, at: number): number {
  let unit = 0;
  for (let i = at; i < at + 4; i++) {
    const digit = hexDigit(bytes[i] ?? 0);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

function hexDigit(byte: number): number {
  if (isDigit(byte)) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Decodes the escapes of a string that was checked before. Decoding never makes it longer. */
export function decodeString(escaped: Uint8Array, memory: Memory): JsonText {
  const decoded = memory(escaped);
  const firstEscape = escaped.indexOf(backslash);
  let length = firstEscape < 0 ? escaped.length : firstEscape;
  copySecret(decoded, escaped.subarray(0, length)); // most texts have no escape, and a native copy is the quickest
  let wellFormed = true;
  for (let at = length; at < escaped.length; ) {
    const byte = escaped[at++] ?? 0;
    if (byte !== backslash) {
      decoded[length++] = byte;
      continue;
    }
    const { point, size } = readEscape(escaped, at);
    if (point >= 0xd800 && point <= 0xdfff) wellFormed = false;
    length += writeUtf8(decoded, length, point);
    at += size;
  }
  return new JsonText(decoded.subarray(0, length), wellFormed);
}

/** Returns the code point of the escape after a backslash, and its length in bytes; a surrogate pair is one. */
export function readEscape(escaped: Uint8Array, at: number): { point: number; size: number } {
  const letter = escaped[at] ?? 0;
  if (letter !== letterU) return { point: shortEscapes.get(letter) ?? 0, size: 1 };
  const high = hexUnit(escaped, at + 1);
  const paired = escaped[at + 5] === backslash && escaped[at + 6] === letterU;
  const low = paired ? hexUnit(escaped, at + 7) : -1;
  if (high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff) {
    return { point: 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), size: 11 };
  }
  return { point: high, size: 5 };
}

function writeUtf8(target: Uint8Array, at: number, point: number): number {
  if (point < 0x80) {
    target[at] = point;
    return 1;
  }
  const tail = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  target[at] = ([0, 0xc0, 0xe0, 0xf0][tail] ?? 0) | (point >> (6 * tail));
  for (let i = 1; i <= tail; i++) target[at + i] = 0x80 | ((point >> (6 * (tail - i))) & 0x3f);
  return tail + 1;
}

const hexDigits = utf8("0123456789abcdef");
const writtenEscapes = new Map([...shortEscapes].filter(([letter]) => letter !== code("/")).map(([l, m]) => [m, l]));

/** The written length of each byte. A table, since a megabyte has a million lookups. */
const writtenLengths = allocate(256).map((_, byte) => (writtenEscapes.has(byte) ? 2 : byte < 0x20 ? 6 : 1));

/** The letter after the backslash. */
const writtenLetters = allocate(256).map((_, byte) => writtenEscapes.get(byte) ?? letterU);

/** Writes valid UTF-8 as a JSON string with quotes, byte for byte as `JSON.stringify` does, in scratch memory. */
export function writeString(text: Uint8Array): Uint8Array {
  let length = 2;
  for (let i = 0; i < text.length; i++) length += writtenLengths[text[i] ?? 0] ?? 0;
  const json = scratch(length);
  let at = 0;
  json[at++] = quote;
  for (let from = 0; from < text.length; ) {
    const to = endOfPlain(text, from);
    copyRun(text, from, to, json, at);
    at += to - from;
    if (to < text.length) at += writeEscape(json, at, text[to] ?? 0);
    from = to + 1;
  }
  json[at] = quote;
  return json;
}

/** A native copy is slow to begin: between a million escapes it would take longer than all else. */
const shortRun = 32;

function copyRun(text: Uint8Array, from: number, to: number, json: Uint8Array, at: number): void {
  if (to - from > shortRun) copySecret(json, text.subarray(from, to), at);
  else for (let i = from; i < to; i++) json[at + i - from] = text[i] ?? 0;
}

/** Returns where the next byte is that must be escaped. */
function endOfPlain(text: Uint8Array, from: number): number {
  let to = from;
  while (to < text.length && writtenLengths[text[to] ?? 0] === 1) to++;
  return to;
}

function writeEscape(json: Uint8Array, at: number, byte: number): number {
  json[at] = backslash;
  json[at + 1] = writtenLetters[byte] ?? letterU;
  if (writtenLengths[byte] === 2) return 2;
  json[at + 2] = 0x30;
  json[at + 3] = 0x30;
  json[at + 4] = hexDigits[byte >> 4] ?? 0;
  json[at + 5] = hexDigits[byte & 15] ?? 0;
  return 6;
}
