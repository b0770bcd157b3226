/** Hidden input: bytes as a terminal in raw mode sends them, edited, with bracketed pastes taken literally, and wiped. */
import type { Bytes } from "../../../workers/protocol.js";
import { KeyReader } from "./key-reader.js";

export type LineState = "more" | "entered" | "aborted";

const controlC = 0x03;
const controlD = 0x04;
const controlH = 0x08;
const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const controlU = 0x15;
const space = 0x20;
const del = 0x7f;

export class HiddenLine {
  readonly #bytes: Bytes;
  readonly #endsAtControlD: boolean;
  readonly #reader = new KeyReader((byte, pasted) => this.#takeKey(byte, pasted));
  #length = 0;
  #overflowed = false;
  #state: LineState = "more";
  #spilled = false;
  #last = 0;

  /** With `endsAtControlD`, Enter is a newline of the input and Ctrl-D ends it; otherwise both end it. */
  constructor(limit: number, endsAtControlD: boolean) {
    this.#bytes = new Uint8Array(new ArrayBuffer(limit));
    this.#endsAtControlD = endsAtControlD;
  }

  /** Whether more was typed than fits; the excess was dropped. */
  get overflowed(): boolean {
    return this.#overflowed;
  }

  /** Bytes. */
  get length(): number {
    return this.#length;
  }

  /** Whether anything came after the end; it was dropped. */
  get spilled(): boolean {
    return this.#spilled;
  }

  /** Adds the bytes of one read. Ctrl-C cancels in a paste too, since the paste's end may never come. */
  take(keys: Uint8Array): LineState {
    for (const byte of keys) {
      if (this.#state === "more") this.#reader.read(byte);
      else if (byte !== lineFeed || this.#last !== carriageReturn) this.#spilled = true; // one Enter may be both
      this.#last = byte;
    }
    this.#last = this.#last === carriageReturn ? carriageReturn : 0; // no character of a secret is kept
    return this.#state;
  }

  /** Returns a copy of what was typed. */
  line(): Bytes {
    return this.#bytes.slice(0, this.#length);
  }

  wipe(): void {
    this.#bytes.fill(0);
    this.#length = 0;
  }

  #takeKey(byte: number, pasted: boolean): void {
    const isEnter = byte === carriageReturn || byte === lineFeed;
    if (byte === controlC) this.#state = "aborted";
    else if (isEnter) this.#takeNewline(byte, pasted);
    else if (pasted) this.#append(byte);
    else this.#takeTyped(byte);
  }

  #takeTyped(byte: number): void {
    if (byte === controlD) this.#state = this.#length === 0 && !this.#endsAtControlD ? "aborted" : "entered";
    else if (byte === controlH || byte === del) this.#dropCharacter();
    else if (byte === controlU) this.#clear();
    else if (byte >= space || byte === tab) this.#append(byte);
  }

  /** Terminals send a pasted line feed as a carriage return, and some send both. */
  #takeNewline(byte: number, pasted: boolean): void {
    if (!pasted && !this.#endsAtControlD) this.#state = "entered";
    else if (byte === carriageReturn || this.#last !== carriageReturn) this.#append(lineFeed);
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
