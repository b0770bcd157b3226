/** Hidden input: bytes as a terminal in raw mode sends them, edited, with bracketed pastes taken literally, and wiped. */
import type { Bytes } from "../../../../workers/protocol.js";

export type LineState = "more" | "entered" | "aborted";

const controlC = 0x03;
const controlD = 0x04;
const controlH = 0x08;
const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const controlU = 0x15;
const controlZ = 0x1a;
const space = 0x20;
const del = 0x7f;

export class HiddenLine {
  readonly #bytes: Bytes;
  readonly #endsAtControlD: boolean;
  readonly #reader = new KeyReader((byte, pasted) => this.#takeKey(byte, pasted));
  #length = 0;
  #overflowed = false;
  #state: LineState = "more";
  #hasTrailingInput = false;
  #last = 0;
  #wantsStop = false;

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
  get hasTrailingInput(): boolean {
    return this.#hasTrailingInput;
  }

  /** Adds the bytes of one read. Ctrl-C cancels in a paste too, since the paste's end may never come. */
  take(keys: Uint8Array): LineState {
    for (const byte of keys) {
      if (this.#state === "more") this.#reader.read(byte);
      else if (byte !== lineFeed || this.#last !== carriageReturn) this.#hasTrailingInput = true; // one Enter may be both
      this.#last = byte;
    }
    this.#last = this.#last === carriageReturn ? carriageReturn : 0; // no character of a secret is kept
    return this.#state;
  }

  /** Whether Ctrl-Z was typed since the last call. */
  takeStop(): boolean {
    const wantsStop = this.#wantsStop;
    this.#wantsStop = false;
    return wantsStop;
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
    else if (byte === controlZ) this.#wantsStop = true;
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

/** Switches bracketed paste mode of a terminal on and off. */
export const pasteMode = { on: "\u001b[?2004h", off: "\u001b[?2004l" } as const;

/** Takes a key's byte: no list of them, which could not be wiped. */
type TakeKey = (byte: number, pasted: boolean) => void;

const escapeKey = 0x1b;
const at = 0x40;
const letterO = 0x4f;
const bracket = 0x5b;
const pasteBegins = "[200~";
const pasteEnds = Buffer.from("\u001b[201~", "latin1");

/** An arrow or function key sends escape, `[` or `O`, and then bytes up to the first at `@` or above. */
type Sequence = "none" | "begun" | "inside";

class KeyReader {
  readonly #take: TakeKey;
  #sequence: Sequence = "none";
  /** The bytes of a sequence, as far as they can begin a paste. */
  #name = "";
  #pasting = false;
  /** How many bytes of the paste's end have come. */
  #matched = 0;

  constructor(take: TakeKey) {
    this.#take = take;
  }

  /** Takes the keys that this byte completes. */
  read(byte: number): void {
    if (this.#pasting) this.#readPasted(byte);
    else if (!this.#belongsToSequence(byte)) this.#take(byte, false);
  }

  /** Bytes that only looked like the end are part of the paste. */
  #readPasted(byte: number): void {
    if (byte === pasteEnds[this.#matched]) {
      this.#matched += 1;
      if (this.#matched === pasteEnds.length) this.#endPaste();
      return;
    }
    for (const held of pasteEnds.subarray(0, this.#matched)) this.#take(held, true);
    this.#matched = byte === escapeKey ? 1 : 0;
    if (byte !== escapeKey) this.#take(byte, true);
  }

  #endPaste(): void {
    this.#pasting = false;
    this.#matched = 0;
  }

  /** Keys that are not characters are dropped, since their effect on the line would be invisible. */
  #belongsToSequence(byte: number): boolean {
    const before = this.#sequence;
    this.#sequence = "none";
    if (byte === escapeKey) this.#begin();
    else if (before === "begun" && (byte === bracket || byte === letterO)) this.#continue(byte, false);
    else if (before === "inside" && byte >= space) this.#continue(byte, byte >= at);
    else return false;
    return true;
  }

  #begin(): void {
    this.#sequence = "begun";
    this.#name = "";
  }

  #continue(byte: number, isLast: boolean): void {
    if (this.#name.length < pasteBegins.length) this.#name += String.fromCharCode(byte);
    this.#sequence = isLast ? "none" : "inside";
    this.#pasting = isLast && this.#name === pasteBegins;
  }
}
