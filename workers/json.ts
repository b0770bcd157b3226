/**
 * Owns JSON as bytes (RFC 8259): a strict reader that takes known fields out of an object, and the writer of strings.
 *
 * It exists because `JSON.parse` makes strings, which nobody can wipe, and quotes its input in its errors. It accepts
 * exactly what `JSON.parse` accepts of UTF-8, decodes every string into memory of our own, and refuses without a reason.
 */
import { isUtf8 } from "node:buffer";
import { code, decodeString, hexUnit, isDigit, isShortEscape, JsonText, letterU, type Memory } from "./json-string.js";
import { allocate, borrow, utf8, wipe } from "./memory.js";

/** What a field holds. Numbers, arrays and objects are checked and skipped: only their type is told. */
export type JsonValue = JsonText | boolean | null | "number" | "array" | "object";

class Malformed extends Error {}

type Cursor = { readonly bytes: Uint8Array; at: number };

const quote = code('"');
const backslash = code("\\");
const comma = code(",");
const colon = code(":");
const braceOpen = code("{");
const braceClose = code("}");
const bracketOpen = code("[");
const bracketClose = code("]");

/** The named fields of the object that `source` is, the last of equal names; null when it is not one JSON object. */
export function readObject(
  source: Uint8Array,
  names: readonly string[],
  memory: Memory = borrow,
): Map<string, JsonValue> | null {
  if (!isUtf8(source)) return null;
  const cursor: Cursor = { bytes: source, at: 0 };
  const fields = new Map<string, Found>();
  try {
    readFields(cursor, names, fields);
    skipSpace(cursor);
    if (cursor.at !== source.length) throw new Malformed();
  } catch (error) {
    if (error instanceof Malformed) return null;
    throw error;
  }
  return new Map([...fields].map(([name, found]) => [name, decoded(source, found, memory)]));
}

export function wipeFields(fields: Map<string, JsonValue>): void {
  for (const value of fields.values()) if (value instanceof JsonText) wipe(value.bytes);
}

/** Where a string's content stands. It is decoded once, at the end: a name given a thousand times costs nothing. */
type Span = { readonly start: number; readonly end: number };
type Found = Exclude<JsonValue, JsonText> | Span;

function decoded(source: Uint8Array, found: Found, memory: Memory): JsonValue {
  if (typeof found !== "object" || found === null) return found;
  return decodeString(source.subarray(found.start, found.end), memory);
}

function readFields(cursor: Cursor, names: readonly string[], fields: Map<string, Found>): void {
  skipSpace(cursor);
  take(cursor, braceOpen);
  skipSpace(cursor);
  if (cursor.bytes[cursor.at] === braceClose) {
    cursor.at++;
    return;
  }
  for (;;) {
    skipSpace(cursor);
    const name = nameAt(cursor, skipString(cursor), names);
    skipSpace(cursor);
    take(cursor, colon);
    const found = skipValue(cursor);
    if (name !== undefined) fields.set(name, found);
    skipSpace(cursor);
    if (cursor.bytes[cursor.at] !== comma) break;
    cursor.at++;
  }
  take(cursor, braceClose);
}

/** A name that is looked for is shorter, even when each of its characters is spelled as an escape. */
const scratch = allocate(128);

/** The one of `names` that a string spells. A body may have a million others: they must cost next to nothing. */
function nameAt({ bytes }: Cursor, { start, end }: Span, names: readonly string[]): string | undefined {
  const plain = names.find((name) => isName(bytes, start, end, name));
  if (plain !== undefined || end - start > scratch.length) return plain;
  const spelling = bytes.subarray(start, end);
  if (!spelling.includes(backslash)) return undefined;
  const { length } = decodeString(spelling, () => scratch).bytes;
  const escaped = names.find((name) => isName(scratch, 0, length, name));
  wipe(scratch);
  return escaped;
}

function isName(bytes: Uint8Array, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false;
  for (let i = 0; i < name.length; i++) if (bytes[start + i] !== name.charCodeAt(i)) return false;
  return true;
}

const literals: readonly (readonly [Uint8Array, true | false | null])[] = [
  [utf8("true"), true],
  [utf8("false"), false],
  [utf8("null"), null],
];

/** Checks and passes one value of any type; answers what it is. */
function skipValue(cursor: Cursor): Found {
  skipSpace(cursor);
  const first = cursor.bytes[cursor.at];
  if (first === braceOpen || first === bracketOpen) {
    skipContainer(cursor);
    return first === braceOpen ? "object" : "array";
  }
  return skipScalar(cursor);
}

function skipScalar(cursor: Cursor): Found {
  if (cursor.bytes[cursor.at] === quote) return skipString(cursor);
  for (const [spelling, value] of literals) {
    if (startsWith(cursor, spelling)) {
      cursor.at += spelling.length;
      return value;
    }
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

/** Passes a string, checking its escapes; answers where its content began and ended. */
function skipString(cursor: Cursor): Span {
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

function skipEscape(cursor: Cursor): void {
  const letter = cursor.bytes[cursor.at] ?? 0;
  cursor.at++;
  if (isShortEscape(letter)) return;
  if (letter !== letterU || hexUnit(cursor.bytes, cursor.at) < 0) throw new Malformed();
  cursor.at += 4;
}
