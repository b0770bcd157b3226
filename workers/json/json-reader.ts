/**
 * Strict JSON reader on bytes (RFC 8259) that extracts known fields of an object.
 *
 * `JSON.parse` makes strings, which cannot be wiped, and quotes its input in errors. This reader accepts exactly what
 * `JSON.parse` accepts of UTF-8, decodes strings into memory that can be wiped, and fails without a reason.
 */
import { isUtf8 } from "node:buffer";
import { allocate, wipe } from "../memory.js";
import {
  backslash,
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
import { decodeString, inScratch, type JsonText, type Memory } from "./json-string.js";

/** The value of a field. */
export type JsonValue = JsonText | Exclude<Found, Span>;

/** Returns the named fields of a JSON object, the last of equal names; null when `source` is not one JSON object. */
export function readObject(
  source: Uint8Array,
  names: readonly string[],
  memory: Memory = inScratch,
): Map<string, JsonValue> | null {
  const fields = findFields(source, names);
  return fields && new Map([...fields].map(([name, { found }]) => [name, decoded(source, found, memory)]));
}

/**
 * Returns where the elements of an array are that is a field of a JSON object, the last of that name; null when `source`
 * is not one JSON object, or has no such array.
 */
export function readElements(source: Uint8Array, name: string): readonly Span[] | null {
  const field = findFields(source, [name])?.get(name);
  return field?.found === "array" ? elementsOf({ bytes: source, at: field.start }) : null;
}

/** `start`: where its value begins. */
type Field = { readonly found: Found; readonly start: number };

function findFields(source: Uint8Array, names: readonly string[]): Map<string, Field> | null {
  if (!isUtf8(source)) return null;
  const cursor: Cursor = { bytes: source, at: 0 };
  const fields = new Map<string, Field>();
  try {
    readFields(cursor, names, fields);
    skipSpace(cursor);
    if (cursor.at !== source.length) throw new Malformed();
  } catch (error) {
    if (error instanceof Malformed) return null;
    throw error;
  }
  return fields;
}

/** Of an array that was checked before. */
function elementsOf(cursor: Cursor): Span[] {
  const elements: Span[] = [];
  take(cursor, bracketOpen);
  skipSpace(cursor);
  while (cursor.bytes[cursor.at] !== bracketClose) {
    if (elements.length > 0) take(cursor, comma);
    skipSpace(cursor);
    const start = cursor.at;
    skipValue(cursor);
    elements.push({ start, end: cursor.at });
    skipSpace(cursor);
  }
  return elements;
}

/** Strings are decoded at the end, once: a name given a thousand times costs nothing. */
function decoded(source: Uint8Array, found: Found, memory: Memory): JsonValue {
  if (typeof found !== "object" || found === null) return found;
  return decodeString(source.subarray(found.start, found.end), memory);
}

function readFields(cursor: Cursor, names: readonly string[], fields: Map<string, Field>): void {
  skipSpace(cursor);
  take(cursor, braceOpen);
  skipSpace(cursor);
  if (cursor.bytes[cursor.at] === braceClose) {
    cursor.at++;
    return;
  }
  for (;;) {
    skipSpace(cursor);
    const name = nameAt(cursor, skipName(cursor), names);
    const start = cursor.at;
    const found = skipValue(cursor);
    if (name !== undefined) fields.set(name, { found, start });
    skipSpace(cursor);
    if (cursor.bytes[cursor.at] !== comma) break;
    cursor.at++;
  }
  take(cursor, braceClose);
}

/** Longer than every known name, even with each of its characters escaped. */
const nameBuffer = allocate(128);

/** Returns which of `names` a string is. A body may have a million other names, which must cost next to nothing. */
function nameAt({ bytes }: Cursor, { start, end }: Span, names: readonly string[]): string | undefined {
  const plain = names.find((name) => isName(bytes, start, end, name));
  if (plain !== undefined || end - start > nameBuffer.length) return plain;
  const spelling = bytes.subarray(start, end);
  if (!spelling.includes(backslash)) return undefined;
  const { length } = decodeString(spelling, () => nameBuffer).bytes;
  const escaped = names.find((name) => isName(nameBuffer, 0, length, name));
  wipe(nameBuffer);
  return escaped;
}

function isName(bytes: Uint8Array, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false;
  for (let i = 0; i < name.length; i++) if (bytes[start + i] !== name.charCodeAt(i)) return false;
  return true;
}
