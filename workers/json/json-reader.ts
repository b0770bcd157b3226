/**
 * Strict JSON reader on bytes (RFC 8259) that extracts known fields of an object.
 *
 * `JSON.parse` makes strings, which cannot be wiped, and quotes its input in errors. This reader accepts exactly what
 * `JSON.parse` accepts of UTF-8, decodes strings into memory that can be wiped, and fails without a reason.
 */
import { isUtf8 } from "node:buffer";
import { allocate, utf8 } from "../memory.js";
import {
  backslash,
  code,
  decodeString,
  hexUnit,
  inScratch,
  isDigit,
  isShortEscape,
  JsonText,
  letterU,
  type Memory,
  quote,
  readEscape,
} from "./json-string.js";

/** The text of an object that is the value of a field. */
export class JsonObject {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** The value of a field. */
export type JsonValue = JsonText | JsonObject | Exclude<Found, StringSpan>;

/**
 * Returns the named fields of a JSON object, the last of equal names; null when `source` is not one JSON object. The names
 * are ASCII.
 */
export function readObject(
  source: Uint8Array,
  names: readonly string[],
  memory: Memory = inScratch,
): Map<string, JsonValue> | null {
  const fields = new Map<string, Found | JsonObject>();
  const isRead = readFields(source, names, (cursor, name) => {
    const start = cursor.at;
    const found = skipValue(cursor);
    fields.set(name, found === "object" ? new JsonObject(source.subarray(start, cursor.at)) : found);
  });
  return isRead ? new Map([...fields].map(([name, found]) => [name, decoded(source, found, memory)])) : null;
}

/**
 * Returns where the elements of an array are that is a field of a JSON object, the last of that name; null when `source`
 * is not one JSON object, has no such array, or has one with more than `most` elements: it reads no further then. Nor when
 * there are far more values than such a list needs: bodies of nothing but brackets would keep the thread busy.
 */
export function readElements(source: Uint8Array, name: string, most: number): readonly Span[] | null {
  let elements: Span[] | null = null;
  const read = (cursor: Cursor) => {
    elements = cursor.bytes[cursor.at] === bracketOpen ? elementSpans(cursor, most) : null;
    if (elements === null) skipValue(cursor);
  };
  const isRead = readFields(source, [name], read, mostListedValues);
  return isRead ? elements : null;
}

/**
 * The named fields of an object, the last of equal names. Strings are decoded when they are asked for, into scratch memory;
 * a string without escapes is a view of the source.
 */
export class FoundFields {
  readonly #source: Uint8Array;
  /** A chain: an object has one or two of the fields, and to make a map of them takes longer than to find them. */
  #first: Field | null = null;

  constructor(source: Uint8Array) {
    this.#source = source;
  }

  set(name: string, found: Found): void {
    const field = this.#find(name);
    if (field !== null) field.found = found;
    else this.#first = { name, found, next: this.#first };
  }

  has(name: string): boolean {
    return this.#find(name) !== null;
  }

  get(name: string): JsonValue | undefined {
    const found = this.#find(name)?.found;
    if (typeof found !== "object" || found === null) return found;
    const text = this.#source.subarray(found.start, found.end);
    return found.hasEscapes ? decodeString(text, inScratch) : new JsonText(text, true);
  }

  /** Names of the fields that the object has. */
  names(): readonly string[] {
    const names: string[] = [];
    for (let field = this.#first; field !== null; field = field.next) names.push(field.name);
    return names;
  }

  #find(name: string): Field | null {
    let field = this.#first;
    while (field !== null && field.name !== name) field = field.next;
    return field;
  }
}

type Field = { readonly name: string; found: Found; readonly next: Field | null };

/** Objects in an array; of other elements only what `skipValue` returns. */
export type ListElement = FoundFields | Found;

/** Where an array of objects is: in the field with this name, of at most so many elements. */
type ListField = { readonly name: string; readonly most: number };

/**
 * Returns the named fields of a JSON object, and those of the objects in the array that is in one of them; null when
 * `source` is not one JSON object. `elements`: null as `readElements` returns it.
 */
export function readObjectWithList(
  source: Uint8Array,
  names: readonly string[],
  list: ListField,
): { readonly fields: FoundFields; readonly elements: readonly ListElement[] | null } | null {
  const fields = new FoundFields(source);
  let elements: readonly ListElement[] | null = null;
  const isRead = readFields(source, names, (cursor, name) => {
    if (name === list.name) elements = null;
    if (name === list.name && cursor.bytes[cursor.at] === bracketOpen) {
      elements = objectElements(cursor, names, list.most);
      fields.set(name, "array");
    } else fields.set(name, skipValue(cursor));
  });
  return isRead ? { fields, elements } : null;
}

/** Not secret; long enough, and with enough kinds of characters, for all steps of the check. */
const publicText = utf8("a text that is not secret, ".repeat(4) + "öß€😀".repeat(16));

/**
 * Returns whether the bytes are UTF-8. DANGER: the check leaves blocks of the text in other vector registers than a copy uses
 * (see `clearRegisters`), so a public text is checked next.
 */
function isUtf8Text(source: Uint8Array): boolean {
  const isText = isUtf8(source);
  isUtf8(publicText);
  return isText;
}

/** A member of an object: its name as it stands between the quotes, and its value, as texts of the source. */
export type Member = { readonly name: Uint8Array; readonly value: Uint8Array };

/** Returns the members of a JSON object, equal names included; null when `source` is not one JSON object. */
export function readMembers(source: Uint8Array): readonly Member[] | null {
  if (!isUtf8Text(source)) return null;
  const members: Member[] = [];
  const cursor: Cursor = { bytes: source, at: 0, left: Number.POSITIVE_INFINITY };
  const isRead = readWhole(cursor, () => {
    const name = skipName(cursor);
    const start = cursor.at;
    skipValue(cursor);
    members.push({ name: source.subarray(name.start, name.end), value: source.subarray(start, cursor.at) });
  });
  return isRead ? members : null;
}

/** Whether a text, which must be UTF-8, is one JSON object. */
export function isObject(source: Uint8Array): boolean {
  const cursor: Cursor = { bytes: source, at: 0, left: Number.POSITIVE_INFINITY };
  skipSpace(cursor);
  if (source[cursor.at] !== braceOpen) return false;
  return readWhole(cursor, () => {
    skipName(cursor);
    skipValue(cursor);
  });
}

/**
 * Calls `read` at the value of each field with one of the names. Returns false when `source` is not one JSON object, or has
 * more than `mostValues` values.
 */
function readFields(
  source: Uint8Array,
  names: readonly string[],
  read: (cursor: Cursor, name: string) => void,
  mostValues = Number.MAX_SAFE_INTEGER,
): boolean {
  if (!isUtf8Text(source)) return false;
  const cursor: Cursor = { bytes: source, at: 0, left: mostValues };
  return readWhole(cursor, () => {
    const name = nameAt(cursor, skipName(cursor), names);
    if (name === undefined) skipValue(cursor);
    else read(cursor, name);
  });
}

/** Reads one object and nothing behind it; returns false where that is malformed. */
function readWhole(cursor: Cursor, readMember: () => void): boolean {
  try {
    skipSpace(cursor);
    readEach(cursor, braceOpen, braceClose, readMember);
    skipSpace(cursor);
    return cursor.at === cursor.bytes.length;
  } catch (error) {
    if (error instanceof Malformed) return false;
    throw error;
  }
}

function elementSpans(cursor: Cursor, most: number): Span[] {
  const elements: Span[] = [];
  readEach(cursor, bracketOpen, bracketClose, () => {
    if (elements.length === most) throw new Malformed();
    const start = cursor.at;
    skipValue(cursor);
    elements.push({ start, end: cursor.at });
  });
  return elements;
}

/** Reads an array to its end; returns null for one with more elements, or far more values, than a list needs. */
function objectElements(cursor: Cursor, names: readonly string[], most: number): ListElement[] | null {
  const elements: ListElement[] = [];
  const { left } = cursor;
  let count = 0;
  readEach(cursor, bracketOpen, bracketClose, () => {
    count++;
    if (count <= most) elements.push(elementAt(cursor, names));
    else skipValue(cursor);
  });
  return count > most || left - cursor.left > mostListedValues ? null : elements;
}

function elementAt(cursor: Cursor, names: readonly string[]): ListElement {
  if (cursor.bytes[cursor.at] !== braceOpen) return skipValue(cursor);
  spend(cursor);
  const fields = new FoundFields(cursor.bytes);
  readEach(cursor, braceOpen, braceClose, () => {
    const name = nameAt(cursor, skipName(cursor), names);
    const value = skipValue(cursor);
    if (name !== undefined) fields.set(name, value);
  });
  return fields;
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
function decoded(source: Uint8Array, found: Found | JsonObject, memory: Memory): JsonValue {
  if (typeof found !== "object" || found === null || found instanceof JsonObject) return found;
  return decodeString(source.subarray(found.start, found.end), memory);
}

/** Returns which of `names` a string is. A body may have a million other names, which must cost next to nothing. */
function nameAt({ bytes }: Cursor, { start, end }: Span, names: readonly string[]): string | undefined {
  const first = bytes[start];
  for (const name of names) {
    if ((first === name.charCodeAt(0) || first === backslash) && isName(bytes, start, end, name)) return name;
  }
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

class Malformed extends Error {}

/** `left`: how many more values may be skipped. */
type Cursor = { readonly bytes: Uint8Array; at: number; left: number };

/** Where a text is in the bytes. */
type Span = { readonly start: number; readonly end: number };

/** Where the content of a string is, between the quotes. */
type StringSpan = Span & { readonly hasEscapes: boolean };

/** A skipped value: where a string is, a literal or short whole number itself, and of other values only the type. */
type Found = StringSpan | boolean | null | number | "number" | "array" | "object";

const comma = code(",");
const colon = code(":");
const braceOpen = code("{");
const braceClose = code("}");
const bracketOpen = code("[");
const bracketClose = code("]");
const zero = code("0");
const minus = code("-");
const point = code(".");
const plus = code("+");
const letterE = code("e");

/** Digits of a number that is surely exact. */
const mostDigits = 15;

/** Whole spellings of the literals, each of which its first byte gives away. */
const spelledTrue = utf8("true");
const spelledFalse = utf8("false");
const spelledNull = utf8("null");

/** 64 for each of a thousand elements. */
const mostListedValues = 64_000;

/** Checks and skips one value of any type; returns what it is. */
function skipValue(cursor: Cursor): Found {
  spend(cursor);
  skipSpace(cursor);
  const first = cursor.bytes[cursor.at];
  if (first === braceOpen || first === bracketOpen) {
    skipContainer(cursor);
    return first === braceOpen ? "object" : "array";
  }
  return skipScalar(cursor);
}

/** Judged by the first byte: a body may have millions of scalars. */
function skipScalar(cursor: Cursor): Found {
  const start = cursor.at;
  const first = cursor.bytes[start];
  if (first === quote) return skipString(cursor);
  if (first === spelledTrue[0]) return skipLiteral(cursor, spelledTrue, true);
  if (first === spelledFalse[0]) return skipLiteral(cursor, spelledFalse, false);
  if (first === spelledNull[0]) return skipLiteral(cursor, spelledNull, null);
  skipNumber(cursor);
  return wholeNumber(cursor.bytes, start, cursor.at);
}

function skipLiteral<T>(cursor: Cursor, spelling: Uint8Array, value: T): T {
  for (let i = 0; i < spelling.length; i++) take(cursor, spelling[i] ?? 0);
  return value;
}

/** Makes no string of the digits, which could be a passphrase without its quotes. */
function wholeNumber(bytes: Uint8Array, start: number, end: number): number | "number" {
  if (end - start > mostDigits) return "number";
  let value = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (!isDigit(byte)) return "number";
    value = 10 * value + byte - zero;
  }
  return value;
}

/** Closing characters of the open containers: a byte each, as a body may open millions. */
class Closers {
  #bytes = fewClosers;
  #depth = 0;

  /** The closing character of the innermost container; undefined when none is open. */
  get last(): number | undefined {
    return this.#bytes[this.#depth - 1];
  }

  push(closer: number): void {
    if (this.#depth === this.#bytes.length) {
      const larger = allocate(2 * this.#depth);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes[this.#depth++] = closer;
  }

  pop(): void {
    this.#depth--;
  }
}

/** Reused memory: a value is never skipped while another is being skipped. */
const fewClosers = allocate(256);

/** Iterative: a body of a million brackets must not overflow the stack. */
function skipContainer(cursor: Cursor): void {
  const closers = new Closers();
  let afterValue = openContainer(cursor, closers);
  for (let closer = closers.last; closer !== undefined; closer = closers.last) {
    skipSpace(cursor);
    if (afterValue) {
      afterValue = false;
      if (cursor.bytes[cursor.at] === closer) {
        cursor.at++;
        closers.pop();
        afterValue = true;
        continue;
      }
      take(cursor, comma);
      skipSpace(cursor);
    }
    if (closer === braceClose) skipName(cursor);
    spend(cursor);
    const next = cursor.bytes[cursor.at];
    if (next === braceOpen || next === bracketOpen) {
      afterValue = openContainer(cursor, closers);
      continue;
    }
    skipScalar(cursor);
    afterValue = true;
  }
}

function spend(cursor: Cursor): void {
  if (--cursor.left < 0) throw new Malformed();
}

/** Enters a container; true when it is empty, so that its closer comes next. */
function openContainer(cursor: Cursor, closers: Closers): boolean {
  const closer = cursor.bytes[cursor.at] === braceOpen ? braceClose : bracketClose;
  cursor.at++;
  closers.push(closer);
  skipSpace(cursor);
  return cursor.bytes[cursor.at] === closer;
}

/** Skips a member's name and colon; returns where the name is. */
function skipName(cursor: Cursor): StringSpan {
  const name = skipString(cursor);
  skipSpace(cursor);
  take(cursor, colon);
  skipSpace(cursor);
  return name;
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
  const { bytes } = cursor;
  if (bytes[cursor.at] === minus) cursor.at++;
  if (bytes[cursor.at] === zero) cursor.at++;
  else skipDigits(cursor);
  if (bytes[cursor.at] === point) {
    cursor.at++;
    skipDigits(cursor);
  }
  if (((bytes[cursor.at] ?? 0) | 0x20) === letterE) {
    cursor.at++;
    const sign = bytes[cursor.at];
    if (sign === plus || sign === minus) cursor.at++;
    skipDigits(cursor);
  }
}

function skipDigits(cursor: Cursor): void {
  const start = cursor.at;
  while (isDigit(cursor.bytes[cursor.at])) cursor.at++;
  if (cursor.at === start) throw new Malformed();
}

/** Checks and skips a string; returns where its content is. */
function skipString(cursor: Cursor): StringSpan {
  take(cursor, quote);
  const { bytes, at: start } = cursor;
  const plainEnd = endOfPlain(bytes, start);
  let end = plainEnd;
  while (bytes[end] === backslash) end = endOfPlain(bytes, endOfEscape(bytes, end + 1));
  if (bytes[end] !== quote) throw new Malformed();
  cursor.at = end + 1;
  return { start, end, hasEscapes: end > plainEnd };
}

/** 1 for a byte that stands for itself in a string. */
const plain = allocate(256).map((_, byte) => (byte < 0x20 || byte === quote || byte === backslash ? 0 : 1));

/** Returns where the next byte is that does not stand for itself. A read beyond the end would slow all later ones. */
function endOfPlain(bytes: Uint8Array, from: number): number {
  let at = from;
  for (const last = bytes.length - 4; at <= last; at += 4) {
    if (!(plainAt(bytes, at) & plainAt(bytes, at + 1) & plainAt(bytes, at + 2) & plainAt(bytes, at + 3))) break;
  }
  while (at < bytes.length && plainAt(bytes, at)) at++;
  return at;
}

function plainAt(bytes: Uint8Array, at: number): number {
  return plain[bytes[at] ?? 0] ?? 0;
}

/** `at` is after the backslash. */
function endOfEscape(bytes: Uint8Array, at: number): number {
  const letter = bytes[at] ?? 0;
  if (isShortEscape(letter)) return at + 1;
  if (letter !== letterU || hexUnit(bytes, at + 1) < 0) throw new Malformed();
  return at + 5;
}
