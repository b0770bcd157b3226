/** Where a message's body ends, found in the bytes as they stream past: they are never held, and never changed. */
import { type BodyLength, HeadError } from "./head.js";

/** Longest line of a chunk's size, its extensions included; a client that needs more is not one. */
const maxSizeLine = 256;

/** Follows one body. `take` returns how many of the bytes belong to it; the rest is the next message. */
export interface BodyReader {
  take(bytes: Uint8Array): number;
  readonly ended: boolean;
}

export function readerOf(length: BodyLength): BodyReader {
  if (length === "chunked") return new ChunkedReader();
  return new LengthReader(length === "until-close" ? Number.POSITIVE_INFINITY : length);
}

class LengthReader implements BodyReader {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get ended(): boolean {
    return this.#left === 0;
  }

  take(bytes: Uint8Array): number {
    const taken = Math.min(this.#left, bytes.length);
    this.#left -= taken;
    return taken;
  }
}

/** Chunked coding (RFC 9112, section 7.1), without trailers: they could add headers behind the head that was checked. */
class ChunkedReader implements BodyReader {
  #state: "size" | "data" | "data-end" | "last" | "ended" = "size";
  #line = "";
  #left = 0;

  get ended(): boolean {
    return this.#state === "ended";
  }

  take(bytes: Uint8Array): number {
    let at = 0;
    while (at < bytes.length && this.#state !== "ended") {
      if (this.#state === "data") at += this.#skip(bytes.length - at);
      else this.#readByte(bytes[at++] ?? 0);
    }
    return at;
  }

  #skip(available: number): number {
    const skipped = Math.min(this.#left, available);
    this.#left -= skipped;
    if (this.#left === 0) this.#state = "data-end";
    return skipped;
  }

  /** Collects a line; a bare CR or LF is refused where the line is read. */
  #readByte(byte: number): void {
    this.#line += String.fromCharCode(byte);
    if (this.#line.length > maxSizeLine) throw new HeadError("a line of the chunked body is too long");
    if (byte !== 0x0a) return;
    const line = this.#line;
    this.#line = "";
    if (!line.endsWith("\r\n")) throw new HeadError("a line of the chunked body does not end with CR LF");
    this.#endLine(line.slice(0, -2));
  }

  #endLine(line: string): void {
    if (this.#state !== "size") {
      if (line !== "")
        throw new HeadError(this.#state === "last" ? "trailers are not supported" : "a chunk is longer than it says");
      this.#state = this.#state === "last" ? "ended" : "size";
      return;
    }
    const [, digits] = /^([0-9A-Fa-f]{1,12})(?:;[\t -~]*)?$/.exec(line) ?? [];
    if (digits === undefined) throw new HeadError("the size of a chunk is invalid");
    this.#left = Number.parseInt(digits, 16);
    this.#state = this.#left === 0 ? "last" : "data";
  }
}
