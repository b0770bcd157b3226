/**
 * Masking of values in a stream of bytes: each occurrence becomes `***`, across chunk boundaries, and no other byte is
 * changed. Only what may be the start of a value is held back, so at most the length of the longest one. Of values that
 * start at the same byte the longest is masked; where values overlap, all of their bytes are.
 */
import { Transform } from "node:stream";

/** Shorter values are not masked: they would match everywhere. */
export const minMaskedBytes = 4;

/** Shorter lines of a multi-line value are not masked alone: they are mostly no secret, such as `{` or `key:`. */
const minLineBytes = 8;

const stars = Buffer.from("***");

export class Masker {
  /** Keyed by the first four bytes; the longest first. */
  readonly #values = new Map<number, Buffer[]>();
  /** For each byte, whether a value starts with it: this alone rules out most positions. */
  readonly #first = new Uint8Array(256);
  /** Prefixes of values, of one to three bytes. */
  readonly #prefixes = new Set<string>();
  #held: Buffer = Buffer.alloc(0);
  /** How many of the held bytes belong to a value that is already masked. */
  #covered = 0;

  constructor(values: readonly Buffer[]) {
    const long = values
      .flatMap((value) => [value, ...splitLines(value)])
      .filter(({ length }) => length >= minMaskedBytes);
    for (const value of long.sort((a, b) => b.length - a.length)) {
      const key = value.readUInt32BE(0);
      this.#first[value.readUInt8(0)] = 1;
      this.#values.set(key, [...(this.#values.get(key) ?? []), value]);
      for (let length = 1; length < minMaskedBytes; length++) {
        this.#prefixes.add(value.toString("latin1", 0, length));
      }
    }
  }

  /** Returns the output that is decided so far. */
  take(chunk: Buffer): Buffer {
    return this.#scan(this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]), false);
  }

  /** Returns the rest, at the end of the stream. */
  end(): Buffer {
    return this.#scan(this.#held, true);
  }

  #scan(bytes: Buffer, last: boolean): Buffer {
    const shown: Buffer[] = [];
    let clear = 0; // start of the bytes to show next
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

  /** Length of the longest value at this position; 0 for none. */
  #lengthAt(bytes: Buffer, at: number, last: boolean): number | "undecided" {
    if (this.#first[bytes[at] ?? 0] === 0) return 0;
    if (bytes.length - at >= minMaskedBytes) return this.#longestAt(bytes, at, last);
    return !last && this.#prefixes.has(bytes.toString("latin1", at)) ? "undecided" : 0;
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

/** Programs print lines one by one, with line ends and indentation of their own: both are left out here. */
function splitLines(value: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0, end = 0; start < value.length; start = end + 1) {
    const newline = value.indexOf(0x0a, start);
    end = newline === -1 ? value.length : newline;
    const line = trimmed(value.subarray(start, end));
    if (line.length >= minLineBytes) lines.push(line);
  }
  return value.includes(0x0a) ? lines : [];
}

function trimmed(line: Buffer): Buffer {
  const isText = (byte: number) => byte > 0x20;
  return line.subarray(Math.max(0, line.findIndex(isText)), line.findLastIndex(isText) + 1);
}

/** Shows nothing before the values are known. */
export function maskingStream(values: Promise<readonly Buffer[]>): Transform {
  const ready = values.then((known) => new Masker(known));
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => void ready.then((masker) => done(null, masker.take(chunk)), done),
    flush: (done) => void ready.then((masker) => done(null, masker.end()), done),
  });
}

export function frame(value: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(value));
  return Buffer.concat([length, Buffer.from(value)]);
}

/** Returns the whole values among the bytes. */
export function unframe(bytes: Buffer): Buffer[] {
  const values: Buffer[] = [];
  let at = 0;
  while (bytes.length - at >= 4) {
    const end = at + 4 + bytes.readUInt32BE(at);
    if (end > bytes.length) break; // the writer was ended
    values.push(bytes.subarray(at + 4, end));
    at = end;
  }
  return values;
}
