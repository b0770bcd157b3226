/** D-Bus messages on a socket. */
import type { Socket } from "node:net";
import { MalformedMessage, type Message, messageLength, own, prefixBytes, readMessage, writeMessage } from "./wire.js";

/** Limit of a message, in bytes: larger than any secret that a server takes by default. */
const mostMessageBytes = 8 * 2 ** 20;
/** Limit of messages that the other side has not read, in bytes. */
const mostUnreadBytes = 8 * 2 ** 20;
/** Limit of what all connections hold: messages that have not arrived as a whole, and messages that are not read, in bytes. */
const mostBytes = 64 * 2 ** 20;
/** A connection that holds less is not worth a count of all. */
const fewBytes = 64 * 2 ** 10;

const open = new Set<Stream>();

/** Ends the connections that hold the most, until all hold less than the limit: others are served. */
function endLargest(): void {
  let all = [...open].reduce((sum, { bytes }) => sum + bytes, 0);
  for (const stream of [...open].sort((a, b) => b.bytes - a.bytes)) {
    if (all <= mostBytes) return;
    all -= stream.bytes;
    stream.end();
  }
}

/** Messages of one connection: an authenticated stream in either role. Whatever is malformed ends it. */
export class Stream {
  readonly socket: Socket;
  readonly #take: (message: Message, bytes: Uint8Array) => void;
  #held = own(0);
  #length = 0;
  #serial = 0;

  /** `take` gets each message and its bytes, to wipe when it is done. */
  constructor(socket: Socket, take: (message: Message, bytes: Uint8Array) => void) {
    this.socket = socket;
    this.#take = take;
    socket.on("error", () => socket.destroy()).once("end", () => socket.destroy());
    socket.once("close", () => this.end());
    open.add(this);
  }

  /** Memory that the connection holds, in bytes. */
  get bytes(): number {
    return this.#held.length + this.socket.writableLength;
  }

  /** Ends the connection, and wipes what has not arrived as a whole. */
  end(): void {
    open.delete(this);
    this.socket.destroy();
    this.#drop();
  }

  /** Takes what has come, which is wiped. */
  receive(bytes: Uint8Array): void {
    try {
      this.#hold(bytes);
      for (let whole = this.#next(); whole !== null; whole = this.#next()) this.#take(readMessage(whole), whole);
    } catch (error) {
      if (!(error instanceof MalformedMessage)) throw error;
      this.socket.destroy();
    } finally {
      bytes.fill(0);
    }
  }

  send(message: Omit<Message, "serial">): number {
    const serial = ++this.#serial;
    if (this.socket.destroyed) return serial;
    const bytes = writeMessage({ ...message, serial });
    this.socket.write(bytes, () => bytes.fill(0));
    if (this.socket.writableLength > mostUnreadBytes) this.end();
    else if (this.socket.writableLength > fewBytes) endLargest();
    return serial;
  }

  #hold(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#held.length) {
      const larger = own(Math.max(4096, 2 * length));
      larger.set(this.#held);
      this.#held.fill(0);
      this.#held = larger;
    }
    this.#held.set(bytes, this.#length);
    this.#length = length;
    if (this.#held.length > fewBytes) endLargest();
  }

  /** Returns the first message in memory of its own, or null. */
  #next(): Uint8Array<ArrayBuffer> | null {
    const length = this.#length < prefixBytes ? null : messageLength(this.#held, mostMessageBytes);
    if (length === null || length > this.#length) return null;
    const message = own(length);
    message.set(this.#held.subarray(0, length));
    this.#held.copyWithin(0, length, this.#length).fill(0, this.#length - length, this.#length);
    this.#length -= length;
    if (this.#length === 0 && this.#held.length > 4096) this.#drop();
    return message;
  }

  #drop(): void {
    this.#held.fill(0);
    this.#held = own(0);
    this.#length = 0;
  }
}
