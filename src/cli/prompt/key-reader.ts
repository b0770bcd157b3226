/** Keys in a terminal's input: drops escape sequences, and marks what a bracketed paste holds. */

/** Switches bracketed paste mode of a terminal on and off. */
export const pasteMode = { on: "\u001b[?2004h", off: "\u001b[?2004l" } as const;

/** Takes a key's byte: no list of them, which could not be wiped. */
type TakeKey = (byte: number, pasted: boolean) => void;

const escapeKey = 0x1b;
const space = 0x20;
const at = 0x40;
const letterO = 0x4f;
const bracket = 0x5b;
const pasteBegins = "[200~";
const pasteEnds = Buffer.from("\u001b[201~", "latin1");

/** An arrow or function key sends escape, `[` or `O`, and then bytes up to the first at `@` or above. */
type Sequence = "none" | "begun" | "inside";

export class KeyReader {
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
