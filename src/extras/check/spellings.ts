/** Spellings of text in files: where they are, and what they say. */
import { isArchive } from "./archive.js";

/** Part of a file. `isWrapped`: base64 over several lines. */
type Run = { readonly from: number; readonly to: number; readonly isWrapped: boolean };
type Part = { readonly from: number; to: number };

/** Shorter base64 holds nothing in which a value is written in another way. */
const shortestRun = 40;

const isBase64 = table("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-");
const isLineEnd = table("\n\r\0");
const beginsEscape = table("\\%&=");

/** Returns 1 for the bytes of these characters. */
function table(characters: string): Uint8Array {
  const members = new Uint8Array(256);
  for (const character of characters) members[character.charCodeAt(0)] = 1;
  return members;
}

export function base64Runs(bytes: Buffer): Run[] {
  const runs: Run[] = [];
  const { length } = bytes;
  for (let i = shortestRun - 1; i < length; i += shortestRun) {
    if (!has(isBase64, bytes[i])) continue; // each long run holds one of these places
    let [from, to] = [i, i + 1];
    while (from > 0 && has(isBase64, bytes[from - 1])) from--;
    while (to < length && has(isBase64, bytes[to])) to++;
    if (to - from >= shortestRun) runs.push(wholeRun(bytes, from, to, runs.at(-1)));
    i += Math.floor((to - 1 - i) / shortestRun) * shortestRun;
  }
  return runs;
}

function has(members: Uint8Array, byte = 0): boolean {
  return members[byte] === 1;
}

/** Returns the parts of lines around escapes: a value that holds one lies in such a part. */
export function escapedParts(bytes: Buffer): Part[] {
  const parts: Part[] = [];
  for (let i = 0; i < bytes.length; i++) {
    if (!has(beginsEscape, bytes[i]) || !isEscape(bytes, i)) continue;
    const last = parts.at(-1);
    if (last !== undefined && i < last.to) last.to = lineEndAfter(bytes, last.to, i + context);
    else parts.push({ from: lineStartBefore(bytes, i), to: lineEndAfter(bytes, i, i + context) });
  }
  return parts;
}

/** Bytes of a longer line on both sides of an escape. */
const context = 512;

function lineStartBefore(bytes: Buffer, at: number): number {
  let from = at;
  while (from > 0 && from > at - context && !has(isLineEnd, bytes[from - 1])) from--;
  return from;
}

function lineEndAfter(bytes: Buffer, at: number, limit: number): number {
  let to = at;
  while (to < bytes.length && to < limit && !has(isLineEnd, bytes[to])) to++;
  return to;
}

/** Returns a run with the lines after it that continue it. */
function wholeRun(bytes: Buffer, from: number, end: number, before: Run | undefined): Run {
  if (before !== undefined && from < before.to) return { from, to: end, isWrapped: false }; // a line of the one before
  let to = end;
  for (let next = nextLine(bytes, to); next > 0; next = nextLine(bytes, to)) {
    to = next;
    while (to < bytes.length && has(isBase64, bytes[to])) to++;
    if (to - next < shortestRun) break; // the last line
  }
  return { from, to, isWrapped: to > end };
}

/** Returns where the next line's text begins if it is base64; 0 otherwise. */
function nextLine(bytes: Buffer, end: number): number {
  let [at, hasLineEnd] = [end, false];
  for (; at < bytes.length && gaps.has(bytes[at] ?? 0); at++) hasLineEnd ||= bytes[at] === 0x0a;
  return hasLineEnd && has(isBase64, bytes[at]) ? at : 0;
}

const gaps = new Set([..." \t\r\n\"'\\+,"].map((gap) => gap.charCodeAt(0)));

const escaped = table("\"\\/'nrtbfvuUx01234567$&<>=:#!;@ ");
const entityStart = table("#algq");
const hexDigit = table("0123456789abcdefABCDEF");
const upperHexDigit = table("0123456789ABCDEF");
const [backslash, percent, ampersand] = [0x5c, 0x25, 0x26];

/** Whether what begins here may be an escape and not, for one, a remainder or a comparison. */
function isEscape(bytes: Buffer, at: number): boolean {
  if (at + 1 >= bytes.length) return false;
  if (bytes[at] === backslash) return has(escaped, bytes[at + 1]);
  if (bytes[at] === ampersand) return has(entityStart, bytes[at + 1]);
  const digits = bytes[at] === percent ? hexDigit : upperHexDigit;
  return has(digits, bytes[at + 1]) && has(digits, bytes[at + 2]);
}

type Unescape = { readonly mark: string; readonly read: (text: string) => string };

const percents = /%([0-9A-Fa-f]{2})/g;

const unescapes: readonly Unescape[] = [
  { mark: "\\", read: (text) => text.replace(backslashes, fromBackslash) },
  { mark: "%", read: (text) => text.replace(percents, fromHex) },
  { mark: "+", read: (text) => text.replace(/\+/g, " ").replace(percents, fromHex) }, // HTML forms write a space as +
  { mark: "&", read: (text) => text.replace(entities, fromEntity) },
  { mark: "=", read: (text) => text.replace(/=([0-9A-F]{2})/g, fromHex) }, // quoted-printable
];

/** Returns what a part says by each kind of escape that it holds. */
export function unescaped(part: Buffer): Buffer[] {
  const text = part.toString("latin1");
  const found = unescapes.filter(({ mark }) => text.includes(mark) && (mark !== "+" || text.includes("%")));
  const others = new Set(found.map(({ read }) => read(text)));
  others.delete(text);
  return [...others].map((other) => Buffer.from(other, "latin1"));
}

const backslashes =
  /((?:\\u[0-9A-Fa-f]{4})+)|\\u\{([0-9A-Fa-f]{1,6})\}|\\U([0-9A-Fa-f]{8})|\\x([0-9A-Fa-f]{2})|\\([0-3][0-7]{2})|\\([\s\S])/g;
const controls: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f", v: "\v", "0": "\0" };

type Match = string | undefined;

function fromBackslash(
  _: string,
  units: Match,
  braced: Match,
  long: Match,
  hex: Match,
  octal: Match,
  letter: string,
): string {
  if (units !== undefined) {
    const text = String.fromCharCode(
      ...units
        .split("\\u")
        .slice(1)
        .map((unit) => Number.parseInt(unit, 16)),
    );
    return Buffer.from(text).toString("latin1");
  }
  if (braced !== undefined || long !== undefined) return utf8(Number.parseInt(braced ?? long ?? "", 16));
  if (hex !== undefined) return fromHex("", hex);
  if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
  return controls[letter] ?? letter;
}

function fromHex(_: string, digits: string): string {
  return String.fromCharCode(Number.parseInt(digits, 16));
}

const entities = /&(?:#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6})|(amp|lt|gt|quot|apos));/g;
const named: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function fromEntity(_: string, decimal: Match, hex: Match, name: Match): string {
  if (name !== undefined) return named[name] ?? "";
  return utf8(decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal));
}

function utf8(point: number): string {
  return point > 0x10ffff ? "" : Buffer.from(String.fromCodePoint(point)).toString("latin1");
}

/** Bytes by which it is judged whether base64 holds text or compressed text. */
const judgedBytes = 48;

/** Returns what base64 holds, wherever in it the first group begins; null when that is neither text nor compressed. */
export function decodedBase64(run: string): Buffer | null {
  const start = [0, 1, 2, 3].find((offset) => {
    const bytes = Buffer.from(run.slice(offset, offset + (judgedBytes / 3) * 4), "base64");
    return isArchive(bytes) || isText(bytes) || isWide(bytes) !== null;
  });
  return start === undefined ? null : Buffer.from(run.slice(start), "base64");
}

/** Whether no byte is a control character, and few are beyond ASCII. */
function isText(bytes: Buffer): boolean {
  const beyond = bytes.filter((byte) => byte > 0x7e).length;
  return beyond <= bytes.length / 4 && bytes.every((byte) => byte >= 0x20 || (byte >= 0x09 && byte <= 0x0d));
}

const wideSample = 4_096;

/** Returns which bytes of the pairs are low, 0 or 1, when a file looks like UTF-16; null otherwise. */
function isWide(bytes: Buffer): 0 | 1 | null {
  const mark = bytes.toString("hex", 0, 2);
  if (mark === "fffe") return 0;
  if (mark === "feff") return 1;
  const sample = bytes.subarray(0, wideSample);
  if (!sample.includes(0)) return null;
  const zeros = (odd: number) =>
    sample.filter((byte, at) => byte === 0 && (at & 1) === odd).length / (sample.length / 2);
  if (zeros(1) > mostLow && zeros(0) < leastLow) return 0;
  return zeros(0) > mostLow && zeros(1) < leastLow ? 1 : null;
}

/** Parts of a text's high bytes that are zero, and of its low ones. */
const [mostLow, leastLow] = [0.4, 0.05];

/** Returns the text of a UTF-16 or UTF-32 file as UTF-8; null for any other file. */
export function asUtf8(bytes: Buffer): Buffer | null {
  const mark = bytes.toString("hex", 0, 4);
  if (mark === "fffe0000") return fromUtf32(bytes, (at) => bytes.readUInt32LE(at));
  if (mark === "0000feff") return fromUtf32(bytes, (at) => bytes.readUInt32BE(at));
  const low = isWide(bytes);
  if (low === null) return null;
  const pairs = bytes.subarray(0, bytes.length & ~1);
  return Buffer.from((low === 0 ? pairs : Buffer.from(pairs).swap16()).toString("utf16le"));
}

function fromUtf32(bytes: Buffer, pointAt: (at: number) => number): Buffer {
  const points: string[] = [];
  for (let at = 4; at + 4 <= bytes.length; at += 4) {
    const point = pointAt(at);
    points.push(point > 0x10ffff ? "\ufffd" : String.fromCodePoint(point));
  }
  return Buffer.from(points.join(""));
}
