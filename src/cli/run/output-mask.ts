/**
 * Owns the hiding of values in a stream of bytes: each occurrence becomes `***`, wherever chunks end, and no other byte
 * is changed. Held back is only what may be the beginning of a value, so never more than the longest one. Of values that
 * begin at the same place the longest is hidden; where two overlap, all of both.
 */
import { Transform } from "node:stream";

/** In bytes. Shorter values are not hidden: they would be found everywhere. */
export const minMaskedBytes = 4;

const stars = Buffer.from("***");

export class Masker {
  /** By their first four bytes; the longest first. */
  readonly #values = new Map<number, Buffer[]>();
  /** For each byte, whether a value begins with it: most places are passed by this alone. */
  readonly #first = new Uint8Array(256);
  /** The beginnings of values that are shorter than four bytes. */
  readonly #beginnings = new Set<string>();
  #held: Buffer = Buffer.alloc(0);
  /** How many of the held bytes belong to a value that was found before them. */
  #covered = 0;

  constructor(values: readonly string[]) {
    const long = [...new Set(values)]
      .map((value) => Buffer.from(value))
      .filter(({ length }) => length >= minMaskedBytes);
    for (const value of long.sort((a, b) => b.length - a.length)) {
      const key = value.readUInt32BE(0);
      this.#first[value.readUInt8(0)] = 1;
      this.#values.set(key, [...(this.#values.get(key) ?? []), value]);
      for (let length = 1; length < minMaskedBytes; length++) {
        this.#beginnings.add(value.toString("latin1", 0, length));
      }
    }
  }

  /** What can be shown now. */
  take(chunk: Buffer): Buffer {
    return this.#scan(this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]), false);
  }

  /** What was held back: nothing follows. */
  end(): Buffer {
    return this.#scan(this.#held, true);
  }

  #scan(bytes: Buffer, last: boolean): Buffer {
    const shown: Buffer[] = [];
    let clear = 0; // where the bytes begin that are to be shown next
    let covered = this.#covered;
    let at = 0;
    for (; at < bytes.length; at++) {
      const length = this.#lengthAt(bytes, at, last);
      if (length === "undecided") break;
      if (length > 0 && at >= covered) shown.push(bytes.subarray(clear, at), stars);
      if (length > 0) covered = Math.max(covered, at + length);
      if (at < covered) clear = at + 1;
    }
    shown.push(bytes.subarray(clear, at));
    this.#held = Buffer.from(bytes.subarray(at));
    this.#covered = Math.max(0, covered - at);
    return Buffer.concat(shown);
  }

  /** How long the longest value is that stands here; 0 for none. */
  #lengthAt(bytes: Buffer, at: number, last: boolean): number | "undecided" {
    if (this.#first[bytes[at] ?? 0] === 0) return 0;
    if (bytes.length - at >= minMaskedBytes) return this.#longestAt(bytes, at, last);
    return !last && this.#beginnings.has(bytes.toString("latin1", at)) ? "undecided" : 0;
  }

  #longestAt(bytes: Buffer, at: number, last: boolean): number | "undecided" {
    for (const value of this.#values.get(bytes.readUInt32BE(at)) ?? []) {
      const length = Math.min(bytes.length - at, value.length);
      if (bytes.compare(value, 0, length, at, at + length) !== 0) continue;
      if (length === value.length) return length;
      if (!last) return "undecided";
    }
    return 0;
  }
}

export function maskingStream(values: readonly string[]): Transform {
  const masker = new Masker(values);
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => done(null, masker.take(chunk)),
    flush: (done) => done(null, masker.end()),
  });
}
