/** JSON scanner on bytes (RFC 8259): checks and skips values of any depth, and decodes nothing. */
import { utf8 } from "../memory.js";
import { code, hexUnit, isDigit, isShortEscape, letterU } from "./json-string.js";

export class Malformed extends Error {}

export type Cursor = { readonly bytes: Uint8Array; at: number };

/** Where a string's content is, between its quotes. */
export type Span = { readonly start: number; readonly end: number };

/** A skipped value: where a string is, a literal or short whole number itself, and of other values only the type. */
export type Found = Span | boolean | null | number | "number" | "array" | "object";

const quote = code('"');
export const backslash = code("\\");
export const comma = code(",");
const colon = code(":");
export const braceOpen = code("{");
export const braceClose = code("}");
export const bracketOpen = code("[");
export const bracketClose = code("]");
const zero = code("0");

/** Of a number that is surely exact. */
const mostDigits = 15;

const literals: readonly (readonly [Uint8Array, true | false | null])[] = [
  [utf8("true"), true],
  [utf8("false"), false],
  [utf8("null"), null],
];

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

function skipScalar(cursor: Cursor): Found {
  if (cursor.bytes[cursor.at] === quote) return skipString(cursor);
  for (const [spelling, value] of literals) {
    if (startsWith(cursor, spelling)) {
      cursor.at += spelling.length;
      return value;
    }
  }
  const start = cursor.at;
  skipNumber(cursor);
  return wholeNumber(cursor.bytes, start, cursor.at);
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

function startsWith(cursor: Cursor, spelling: Uint8Array): boolean {
  return spelling.every((byte, i) => cursor.bytes[cursor.at + i] === byte);
}

/** Iterative: a body of a million brackets must not overflow the stack. */
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

/** Enters a container; true when it is empty, so that its closer comes next. */
function openContainer(cursor: Cursor, closers: number[]): boolean {
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
