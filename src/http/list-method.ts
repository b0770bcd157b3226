/**
 * The method LIST of Vault's clients, which Node's parser does not know. It is respelled as LINK, which the parser knows and
 * no client sends, before the parser sees it, in place: no byte moves. A client's own LINK becomes LIST, and is refused as
 * malformed.
 *
 * DANGER: only between two requests of a connection. So that this is known, every piece that the parser gets ends at the latest
 * where a head or a body does, and what the parser announces must agree. Where it does not, nothing is respelled on this
 * connection any more, and a LIST is malformed.
 */
import type { IncomingMessage } from "node:http";

const [carriageReturn, lineFeed] = [0x0d, 0x0a];
const [list, link] = [Buffer.from("LIST"), Buffer.from("LINK")];
const emptyLine = Buffer.from("\r\n\r\n");

/** Each piece is a call of the parser: a body in chunks with only empty lines would keep the event loop busy. */
const maxBodyPieces = 4_096;

type State = "between" | "head" | "body" | "lost";

export class MethodSpelling {
  #state: State = "between";
  /** How many letters of LIST or LINK the parser has; null: the method is another one, or complete. */
  #letters: number | null = 0;
  /** How many bytes of an empty line the pieces before end with. */
  #matched = 0;
  /** Bytes of the body that are to come; null: it is in chunks. */
  #left: number | null = null;
  #bodyPieces = 0;
  #latest: IncomingMessage | null = null;
  #announced = 0;
  /** True if the piece ends where a head or a body may end. */
  #isAtEnd = false;

  /** True while this object knows the position of the parser. */
  get isOn(): boolean {
    return this.#state !== "lost";
  }

  /** Call it when the parser announces a request: at the end of its head. */
  announced(req: IncomingMessage): void {
    this.#latest = req;
    this.#announced++;
  }

  /** Returns how much of a chunk the next piece has. */
  lengthOfPiece(chunk: Buffer): number {
    if (this.#state === "body" && ++this.#bodyPieces > maxBodyPieces) this.#state = "lost";
    if (this.#state === "body" && this.#left !== null) {
      const length = Math.min(this.#left, chunk.length);
      this.#left -= length;
      this.#isAtEnd = this.#left === 0;
      return length;
    }
    const end = endOfEmptyLine(chunk, this.#matched);
    this.#isAtEnd = end !== null;
    this.#matched = end === null ? matchedAtEnd(chunk, this.#matched) : 0;
    return end ?? chunk.length;
  }

  respell(piece: Buffer): void {
    if (this.#state !== "between" && this.#state !== "head") return;
    for (let at = 0; at < piece.length && this.#letters !== null; at++) {
      const byte = piece[at];
      if (this.#letters === 0 && (byte === carriageReturn || byte === lineFeed)) continue;
      this.#state = "head";
      this.#letters = respellLetter(piece, at, this.#letters);
    }
  }

  /** Call it when the parser has taken the piece. */
  parsed(): void {
    const announced = this.#announced;
    this.#announced = 0;
    const inBody = this.#state === "body";
    if (this.#latest === null || !this.isOn || (announced === 0 && !inBody)) return;
    if (announced !== (inBody ? 0 : 1) || !this.#agrees(this.#latest)) this.#state = "lost";
    else if (this.#latest.complete) this.#beginHead();
    else if (!inBody) this.#beginBody(this.#latest);
  }

  /** Returns true if the parser is at the expected position. */
  #agrees({ complete }: IncomingMessage): boolean {
    return complete || this.#state !== "body" ? this.#isAtEnd : this.#left !== 0;
  }

  #beginHead(): void {
    this.#state = "between";
    this.#letters = 0;
  }

  #beginBody({ headers }: IncomingMessage): void {
    const { "content-length": length } = headers;
    this.#state = "body";
    this.#left = headers["transfer-encoding"] === undefined && length !== undefined ? Number(length) : null;
    this.#bodyPieces = 0;
  }
}

/** Swaps LIST and LINK, letter by letter; returns how many letters there are now, or null. */
function respellLetter(piece: Buffer, at: number, letters: number): number | null {
  const other = piece[at] === list[letters] ? link[letters] : piece[at] === link[letters] ? list[letters] : undefined;
  if (other === undefined) return null;
  piece[at] = other;
  return letters + 1 < list.length ? letters + 1 : null;
}

/** Returns the end of the first empty line, of which the bytes before have had `matched`; null when there is none. */
function endOfEmptyLine(chunk: Buffer, matched: number): number | null {
  let state = matched;
  for (let at = 0; at < Math.min(chunk.length, emptyLine.length - 1); at++) {
    state = step(state, chunk[at]);
    if (state === emptyLine.length) return at + 1;
  }
  const at = chunk.indexOf(emptyLine);
  return at < 0 ? null : at + emptyLine.length;
}

/** Returns how many bytes of an empty line a chunk without one ends with. */
function matchedAtEnd(chunk: Buffer, matched: number): number {
  const last = chunk.subarray(-(emptyLine.length - 1));
  return last.reduce(step, last.length < emptyLine.length - 1 ? matched : 0);
}

function step(matched: number, byte: number | undefined): number {
  if (byte === emptyLine[matched]) return matched + 1;
  return byte === carriageReturn ? 1 : 0;
}
