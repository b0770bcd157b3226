/**
 * Estimate of how many guesses a value needs, on its bytes: zxcvbn, from which the method and the word lists are, works on
 * strings, which cannot be wiped. The cheapest way to compose the value of words, repeats, sequences, keyboard rows, dates and
 * single characters counts.
 */
import { startA, startB, stepA, stepB, type WordTable } from "./words.js";

/** zxcvbn score: 0 too guessable, 1 very guessable, 2 somewhat guessable, 3 safely unguessable, 4 very unguessable. */
export type Score = 0 | 1 | 2 | 3 | 4;

/** Only a prefix of this length is examined: a guessable value is guessable from its beginning. */
const longest = 40;
const longestWord = 24;
const shortestMatch = 3;

/** Least guesses of the scores 1 to 4, as powers of ten. */
const bounds = [3, 6, 8, 10];
const rounding = 1e-6;

export function strengthScore(value: Uint8Array, words: WordTable): Score {
  const log = logGuesses(value.subarray(0, longest), words);
  return bounds.filter((bound) => log > bound + rounding).length as Score;
}

/** A part of the value that begins at `from`, and the logarithm of the guesses that it needs. */
type Part = { readonly from: number; readonly log: number };

/** Notes the part of the value from `from` up to `to`. */
type Note = (from: number, to: number, log: number) => void;

/** Returns the decimal logarithm of the guesses. */
function logGuesses(value: Uint8Array, words: WordTable): number {
  const { length } = value;
  const endingAt: Part[][] = Array.from({ length: length + 1 }, () => []);
  const note: Note = (from, to, log) => void endingAt[to]?.push({ from, log });
  for (let at = 0; at < length; at++) {
    noteWords(value, at, words, note);
    noteReversedWords(value, at + 1, words, note);
    noteRepeats(value, at, note);
    noteSteps(value, at, note);
    noteRows(value, at, note);
    noteDates(value, at, note);
  }
  return shortestWay(endingAt);
}

/** Each further part multiplies the orders that a guesser must try. */
function shortestWay(endingAt: readonly (readonly Part[])[]): number {
  const best: (readonly [log: number, parts: number])[] = [[0, 0]];
  for (const parts of endingAt.slice(1)) {
    const [before, others] = best.at(-1) ?? [0, 0];
    let found: readonly [number, number] = [before + 1, others]; // a character: 10 guesses, as zxcvbn counts
    for (const { from, log } of parts) {
      const [start, count] = best[from] ?? [0, 0];
      const sum = start + log + Math.log10(count + 1);
      if (sum < found[0]) found = [sum, count + 1];
    }
    best.push(found);
  }
  return best.at(-1)?.[0] ?? 0;
}

const [letterA, letterZ] = [0x61, 0x7a];

function isLetter(byte: number): boolean {
  return (byte | 0x20) >= letterA && (byte | 0x20) <= letterZ;
}

function lower(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
}

/** Characters that stand for letters. */
const leet = new Map(
  ["@a", "4a", "8b", "(c", "3e", "6g", "9g", "1i", "!i", "|l", "0o", "$s", "5s", "+t", "7t", "%x", "2z"].map((pair) => [
    pair.charCodeAt(0),
    pair.charCodeAt(1),
  ]),
);

/** Hashes are extended byte by byte in local numbers: see the DANGER in words.ts. */
function noteWords(value: Uint8Array, from: number, words: WordTable, note: Note): void {
  const end = Math.min(value.length, from + longestWord);
  let a = startA;
  let b = startB;
  let meantA = startA;
  let meantB = startB;
  let substituted = 0;
  for (let to = from + 1; to <= end; to++) {
    const small = lower(value[to - 1] ?? 0);
    const letter = leet.get(small) ?? small;
    if (letter !== small) substituted++;
    a = stepA(a, small);
    b = stepB(b, small);
    meantA = stepA(meantA, letter);
    meantB = stepB(meantB, letter);
    if (to - from < shortestMatch) continue;
    noteWord(value, from, to, words.rank(a, b), 0, note);
    if (substituted > 0) noteWord(value, from, to, words.rank(meantA, meantB), substituted, note);
  }
}

/** Words that are read from their end, which is at `to`. */
function noteReversedWords(value: Uint8Array, to: number, words: WordTable, note: Note): void {
  const start = Math.max(0, to - longestWord);
  let a = startA;
  let b = startB;
  for (let from = to - 1; from >= start; from--) {
    const small = lower(value[from] ?? 0);
    a = stepA(a, small);
    b = stepB(b, small);
    if (to - from >= shortestMatch) noteWord(value, from, to, words.rank(a, b), 1, note);
  }
}

/** `rank`: 0 for no word; `changes`: each may have been made or not. */
function noteWord(value: Uint8Array, from: number, to: number, rank: number, changes: number, note: Note): void {
  if (rank > 0) note(from, to, Math.log10(rank) + changes * Math.log10(2) + capitals(value, from, to));
}

/** Logarithm of the ways to write a word with its capitals; one at the beginning, or all, are usual. */
function capitals(value: Uint8Array, from: number, to: number): number {
  let [upper, letters] = [0, 0];
  for (let at = from; at < to; at++) {
    const byte = value[at] ?? 0;
    if (isLetter(byte)) letters++;
    if (byte !== lower(byte)) upper++;
  }
  if (upper === 0) return 0;
  if ((upper === 1 && value[from] !== lower(value[from] ?? 0)) || upper === letters) return Math.log10(2);
  return Math.min(upper, letters - upper) * Math.log10(2) + Math.log10(letters);
}

/** A run of one character, and a copy of what stands before. */
function noteRepeats(value: Uint8Array, from: number, note: Note): void {
  for (let distance = 1; distance <= from; distance++) {
    let to = from;
    while (to < value.length && value[to] === value[to - distance]) to++;
    if (to - from < Math.min(distance, shortestMatch) || to === from) continue;
    for (let end = from + 1; end <= to; end++) {
      if (end - from >= distance) note(from, end, Math.log10((end - from) / distance + 1));
    }
  }
}

/** `abcd`, `9753`: the same step between all. */
function noteSteps(value: Uint8Array, from: number, note: Note): void {
  const step = (value[from + 1] ?? 0) - (value[from] ?? 0);
  if (Math.abs(step) === 0 || Math.abs(step) > 2) return;
  let to = from + 2;
  while (to < value.length && (value[to] ?? 0) - (value[to - 1] ?? 0) === step)
    note(from, ++to, Math.log10(26 * (to - from)));
}

const rows = [
  "1234567890-=",
  "qwertyuiop[]",
  "asdfghjkl;'",
  "zxcvbnm,./",
  "1qaz",
  "2wsx",
  "3edc",
  "4rfv",
  "5tgb",
  "6yhn",
].map((row) => [...row].map((character) => character.charCodeAt(0)));

/** The rows in which a key lies. */
const keyRows = new Map(
  [...new Set(rows.flat())].map((key) => [key, rows.filter((row) => row.includes(key))] as const),
);

/** Keys that lie side by side. */
function noteRows(value: Uint8Array, from: number, note: Note): void {
  for (const row of keyRows.get(lower(value[from] ?? 0)) ?? []) {
    const length = Math.max(lengthAlong(value, from, row, 1), lengthAlong(value, from, row, -1));
    for (let some = shortestMatch; some <= length; some++) note(from, from + some, Math.log10(100 * some));
  }
}

/** Returns how many characters follow the row in this direction. */
function lengthAlong(value: Uint8Array, from: number, row: readonly number[], step: 1 | -1): number {
  const key = row.indexOf(lower(value[from] ?? 0));
  if (key < 0) return 0;
  let length = 1;
  while (from + length < value.length && row[key + step * length] === lower(value[from + length] ?? 0)) length++;
  return length;
}

/** A year, and dates of eight digits with or without separators. */
function noteDates(value: Uint8Array, from: number, note: Note): void {
  if (isYear(numberAt(value, from, 4))) note(from, from + 4, Math.log10(150));
  for (const gap of [0, 1]) {
    const end = from + 8 + 2 * gap;
    if (end > value.length) continue;
    if (
      isDateAt(value, from, from + 4 + gap, from + 6 + 2 * gap, gap) ||
      isDateAt(value, from + 4 + 2 * gap, from, from + 2 + gap, gap)
    )
      note(from, end, Math.log10(150 * 365 * (1 + 3 * gap)));
  }
}

/** Takes the places of year, month and day, in either order of the last two. */
function isDateAt(value: Uint8Array, year: number, first: number, second: number, gap: number): boolean {
  if (gap === 1 && !(isSeparator(value[second - 1]) && isSeparator(value[Math.max(year, first) - 1]))) return false;
  if (!isYear(numberAt(value, year, 4))) return false;
  const a = numberAt(value, first, 2);
  const b = numberAt(value, second, 2);
  return a >= 1 && b >= 1 && a <= 31 && b <= 31 && Math.min(a, b) <= 12;
}

function isYear(number: number): boolean {
  return number >= 1900 && number <= 2050;
}

const separators = new Set([..." -/._"].map((character) => character.charCodeAt(0)));

function isSeparator(byte = 0): boolean {
  return separators.has(byte);
}

const digitZero = 0x30;
/** -1 where a digit is missing. */
function numberAt(value: Uint8Array, from: number, digits: number): number {
  let number = 0;
  for (let at = from; at < from + digits; at++) {
    const digit = (value[at] ?? 0) - digitZero;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
  }
  return number;
}
