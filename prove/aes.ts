/**
 * AES-256 (FIPS 197) over millions of candidate keys, by tables: key expansion, encryption, and the search for expanded
 * keys in memory by the relation between their words. Timing does not matter here.
 */

const keyWords = 8;
/** 15 round keys of 4 words. */
export const scheduleWords = 60;

const sbox = makeSbox();
const tables = [0, 1, 2, 3].map((byte) => Uint32Array.from(sbox, (s) => rotateRight(mixedColumn(s), 8 * byte)));
const [t0, t1, t2, t3] = tables as [Uint32Array, Uint32Array, Uint32Array, Uint32Array];

function makeSbox(): Uint8Array {
  const box = new Uint8Array(256);
  let [p, q] = [1, 1];
  do {
    p = p ^ double(p); // times 3, a generator of the field
    q ^= q << 1;
    q ^= q << 2;
    q ^= q << 4;
    q = (q & 255) ^ (q & 128 ? 9 : 0); // divided by 3
    const rotated = q ^ (q << 1) ^ (q << 2) ^ (q << 3) ^ (q << 4);
    box[p] = (rotated ^ (rotated >> 8) ^ 0x63) & 255;
  } while (p !== 1);
  box[0] = 0x63;
  return box;
}

function double(byte: number): number {
  return ((byte << 1) ^ (byte & 128 ? 0x11b : 0)) & 255;
}

function mixedColumn(s: number): number {
  return (double(s) << 24) | (s << 16) | (s << 8) | (double(s) ^ s);
}

function rotateRight(value: number, bits: number): number {
  return bits === 0 ? value >>> 0 : ((value >>> bits) | (value << (32 - bits))) >>> 0;
}

function substituted(word: number): number {
  return (
    ((sbox[word >>> 24] ?? 0) << 24) |
    ((sbox[(word >>> 16) & 255] ?? 0) << 16) |
    ((sbox[(word >>> 8) & 255] ?? 0) << 8) |
    (sbox[word & 255] ?? 0)
  );
}

const roundConstants = [0, 1, 2, 4, 8, 16, 32, 64];

/** Computes word i of a schedule from the words before it. */
function nextWord(schedule: Uint32Array, i: number): number {
  const previous = schedule[i - 1] ?? 0;
  let mixed = previous;
  if (i % 8 === 0) {
    mixed = substituted((previous << 8) | (previous >>> 24)) ^ ((roundConstants[i / 8] ?? 0) << 24);
  } else if (i % 8 === 4) mixed = substituted(previous);
  return (schedule[i - 8] ?? 0) ^ mixed;
}

/** Completes a schedule whose first 8 words are the key. */
export function expandKey(schedule: Uint32Array): void {
  for (let i = keyWords; i < scheduleWords; i += 4) {
    schedule[i] = nextWord(schedule, i);
    for (let j = i + 1; j < i + 4; j++) schedule[j] = (schedule[j - 8] ?? 0) ^ (schedule[j - 1] ?? 0);
  }
}

/** Encrypts a block of 4 words in place. */
export function encryptBlock(schedule: Uint32Array, block: Uint32Array): void {
  let a = at(block, 0) ^ at(schedule, 0);
  let b = at(block, 1) ^ at(schedule, 1);
  let c = at(block, 2) ^ at(schedule, 2);
  let d = at(block, 3) ^ at(schedule, 3);
  for (let i = 4; i < 56; i += 4) {
    const e = column(a, b, c, d) ^ at(schedule, i);
    const f = column(b, c, d, a) ^ at(schedule, i + 1);
    const g = column(c, d, a, b) ^ at(schedule, i + 2);
    d = column(d, a, b, c) ^ at(schedule, i + 3);
    a = e;
    b = f;
    c = g;
  }
  block[0] = lastColumn(a, b, c, d) ^ at(schedule, 56);
  block[1] = lastColumn(b, c, d, a) ^ at(schedule, 57);
  block[2] = lastColumn(c, d, a, b) ^ at(schedule, 58);
  block[3] = lastColumn(d, a, b, c) ^ at(schedule, 59);
}

/** Word i, which exists. */
function at(words: Uint32Array, i: number): number {
  return words[i] ?? 0;
}

function column(a: number, b: number, c: number, d: number): number {
  return at(t0, a >>> 24) ^ at(t1, (b >>> 16) & 255) ^ at(t2, (c >>> 8) & 255) ^ at(t3, d & 255);
}

function lastColumn(a: number, b: number, c: number, d: number): number {
  return substituted((a & 0xff000000) | (b & 0xff0000) | (c & 0xff00) | (d & 255));
}

/** In the order of AES instructions (big endian), or word by word in the machine's order, as portable code keeps them. */
export type WordOrder = "bytes" | "words";

/**
 * Calls `found` with each place of an expanded AES-256 key. `words`: memory as little-endian words. The first computed word
 * tells nearly all other memory apart: it is compared in each word's own order, without swapping any.
 */
export function findSchedules(words: Uint32Array, found: (at: number, order: WordOrder) => void): void {
  const schedule = new Uint32Array(scheduleWords);
  for (let at = 0; at + scheduleWords <= words.length; at++) {
    const last = words[at + 7] ?? 0;
    const expected = (words[at + 8] ?? 0) ^ (words[at] ?? 0);
    const swapped = substituted((last >>> 8) | (last << 24)) ^ 1;
    if (expected === swapped && isSchedule(words, at, "bytes", schedule)) found(at, "bytes");
    const straight = substituted((last << 8) | (last >>> 24)) ^ 0x01000000;
    if (expected === straight && isSchedule(words, at, "words", schedule)) found(at, "words");
  }
  schedule.fill(0);
}

function isSchedule(words: Uint32Array, at: number, order: WordOrder, schedule: Uint32Array): boolean {
  for (let i = 0; i < scheduleWords; i++) schedule[i] = inOrder(words[at + i] ?? 0, order);
  for (let i = keyWords; i < scheduleWords; i++) {
    if (nextWord(schedule, i) >>> 0 !== schedule[i]) return false;
  }
  return true;
}

/** Returns a little-endian word of memory as the standard reads it. */
export function inOrder(word: number, order: WordOrder): number {
  return order === "words" ? word : swapBytes(word);
}

function swapBytes(word: number): number {
  return ((word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0;
}
