/**
 * Strict JSON reader on bytes (RFC 8259) that extracts known fields of an object.
 *
 * `JSON.parse` makes strings, which cannot be wiped, and quotes its input in errors. This reader accepts exactly what
 * `JSON.parse` accepts of UTF-8, decodes strings into memory that can be wiped, and fails without a reason.
 */
import { isUtf8 } from "node:buffer";
import {
  braceClose,
  braceOpen,
  bracketClose,
  bracketOpen,
  type Cursor,
  comma,
  type Found,
  Malformed,
  type Span,
  skipName,
  skipSpace,
  skipValue,
  take,
} from "./json-scan.js";
import { backslash, decodeString, inScratch, type JsonText, type Memory, readEscape } from "./json-string.js";

/** The value of a field. */
export type JsonValue = JsonText | Exclude<Found, Span>;

/**
 * Returns the named fields of a JSON object, the last of equal names; null when `source` is not one JSON object. The names
 * are ASCII.
 */
export function readObject(
  source: Uint8Array,
  names: readonly string[],
  memory: Memory = inScratch,
): Map<string, JsonValue> | null {
  const fields = new Map<string, Found>();
  const isRead = readFields(source, names, (cursor, name) => fields.set(name, skipValue(cursor)));
  return isRead ? new Map([...fields].map(([name, found]) => [name, decoded(source, found, memory)])) : null;
}

/**
 * Returns where the elements of an array are that is a field of a JSON object, the last of that name; null when `source`
 * is not one JSON object, has no such array, or has one with more than `most` elements: it reads no further then.
 */
export function readElements(source: Uint8Array, name: string, most: number): readonly Span[] | null {
  let elements: Span[] | null = null;
  const isRead = readFields(source, [name], (cursor) => {
    elements = cursor.bytes[cursor.at] === bracketOpen ? elementsOf(cursor, most) : null;
    if (elements === null) skipValue(cursor);
  });
  return isRead ? elements : null;
}

/** Calls `read` at the value of each field with one of the names. Returns false when `source` is not one JSON object. */
function readFields(
  source: Uint8Array,
  names: readonly string[],
  read: (cursor: Cursor, name: string) => void,
): boolean {
  if (!isUtf8(source)) return false;
  const cursor: Cursor = { bytes: source, at: 0 };
  try {
    skipSpace(cursor);
    readEach(cursor, braceOpen, braceClose, () => {
      const name = nameAt(cursor, skipName(cursor), names);
      if (name === undefined) skipValue(cursor);
      else read(cursor, name);
    });
    skipSpace(cursor);
    return cursor.at === source.length;
  } catch (error) {
    if (error instanceof Malformed) return false;
    throw error;
  }
}

function elementsOf(cursor: Cursor, most: number): Span[] {
  const elements: Span[] = [];
  readEach(cursor, bracketOpen, bracketClose, () => {
    if (elements.length === most) throw new Malformed();
    const start = cursor.at;
    skipValue(cursor);
    elements.push({ start, end: cursor.at });
  });
  return elements;
}

/** Calls `readOne` at each member of an object, or at each element of an array. */
function readEach(cursor: Cursor, opener: number, closer: number, readOne: () => void): void {
  take(cursor, opener);
  skipSpace(cursor);
  if (cursor.bytes[cursor.at] !== closer) readOne();
  for (skipSpace(cursor); cursor.bytes[cursor.at] === comma; skipSpace(cursor)) {
    cursor.at++;
    skipSpace(cursor);
    readOne();
  }
  take(cursor, closer);
}

/** Strings are decoded at the end, once: a name given a thousand times costs nothing. */
function decoded(source: Uint8Array, found: Found, memory: Memory): JsonValue {
  if (typeof found !== "object" || found === null) return found;
  return decodeString(source.subarray(found.start, found.end), memory);
}

/** Returns which of `names` a string is. A body may have a million other names, which must cost next to nothing. */
function nameAt({ bytes }: Cursor, { start, end }: Span, names: readonly string[]): string | undefined {
  for (const name of names) if (isName(bytes, start, end, name)) return name;
  return undefined;
}

/** Compares without decoding, whether characters are escaped or not. */
function isName(bytes: Uint8Array, start: number, end: number, name: string): boolean {
  let at = start;
  for (let i = 0; i < name.length; i++) {
    let character = at < end ? bytes[at] : undefined;
    at++;
    if (character === backslash) {
      const { point, size } = readEscape(bytes, at);
      character = point;
      at += size;
    }
    if (character !== name.charCodeAt(i)) return false;
  }
  return at === end;
}
