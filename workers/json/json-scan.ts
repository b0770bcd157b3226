/** JSON scanner on bytes (RFC 8259): checks and skips values of any depth, and decodes nothing. */
import { allocate, utf8 } from "../memory.js";
import { backslash, code, hexUnit, isDigit, isShortEscape, letterU, quote } from "./json-string.js";

export class Malformed extends Error {}

export type Cursor = { readonly bytes: Uint8Array; at: number };

/** Where a text is in the bytes: of a string, its content between the quotes. */
export type Span = { readonly start: number; readonly end: number };

/** A skipped value: where a string is, a literal or short whole number itself, and of other values only the type. */
export type Found = Span | boolean | null | number | "number" | "array" | "object";

export const comma = code(",");
const colon = code(":");
export const braceOpen = code("{");
export const braceClose = code("}");
export const bracketOpen = code("[");
export const bracketClose = code("]");
const zero = code("0");
const minus = code("-");
const point = code(".");
const plus = code("+");
const letterE = code("e");

/** Of a number that is surely exact. */
const mostDigits = 15;

/** Whole spellings of the literals, each of which its first byte gives away. */
const spelledTrue = utf8("true");
const spelledFalse = utf8("false");
const spelledNull = utf8("null");

/** Checks and skips one value of any type; returns what it is. */
export function skipValue(cursor: Cursor): Found {
  skipSpace(cursor);
  const first = cursor.bytes[cursor.at];
  if (first === braceOpen || first === bracketOpen) {
    skipContainer(cursor);
    return first === braceOpen ? "object" : "array";
  }
  return skipScalar(cursor);
}

/** By the first byte alone: a body may have millions of scalars. */
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

/** What ends the open containers: a byte each, as a body may open millions. */
class Closers {
  #bytes = fewClosers;
  #depth = 0;

  /** Of the innermost container; undefined when none is open. */
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

/** Reused: no value is skipped inside of another one's skipping. */
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
    const next = cursor.bytes[cursor.at];
    if (next === braceOpen || next === bracketOpen) {
      afterValue = openContainer(cursor, closers);
      continue;
    }
    skipScalar(cursor);
    afterValue = true;
  }
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
export function skipName(cursor: Cursor): Span {
  const name = skipString(cursor);
  skipSpace(cursor);
  take(cursor, colon);
  skipSpace(cursor);
  return name;
}

export function skipSpace(cursor: Cursor): void {
  for (;;) {
    const byte = cursor.bytes[cursor.at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
    cursor.at++;
  }
}

export function take(cursor: Cursor, byte: number): void {
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
function skipString(cursor: Cursor): Span {
  take(cursor, quote);
  const { bytes, at: start } = cursor;
  let at = start;
  for (let byte = bytes[at]; byte !== quote; byte = bytes[at]) {
    if (byte === undefined || byte < 0x20) throw new Malformed();
    at = byte === backslash ? endOfEscape(bytes, at + 1) : at + 1;
  }
  cursor.at = at + 1;
  return { start, end: at };
}

/** `at` is after the backslash. */
function endOfEscape(bytes: Uint8Array, at: number): number {
  const letter = bytes[at] ?? 0;
  if (isShortEscape(letter)) return at + 1;
  if (letter !== letterU || hexUnit(bytes, at + 1) < 0) throw new Malformed();
  return at + 5;
}
