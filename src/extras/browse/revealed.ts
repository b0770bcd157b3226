/** A value on the screen: bytes from the pipe to the terminal, never a string, and wiped. */
import type { Bytes } from "../../cli/kit/io.js";
import { displayWidth, printable } from "../../cli/kit/output.js";

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Most bytes for a character: the longest escape, as of a tag character. */
const bytesPerColumn = 10;

/** The lines of a value that is UTF-8, wrapped, with escapes for what could control the terminal. */
export class Revealed {
  readonly lines: readonly Uint8Array[];
  /** Whether not all of the value fits. */
  readonly isCut: boolean;
  readonly #arena: Bytes;
  #used = 0;

  /** The value stays the caller's to wipe. */
  constructor(value: Uint8Array, columns: number, rows: number) {
    this.#arena = new Uint8Array(new ArrayBuffer(rows * columns * bytesPerColumn));
    const lines: Uint8Array[] = [];
    let at = 0;
    while (at < value.length && lines.length < rows) {
      const begun = this.#used;
      at = this.#takeLine(value, at, columns);
      lines.push(this.#arena.subarray(begun, this.#used));
    }
    this.lines = lines;
    this.isCut = at < value.length;
  }

  wipe(): void {
    this.#arena.fill(0);
  }

  /** Takes what fits into a line; returns where the next one begins. */
  #takeLine(value: Uint8Array, from: number, columns: number): number {
    let [at, used] = [from, 0];
    while (at < value.length) {
      if (value[at] === lineFeed) return at + 1;
      if (value[at] === carriageReturn && value[at + 1] === lineFeed) return at + 2;
      const length = lengthOfCharacter(value[at] ?? 0);
      const shown = shownCharacter(value.subarray(at, at + length));
      const width = typeof shown === "string" ? displayWidth(shown) : 1;
      if (used + width > columns || this.#used + bytesPerColumn > this.#arena.length) return at;
      this.#append(shown);
      used += width;
      at += length;
    }
    return at;
  }

  #append(shown: number | string): void {
    if (typeof shown === "number") this.#arena[this.#used++] = shown;
    else this.#used += new TextEncoder().encodeInto(shown, this.#arena.subarray(this.#used)).written;
  }
}

function lengthOfCharacter(first: number): number {
  if (first < 0xc0) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

/** ASCII stays a byte; the others become a string one character at a time, to be measured. */
function shownCharacter(bytes: Uint8Array): number | string {
  const [first = 0] = bytes;
  if (first >= 0x20 && first < 0x7f) return first;
  return printable(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8"));
}
