/**
 * Table of frequent words with their ranks, in memory that both threads see: the key worker has no files, and loads no lists.
 * Nothing in it is secret. Each slot has 32 bits of a word's hash and its rank; other bits of the hash choose the slot. A text
 * that is no word is taken for one about once in 10^9 look-ups.
 */

/**
 * A hash of 64 bits in two halves, which a byte at a time extends. DANGER: as numbers, not as an object: hashes of a value's
 * beginnings give the value, and what is on the heap stays there.
 */
export const [startA, startB] = [0x811c9dc5 | 0, 0x9e3779b9 | 0];

export function stepA(a: number, byte: number): number {
  return Math.imul(a ^ byte, 0x01000193);
}

export function stepB(b: number, byte: number): number {
  return Math.imul((b ^ byte) + 0x7f4a7c15, 0x85ebca6b) ^ (b >>> 13);
}

/** Two numbers for each slot: half of the hash, and the rank, which is 0 in an empty slot. */
export type WordSlots = Int32Array<ArrayBufferLike>;

export class WordTable {
  readonly #slots: WordSlots;
  readonly #mask: number;

  /** `slots`: twice a power of two. */
  constructor(slots: WordSlots) {
    this.#slots = slots;
    this.#mask = slots.length / 2 - 1;
  }

  /** Returns the rank of the word with this hash, from 1; 0 for none. */
  rank(a: number, b: number): number {
    return this.#slots[2 * this.#pairSlot(a, b) + 1] ?? 0;
  }

  /** Adds a word of ASCII in lower case, unless it has a lower rank already. */
  add(word: string, rank: number): void {
    let [a, b] = [startA, startB];
    for (let at = 0; at < word.length; at++) {
      a = stepA(a, word.charCodeAt(at));
      b = stepB(b, word.charCodeAt(at));
    }
    const slot = this.#pairSlot(a, b);
    const before = this.#slots[2 * slot + 1] ?? 0;
    if (before !== 0 && before <= rank) return;
    this.#slots[2 * slot] = b;
    this.#slots[2 * slot + 1] = rank;
  }

  /** Returns the slot of the hash, or the empty one where it would be. */
  #pairSlot(a: number, b: number): number {
    const slots = this.#slots;
    let slot = (a ^ (a >>> 15)) & this.#mask;
    while (slots[2 * slot + 1] !== 0 && slots[2 * slot] !== b) slot = (slot + 1) & this.#mask;
    return slot;
  }
}
