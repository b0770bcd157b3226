/** Where a message's body ends, found in the bytes as they stream past: they are never held. */
import type { ByteStream } from "./byte-stream.js";
import { type BodyLength, HeadError } from "./head.js";

/** Follows one body. */
export interface BodyReader {
  /**
   * Returns how many of the bytes belong to the body, the rest being the next message, what of them is passed on, and what of
   * them is its content, without the frames of chunks.
   */
  take(bytes: Uint8Array): {
    readonly taken: number;
    readonly passed: readonly Uint8Array[];
    readonly content: readonly Uint8Array[];
  };
  readonly ended: boolean;
}

/** A request's body is read strictly. A response's, whose head was already sent, is read as every client does. */
export type MessageKind = "request" | "response";

export function bodyReader(length: BodyLength, kind: MessageKind): BodyReader {
  if (length === "chunked") return new ChunkedReader(kind);
  return new LengthReader(length === "until-close" ? Number.POSITIVE_INFINITY : length);
}

/**
 * Reads the content of a whole body; returns null when it is longer than `most` bytes.
 * @throws HeadError for an invalid body, and when the connection ends before it does
 */
export async function readWholeBody(stream: ByteStream, reader: BodyReader, most: number): Promise<Uint8Array | null> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  while (!reader.ended) {
    const piece = await stream.read();
    if (piece === null) throw new HeadError("the connection ended within the body");
    const { taken, content } = reader.take(piece);
    stream.unread(piece.subarray(taken));
    for (const bytes of content) length += bytes.length;
    if (length > most) return null;
    pieces.push(...content);
  }
  return Buffer.concat(pieces);
}

class LengthReader implements BodyReader {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get ended(): boolean {
    return this.#left === 0;
  }

  take(bytes: Uint8Array) {
    const taken = Math.min(this.#left, bytes.length);
    this.#left -= taken;
    const passed = [bytes.subarray(0, taken)];
    return { taken, passed, content: passed };
  }
}

/** `line`: the longest line of a chunk's size with its extensions, or of a trailer; `trailers`: all of them, in bytes. */
const limits = {
  request: { line: 256, trailers: 0, size: /^([0-9A-Fa-f]{1,12})(?:;[\t -~]*)?$/ },
  response: { line: 16 * 1024, trailers: 64 * 1024, size: /^0{0,64}([0-9A-Fa-f]{1,12})[\t ]*(?:;[\t -~\x80-\xff]*)?$/ },
} as const;

const end = Buffer.from("\r\n");

/**
 * Chunked coding (RFC 9112, section 7.1). Trailers could add headers after the head was checked: a request with one is refused,
 * and a response's are dropped.
 */
class ChunkedReader implements BodyReader {
  readonly #limits: (typeof limits)[MessageKind];
  #state: "size" | "data" | "data-end" | "last" | "ended" = "size";
  #line = "";
  #left = 0;
  #trailers = 0;

  constructor(kind: MessageKind) {
    this.#limits = limits[kind];
  }

  get ended(): boolean {
    return this.#state === "ended";
  }

  take(bytes: Uint8Array) {
    let at = 0;
    const content: Uint8Array[] = [];
    while (at < bytes.length && !this.#isTrailing) {
      if (this.#state === "data") {
        const start = at;
        at += this.#skip(bytes.length - at);
        content.push(bytes.subarray(start, at));
      } else this.#readByte(bytes[at++] ?? 0);
    }
    const passed = bytes.subarray(0, at);
    while (at < bytes.length && !this.ended) this.#readByte(bytes[at++] ?? 0);
    return { taken: at, passed: this.ended ? [passed, end] : [passed], content };
  }

  /** Whether the last chunk is over: what follows are trailers and the end. */
  get #isTrailing(): boolean {
    return this.#state === "last" || this.#state === "ended";
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
    if (this.#line.length > this.#limits.line) throw new HeadError("a line of the chunked body is too long");
    if (byte !== 0x0a) return;
    const line = this.#line;
    this.#line = "";
    if (!line.endsWith("\r\n")) throw new HeadError("a line of the chunked body does not end with CR LF");
    this.#endLine(line.slice(0, -2));
  }

  #endLine(line: string): void {
    if (this.#state === "last") this.#endTrailer(line);
    else if (this.#state === "size") this.#endSize(line);
    else if (line !== "") throw new HeadError("a chunk is longer than it says");
    else this.#state = "size";
  }

  #endSize(line: string): void {
    const [, digits] = this.#limits.size.exec(line) ?? [];
    if (digits === undefined) throw new HeadError("the size of a chunk is invalid");
    this.#left = Number.parseInt(digits, 16);
    this.#state = this.#left === 0 ? "last" : "data";
  }

  #endTrailer(line: string): void {
    if (line === "") this.#state = "ended";
    else if (this.#limits.trailers === 0) throw new HeadError("trailers are not supported");
    this.#trailers += line.length;
    if (this.#trailers > this.#limits.trailers) throw new HeadError("the trailers are too long");
  }
}
