/**
 * Owns JSON as bytes (RFC 8259): a strict reader that takes known fields out of an object, and the writer of strings.
 *
 * It exists because `JSON.parse` makes strings, which nobody can wipe, and quotes its input in its errors. It accepts
 * exactly what `JSON.parse` accepts of UTF-8, decodes every string into memory of our own, and refuses without a reason.
 */
import { isUtf8 } from "node:buffer";
import { allocate, wipe } from "./memory.js";
import type { Bytes } from "./protocol.js";

/** A decoded JSON string. Not well-formed: it has a lone surrogate, which UTF-8 cannot express. */
export class JsonText {
  readonly bytes: Bytes;
  readonly wellFormed: boolean;

  constructor(bytes: Bytes, wellFormed: boolean) {
    this.bytes = bytes;
    this.wellFormed = wellFormed;
  }

  /** For texts that are not secret. */
  toString(): string {
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length).toString("utf8");
  }
}

/** What a field holds. Numbers, arrays and objects are checked and skipped: only their type is told. */
export type JsonValue = JsonText | boolean | null | "number" | "array" | "object";

class Malformed extends Error {}

type Cursor = { readonly bytes: Uint8Array; at: number };

const code = (character: string): number => character.charCodeAt(0);
const quote = code('"');
const backslash = code("\\");
const comma = code(",");
const colon = code(":");
const braceOpen = code("{");
const braceClose = code("}");
const bracketOpen = code("[");
const bracketClose = code("]");
const letterU = code("u");

/** The named fields of the object that `source` is, the last of equal names; null when it is not one JSON object. */
export function readObject(source: Uint8Array, names: readonly string[]): Map<string, JsonValue> | null {
  if (!isUtf8(source)) return null;
  const cursor: Cursor = { bytes: source, at: 0 };
  const fields = new Map<string, JsonValue>();
  try {
    readFields(cursor, names, fields);
    skipSpace(cursor);
    if (cursor.at !== source.length) throw new Malformed();
    return fields;
  } catch (error) {
    wipeFields(fields);
    if (error instanceof Malformed) return null;
    throw error;
  }
}

export function wipeFields(fields: Map<string, JsonValue>): void {
  for (const value of fields.values()) if (value instanceof JsonText) wipe(value.bytes);
}

function readFields(cursor: Cursor, names: readonly string[], fields: Map<string, JsonValue>): void {
  skipSpace(cursor);
  take(cursor, braceOpen);
  skipSpace(cursor);
  if (cursor.bytes[cursor.at] === braceClose) {
    cursor.at++;
    return;
  }
  for (;;) {
    skipSpace(cursor);
    const name = readString(cursor).toString();
    skipSpace(cursor);
    take(cursor, colon);
    if (names.includes(name)) keep(fields, name, readValue(cursor));
    else skipValue(cursor);
    skipSpace(cursor);
    if (cursor.bytes[cursor.at] !== comma) break;
    cursor.at++;
  }
  take(cursor, braceClose);
}

function keep(fields: Map<string, JsonValue>, name: string, value: JsonValue): void {
  const before = fields.get(name);
  if (before instanceof JsonText) wipe(before.bytes);
  fields.set(name, value);
}

function readValue(cursor: Cursor): JsonValue {
  skipSpace(cursor);
  if (cursor.bytes[cursor.at] === quote) return readString(cursor);
  return skipValue(cursor);
}

const literals: readonly (readonly [Uint8Array, true | false | null])[] = [
  [Buffer.from("true"), true],
  [Buffer.from("false"), false],
  [Buffer.from("null"), null],
];

/** Checks and passes one value of any type. */
function skipValue(cursor: Cursor): Exclude<JsonValue, JsonText> {
  skipSpace(cursor);
  const first = cursor.bytes[cursor.at];
  if (first === braceOpen || first === bracketOpen) {
    skipContainer(cursor);
    return first === braceOpen ? "object" : "array";
  }
  return skipScalar(cursor);
}

function skipScalar(cursor: Cursor): Exclude<JsonValue, JsonText> {
  for (const [spelling, value] of literals) {
    if (startsWith(cursor, spelling)) {
      cursor.at += spelling.length;
      return value;
    }
  }
  if (cursor.bytes[cursor.at] === quote) {
    skipString(cursor);
    return "object"; // the type of a skipped string is never looked at
  }
  skipNumber(cursor);
  return "number";
}

function startsWith(cursor: Cursor, spelling: Uint8Array): boolean {
  return spelling.every((byte, i) => cursor.bytes[cursor.at + i] === byte);
}

/** Nesting is counted, not recursed into: a body of a million brackets must not overflow the stack. */
function skipContainer(cursor: Cursor): void {
  const closers: number[] = [];
  let afterValue = openContainer(cursor, closers);
  while (closers.length > 0) {
    skipSpace(cursor);
    if (afterValue) {
      afterValue = false;
      if (cursor.bytes[cursor.at] === closers.at(-1)) {
        cursor.at++;
        closers.pop();
        afterValue = true;
        continue;
      }
      take(cursor, comma);
      skipSpace(cursor);
    }
    if (closers.at(-1) === braceClose) skipName(cursor);
    const next = cursor.bytes[cursor.at];
    if (next === braceOpen || next === bracketOpen) {
      afterValue = openContainer(cursor, closers);
      continue;
    }
    skipScalar(cursor);
    afterValue = true;
  }
}

/** Goes inside; true when the container is empty, so that its closer comes next. */
function openContainer(cursor: Cursor, closers: number[]): boolean {
  const closer = cursor.bytes[cursor.at] === braceOpen ? braceClose : bracketClose;
  cursor.at++;
  closers.push(closer);
  skipSpace(cursor);
  return cursor.bytes[cursor.at] === closer;
}

function skipName(cursor: Cursor): void {
  skipString(cursor);
  skipSpace(cursor);
  take(cursor, colon);
  skipSpace(cursor);
}

function skipSpace(cursor: Cursor): void {
  for (;;) {
    const byte = cursor.bytes[cursor.at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
    cursor.at++;
  }
}

function take(cursor: Cursor, byte: number): void {
  if (cursor.bytes[cursor.at] !== byte) throw new Malformed();
  cursor.at++;
}

function skipNumber(cursor: Cursor): void {
  if (cursor.bytes[cursor.at] === code("-")) cursor.at++;
  if (cursor.bytes[cursor.at] === code("0")) cursor.at++;
  else skipDigits(cursor);
  if (cursor.bytes[cursor.at] === code(".")) {
    cursor.at++;
    skipDigits(cursor);
  }
  if (((cursor.bytes[cursor.at] ?? 0) | 0x20) === code("e")) {
    cursor.at++;
    const sign = cursor.bytes[cursor.at];
    if (sign === code("+") || sign === code("-")) cursor.at++;
    skipDigits(cursor);
  }
}

function skipDigits(cursor: Cursor): void {
  const start = cursor.at;
  while (isDigit(cursor.bytes[cursor.at])) cursor.at++;
  if (cursor.at === start) throw new Malformed();
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/** Passes a string, checking its escapes; answers where its content began and ended. */
function skipString(cursor: Cursor): { start: number; end: number } {
  take(cursor, quote);
  const start = cursor.at;
  for (;;) {
    const byte = cursor.bytes[cursor.at];
    if (byte === undefined || byte < 0x20) throw new Malformed();
    cursor.at++;
    if (byte === quote) return { start, end: cursor.at - 1 };
    if (byte === backslash) skipEscape(cursor);
  }
}

/** What stands after the backslash, and what it means. */
const shortEscapes = new Map(
  Object.entries({ '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }).map(
    ([letter, meaning]) => [code(letter), code(meaning)],
  ),
);

function skipEscape(cursor: Cursor): void {
  const letter = cursor.bytes[cursor.at] ?? 0;
  cursor.at++;
  if (shortEscapes.has(letter)) return;
  if (letter !== letterU || hexUnit(cursor.bytes, cursor.at) < 0) throw new Malformed();
  cursor.at += 4;
}

/** The UTF-16 code unit that four hex digits spell, or -1. */
function hexUnit(bytes: Uint8Array, at: number): number {
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

function readString(cursor: Cursor): JsonText {
  const { start, end } = skipString(cursor);
  return decode(cursor.bytes.subarray(start, end));
}

/** Undoes the escapes of a string that `skipString` has checked. Decoding never makes it longer. */
function decode(escaped: Uint8Array): JsonText {
  const decoded = allocate(escaped.length);
  let wellFormed = true;
  let length = 0;
  for (let at = 0; at < escaped.length; ) {
    const byte = escaped[at] ?? 0;
    if (byte !== backslash) {
      decoded[length++] = byte;
      at++;
      continue;
    }
    const { point, size } = readEscape(escaped, at + 1);
    if (point >= 0xd800 && point <= 0xdfff) wellFormed = false;
    length += writeUtf8(decoded, length, point);
    at += 1 + size;
  }
  return new JsonText(decoded.subarray(0, length), wellFormed);
}

/** The code point of the escape after a backslash, and how many bytes spell it; a surrogate pair is one. */
function readEscape(escaped: Uint8Array, at: number): { point: number; size: number } {
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

function writeUtf8(target: Bytes, at: number, point: number): number {
  if (point < 0x80) {
    target[at] = point;
    return 1;
  }
  const tail = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  target[at] = ([0, 0xc0, 0xe0, 0xf0][tail] ?? 0) | (point >> (6 * tail));
  for (let i = 1; i <= tail; i++) target[at + i] = 0x80 | ((point >> (6 * (tail - i))) & 0x3f);
  return tail + 1;
}

const hexDigits = Buffer.from("0123456789abcdef");
const writtenEscapes = new Map([...shortEscapes].filter(([letter]) => letter !== code("/")).map(([l, m]) => [m, l]));

/** The JSON string, quotes included, of valid UTF-8: byte for byte what `JSON.stringify` writes. */
export function writeString(text: Uint8Array): Bytes {
  const json = allocate(text.reduce((sum, byte) => sum + writtenLength(byte), 2));
  let at = 0;
  json[at++] = quote;
  for (const byte of text) {
    const letter = writtenEscapes.get(byte);
    if (byte >= 0x20 && letter === undefined) {
      json[at++] = byte;
      continue;
    }
    json[at++] = backslash;
    json[at++] = letter ?? letterU;
    if (letter === undefined) {
      json.set([0x30, 0x30, hexDigits[byte >> 4] ?? 0, hexDigits[byte & 15] ?? 0], at);
      at += 4;
    }
  }
  json[at] = quote;
  return json;
}

function writtenLength(byte: number): number {
  if (writtenEscapes.has(byte)) return 2;
  return byte < 0x20 ? 6 : 1;
}
