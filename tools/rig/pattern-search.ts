/**
 * Search for many byte patterns in one pass (Wu and Manber, 1994): memory and snapshots of hundreds of megabytes are
 * searched for dozens to hundreds of forms of secrets.
 */

/** Bytes to search for; at least two. */
type Pattern = { readonly bytes: Uint8Array };

export class PatternSearch<P extends Pattern> {
  /** Length of the shortest pattern; only so many first bytes of each pattern decide where the search looks. */
  readonly #length: number;
  /** Shifts by pair of bytes: the distance to the next place where a pattern's first bytes may end. */
  readonly #shifts: Uint8Array;
  /** By pair of bytes: 1 where a pattern begins with it. */
  readonly #beginnings = new Uint8Array(65_536);
  /** The most zeros in a row in a pattern's first bytes; infinite where those are nothing else. */
  readonly #mostZeros: number;
  /** Patterns by the last pair of their first bytes. */
  readonly #candidates = new Map<number, P[]>();

  constructor(patterns: readonly P[]) {
    this.#length = Math.min(256, ...patterns.map(({ bytes }) => bytes.length));
    if (this.#length < 2) throw new Error("a pattern is shorter than two bytes");
    const mostZeros = Math.max(...patterns.map(({ bytes }) => mostZerosIn(bytes.subarray(0, this.#length))));
    this.#mostZeros = mostZeros < this.#length ? mostZeros : Number.POSITIVE_INFINITY;
    this.#shifts = new Uint8Array(65_536).fill(this.#length - 1);
    for (const pattern of patterns) this.#add(pattern);
  }

  #add(pattern: P): void {
    const last = this.#length - 2;
    for (let at = 0; at <= last; at++) {
      const pair = pairAt(pattern.bytes, at);
      this.#shifts[pair] = Math.min(this.#shifts[pair] ?? 0, last - at);
    }
    this.#beginnings[pairAt(pattern.bytes, 0)] = 1;
    const pair = pairAt(pattern.bytes, last);
    this.#candidates.set(pair, [...(this.#candidates.get(pair) ?? []), pattern]);
  }

  /** Calls `found` for every occurrence that begins before `limit`, overlapping ones included. */
  search(bytes: Uint8Array, found: (pattern: P) => void, limit = bytes.length): void {
    const last = this.#length - 2;
    const end = Math.min(bytes.length - 1, limit + last);
    let [zerosEnd, quietFrom] = [0, 0];
    for (let at = last; at < end; ) {
      const pair = pairAt(bytes, at);
      // Most memory is empty: with two zeros in a row in a pattern, each byte of it was looked at.
      if (pair === 0 && at >= zerosEnd) [zerosEnd, quietFrom] = [endOfZeros(bytes, at), at + this.#mostZeros];
      if (at >= quietFrom && at < zerosEnd - 1) {
        at = zerosEnd - 1;
        continue;
      }
      const shift = this.#shifts[pair] ?? 0;
      // A key in UTF-16 may end its first bytes with two zeros, as all empty memory does: comparing each would be slow.
      if (shift === 0 && this.#beginnings[pairAt(bytes, at - last)] === 1) this.#compare(bytes, at - last, pair, found);
      at += shift || 1;
    }
  }

  #compare(bytes: Uint8Array, start: number, pair: number, found: (pattern: P) => void): void {
    for (const pattern of this.#candidates.get(pair) ?? []) if (isAt(bytes, start, pattern)) found(pattern);
  }
}

function pairAt(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
}

const zeros = Buffer.alloc(4096);

/** Most runs of zeros are so short that comparing them with a page of zeros costs more than reading them. */
const shortRun = 64;

function endOfZeros(bytes: Uint8Array, from: number): number {
  let at = from;
  for (; at < from + shortRun; at++) if (bytes[at] !== 0) return at;
  while (at + zeros.length <= bytes.length && zeros.compare(bytes, at, at + zeros.length) === 0) at += zeros.length;
  while (bytes[at] === 0) at++;
  return at;
}

function mostZerosIn(bytes: Uint8Array): number {
  return Math.max(0, ...(Buffer.from(bytes).toString("latin1").match(/\0+/g) ?? []).map((run) => run.length));
}

function isAt(bytes: Uint8Array, start: number, { bytes: wanted }: Pattern): boolean {
  for (let n = 0; n < wanted.length; n++) if (bytes[start + n] !== wanted[n]) return false;
  return true;
}
