/** A socket read piece by piece, with back pressure, and written so that what was written can be wiped. */
import type { Duplex } from "node:stream";
import { copySecret } from "../../workers/registers.js";
import { headLength, maxRequestBytes } from "./head.js";

/** Bytes that are held for a reader that is busy, before the socket is paused; and for a peer that takes them slowly. */
const highWater = 256 * 1024;

export class ByteStream {
  readonly socket: Duplex;
  readonly #pieces: Uint8Array[] = [];
  #held = 0;
  #ended = false;
  #wake: (() => void) | null = null;

  readonly #onData = (piece: Uint8Array) => this.#take(piece);
  readonly #onEnd = () => this.#end();

  constructor(socket: Duplex) {
    this.socket = socket;
    socket.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onEnd).on("error", this.#onEnd);
  }

  /** Whether the connection is open, and nothing waits to be read or written. */
  get isIdle(): boolean {
    const { destroyed, writableLength } = this.socket;
    return !this.#ended && !destroyed && writableLength === 0 && this.#pieces.length === 0;
  }

  /** Stops reading, so that another can read the socket. Returns whether nothing had been received that was not read. */
  release(): boolean {
    this.socket.pause();
    this.socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onEnd);
    return this.#pieces.length === 0;
  }

  /** Returns the next bytes, or null when there are no more. */
  async read(): Promise<Uint8Array | null> {
    while (this.#pieces.length === 0) {
      if (this.#ended) return null;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const piece = this.#pieces.shift() ?? new Uint8Array();
    this.#held -= piece.length;
    if (this.#held < highWater && this.socket.isPaused()) this.socket.resume();
    return piece;
  }

  /** Puts back what was read too far. */
  unread(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#pieces.unshift(bytes);
    this.#held += bytes.length;
  }

  /**
   * Returns the next message's head, its blank line included; null when the connection ends before it is whole.
   * @param most longest head, in bytes
   * @param lateMs how long it may take from its first byte, in milliseconds, before the connection is closed
   * @throws HeadError for a head that is too long
   */
  async readHead(most = maxRequestBytes, lateMs = 0): Promise<Uint8Array | null> {
    const first = await this.read();
    if (first === null) return null;
    const late = lateMs > 0 ? setTimeout(() => this.socket.destroy(), lateMs) : undefined;
    this.unread(first);
    return this.#readHead(most).finally(() => clearTimeout(late));
  }

  async #readHead(most: number): Promise<Uint8Array | null> {
    let space = Buffer.alloc(0);
    let held = 0;
    for (;;) {
      const piece = await this.read();
      if (piece === null) return null;
      const taken = piece.subarray(0, most + 1 - held);
      this.unread(piece.subarray(taken.length));
      if (held + taken.length > space.length) space = Buffer.concat([space], 2 * (held + taken.length));
      copySecret(space, taken, held);
      const length = headLength(space.subarray(0, held + taken.length), most, held);
      held += taken.length;
      if (length === null) continue;
      this.unread(space.subarray(length, held));
      return space.subarray(0, length);
    }
  }

  /**
   * Writes, and waits while the other side takes no more. Returns false when the connection is closed. Bytes waiting in
   * the socket go to TLS and to the system in one piece.
   */
  async write(bytes: Uint8Array): Promise<boolean> {
    const { socket } = this;
    if (socket.destroyed || !socket.writable) return false;
    if (socket.write(bytes) || socket.writableLength < highWater) return true;
    return new Promise((resolve) => {
      const done = () => {
        socket.off("drain", done).off("close", done);
        resolve(!socket.destroyed);
      };
      socket.on("drain", done).on("close", done);
    });
  }

  /**
   * Writes bytes that are secret and wipes them. DANGER: on a TLS connection whose handshake is not complete, or on which
   * another write is waiting, Node would copy them into memory that it frees unwiped.
   */
  async writeAndWipe(bytes: Uint8Array): Promise<boolean> {
    const { socket } = this;
    try {
      if (socket.destroyed || !socket.writable) return false;
      if (socket.writableLength > 0) throw new Error("a secret may be written only when nothing else is waiting");
      return await new Promise((resolve) => socket.write(bytes, (error) => resolve(!error)));
    } finally {
      bytes.fill(0);
    }
  }

  #take(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.#held += piece.length;
    if (this.#held >= highWater) this.socket.pause();
    this.#notify();
  }

  #end(): void {
    this.#ended = true;
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
