/**
 * A request without a body whose response is read into memory of ours, which is wiped: `node:http` copies bodies into memory
 * that it frees unwiped. Each request has a connection of its own, which the server closes.
 */
import type { OnReadOpts, Socket } from "node:net";
import { type Bytes, own } from "./json-body.js";
import type { Received } from "./response.js";

/** Every piece arrives here, and is taken before the next one. */
const piece = new Uint8Array(new ArrayBuffer(64 * 1024));

const headEnd = Buffer.from("\r\n\r\n");
const mostHeadBytes = 64 * 1024;

/** The response is not one that a Strongroom server sends. */
export class UnreadableResponse extends Error {}

type Receiving = { readonly socket: Socket; readonly received: Promise<Received> };

/** `most`: bytes of the body. `received` rejects with UnreadableResponse or the connection's error. */
export function receiveOwned(connect: (onread: OnReadOpts) => Socket, head: string, most: number): Receiving {
  const response = new OwnedResponse(most);
  const callback = (length: number): boolean => {
    const isLast = response.take(piece.subarray(0, length));
    piece.fill(0, 0, length);
    if (isLast) socket.destroy();
    return true;
  };
  const socket = connect({ buffer: piece, callback });
  const received = new Promise<Received>((resolve, reject) => {
    socket.once("error", reject).once("close", () => {
      const whole = response.whole();
      if (whole !== null) return resolve(whole);
      response.wipe();
      return reject(response.isPart ? Object.assign(new Error(), { code: "ECONNRESET" }) : new UnreadableResponse());
    });
  });
  socket.write(head);
  return { socket, received };
}

type Head = Omit<Received, "body"> & { readonly start: number; readonly end: number };

class OwnedResponse {
  readonly #most: number;
  #held: Bytes = own(4096);
  #length = 0;
  #head: Head | null = null;

  constructor(most: number) {
    this.#most = most;
  }

  /** Copies what has come; returns whether no more is wanted. */
  take(bytes: Uint8Array): boolean {
    if (this.#length + bytes.length > this.#held.length) this.#grow(this.#length + bytes.length);
    this.#held.set(bytes, this.#length);
    this.#length += bytes.length;
    this.#head ??= headIn(Buffer.from(this.#held.buffer, 0, Math.min(this.#length, mostHeadBytes)));
    if (this.#head === null) return this.#length >= mostHeadBytes;
    const { start, end } = this.#head;
    return !(end - start <= this.#most) || this.#length >= end;
  }

  /** Returns the response, whose body is the caller's to wipe; null where it is not whole. */
  whole(): Received | null {
    if (this.#head === null || !(this.#length >= this.#head.end)) return null;
    const { status, headers, start, end } = this.#head;
    if (end - start > this.#most) return null;
    return { status, headers, body: Buffer.from(this.#held.buffer, start, end - start) };
  }

  /** Whether more was to come. */
  get isPart(): boolean {
    if (this.#head === null) return this.#length < mostHeadBytes;
    const { start, end } = this.#head;
    return end - start <= this.#most && this.#length < end;
  }

  wipe(): void {
    this.#held.fill(0);
  }

  #grow(length: number): void {
    const larger = own(2 * length);
    larger.set(this.#held);
    this.#held.fill(0);
    this.#held = larger;
  }
}

/** Returns null for what has no end yet. `end`: NaN without a length, so that the response is never whole. */
function headIn(bytes: Buffer): Head | null {
  const length = bytes.indexOf(headEnd);
  if (length < 0) return null;
  const [first = "", ...lines] = bytes.toString("latin1", 0, length).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  const start = length + headEnd.length;
  return { status, headers, start, end: start + Number(headers["content-length"] ?? Number.NaN) };
}
