/** Hidden input line: bytes as a terminal in raw mode sends them, edited, and wiped. */
import type { Bytes } from "../../../workers/protocol.js";

export type LineState = "more" | "entered" | "aborted";

const controlC = 0x03;
const controlD = 0x04;
const controlH = 0x08;
const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const controlU = 0x15;
const escapeKey = 0x1b;
const space = 0x20;
const at = 0x40;
const letterO = 0x4f;
const bracket = 0x5b;
const del = 0x7f;

/** An arrow or function key sends escape, `[` or `O`, and then bytes up to the first at `@` or above. */
type Sequence = "none" | "begun" | "inside";

export class HiddenLine {
  readonly #bytes: Bytes;
  #length = 0;
  #overflowed = false;
  #sequence: Sequence = "none";

  constructor(limit: number) {
    this.#bytes = new Uint8Array(new ArrayBuffer(limit));
  }

  /** Whether more was typed than fits; the excess was dropped. */
  get overflowed(): boolean {
    return this.#overflowed;
  }

  /** Adds the bytes of one read; drops what follows the end of the line. */
  take(keys: Uint8Array): LineState {
    for (const byte of keys) {
      const state = this.#takeByte(byte);
      if (state !== "more") return state;
    }
    return "more";
  }

  /** Returns a copy of what was typed. */
  line(): Bytes {
    return this.#bytes.slice(0, this.#length);
  }

  wipe(): void {
    this.#bytes.fill(0);
    this.#length = 0;
  }

  #takeByte(byte: number): LineState {
    if (this.#belongsToKey(byte)) return "more";
    if (byte === carriageReturn || byte === lineFeed) return "entered";
    if (byte === controlC) return "aborted";
    if (byte === controlD) return this.#length === 0 ? "aborted" : "entered";
    if (byte === controlH || byte === del) this.#dropCharacter();
    else if (byte === controlU) this.#clear();
    else if (byte >= space || byte === tab) this.#append(byte);
    return "more";
  }

  /** Keys that are not characters are dropped, since their effect on the line would be invisible. */
  #belongsToKey(byte: number): boolean {
    const before = this.#sequence;
    this.#sequence = "none";
    if (byte === escapeKey) this.#sequence = "begun";
    else if (before === "begun" && (byte === bracket || byte === letterO)) this.#sequence = "inside";
    else if (before === "inside" && byte >= space) this.#sequence = byte < at ? "inside" : "none";
    else return false;
    return true;
  }

  #append(byte: number): void {
    if (this.#length === this.#bytes.length) this.#overflowed = true;
    else this.#bytes[this.#length++] = byte;
  }

  /** Drops the last byte, and with a continuation byte (10xxxxxx) the rest of its character. */
  #dropCharacter(): void {
    let byte = 0;
    do {
      if (this.#length === 0) return;
      byte = this.#bytes[--this.#length] ?? 0;
      this.#bytes[this.#length] = 0;
    } while ((byte & 0xc0) === 0x80);
  }

  #clear(): void {
    this.wipe();
    this.#overflowed = false;
  }
}
