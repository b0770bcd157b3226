/**
 * Turns of pipelined requests: on one connection each starts only after the response before it has been sent (RFC 9112,
 * section 9.3.2). Meanwhile its bytes stay unparsed and the connection is not read, so that a client that never reads
 * costs little memory.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isAuthenticated } from "./open-connections.js";
import { overwriteStackSoon } from "./plaintext-hygiene.js";

export type Handle = (req: IncomingMessage, res: ServerResponse) => void;
type Parse = (bytes: Buffer) => void;

const pipeline = Symbol("pipeline");
type Piped = Socket & { [pipeline]?: Pipeline };

/** Without a valid token only a few requests make sense: 1,024 clients that send more would cost 260 MiB. */
const maxUnauthenticatedBytes = 4_096;

const headEnd = Buffer.from("\r\n\r\n");

/**
 * Bytes of a body that are parsed at once, whatever is in them. Each call of the parser takes 5 µs: a body of empty lines
 * that was cut at each of them kept the event loop busy for 24 s.
 */
const bodyPiece = 1_024;

/** Bytes of empty lines before a request, from which on its connection is closed. HTTP allows any number, and one is in use. */
const maxLineBreaks = 256;

/**
 * Puts a pipeline between a connection and its HTTP parser. It wipes each chunk of plaintext once the parser has copied
 * it; its listener also keeps Node from reading into one buffer for the whole process, which no code can reach.
 * For a server's event of a new connection, after Node's own listener.
 */
export function addPipeline(socket: Piped): void {
  const parsers = socket.listeners("data") as Parse[];
  for (const parser of parsers) socket.off("data", parser);
  const added = new Pipeline(socket, (bytes) => {
    for (const parser of parsers) Reflect.apply(parser, socket, [bytes]);
  });
  socket[pipeline] = added;
  socket.on("data", (chunk: Buffer) => added.take(chunk));
  socket.once("close", () => added.end());
}

/** Returns a handler that calls `handle` for each request of a connection in its turn. */
export function inTurn(handle: Handle): Handle {
  return (req, res) => {
    const { [pipeline]: queue } = req.socket as Piped;
    if (queue === undefined) handle(req, res);
    else queue.add(res, handle);
  };
}

/** Discards all further input of a connection; nothing of it is parsed. */
export function endInput(socket: Piped): void {
  socket[pipeline]?.end();
  socket.resume();
}

/** Whether a request of this connection has started whose response is not sent yet. */
export function isResponding(socket: Piped): boolean {
  return socket[pipeline]?.current != null;
}

class Pipeline {
  current: ServerResponse | null = null;
  readonly #socket: Socket;
  readonly #parse: Parse;
  /** Parsed, but not started: what came in one piece with the end of a body. */
  readonly #waiting: [ServerResponse, Handle][] = [];
  /** Not parsed yet. */
  readonly #held: Buffer[] = [];
  #isHolding = false;
  #hasEnded = false;

  constructor(socket: Socket, parse: Parse) {
    this.#socket = socket;
    this.#parse = parse;
  }

  take(chunk: Buffer): void {
    if (this.#hasEnded) return void discard(chunk);
    this.#held.push(chunk);
    this.#feed();
  }

  add(res: ServerResponse, handle: Handle): void {
    if (this.current === null) this.#start(res, handle);
    else this.#waiting.push([res, handle]);
  }

  end(): void {
    this.#hasEnded = true;
    for (const chunk of this.#held.splice(0)) discard(chunk);
  }

  #start(res: ServerResponse, handle: Handle): void {
    this.current = res;
    res.once("close", this.#next);
    handle(res.req, res);
  }

  readonly #next = (): void => {
    this.current = null;
    const [res, handle] = this.#waiting.shift() ?? [];
    if (res !== undefined && handle !== undefined && !this.#socket.destroyed) this.#start(res, handle);
    this.#feed();
  };

  /** The body of the current request is parsed as it comes; what is behind it waits. */
  get #isBusy(): boolean {
    return this.#waiting.length > 0 || this.current?.req.complete === true;
  }

  #feed(): void {
    while (!this.#isBusy && this.#held.length > 0) {
      if (this.#floods) return void this.#drop();
      const bytes = this.#cut();
      this.#parse(bytes);
      bytes.fill(0);
    }
    if (this.#held.length > 0) this.#hold();
    else if (this.#isHolding) this.#resume();
  }

  get #floods(): boolean {
    return this.current === null && lineBreaksAt(this.#held[0]) > maxLineBreaks;
  }

  #drop(): void {
    this.end();
    this.#socket.destroy();
  }

  /** Takes the first held bytes up to the end of a request's head, so that they begin few more requests: most often one. */
  #cut(): Buffer {
    const chunk = this.#held.shift() ?? Buffer.alloc(0);
    const from = this.current === null ? lineBreaksAt(chunk) : bodyPiece;
    const end = chunk.indexOf(headEnd, from) + headEnd.length;
    if (end < headEnd.length || end === chunk.length) return chunk;
    this.#held.unshift(chunk.subarray(end));
    return chunk.subarray(0, end);
  }

  #hold(): void {
    const length = this.#held.reduce((sum, chunk) => sum + chunk.length, 0);
    if (length > maxUnauthenticatedBytes && !isAuthenticated(this.#socket)) return void this.#drop();
    this.#isHolding = true;
    if (this.#socket.isPaused()) return;
    // Each time, since Node's parser resumes the socket at the end of a request. Not at once: the rest of what TLS has
    // decrypted would wait in the socket, where nothing wipes it.
    setImmediate(() => this.#isHolding && this.#socket.pause());
  }

  #resume(): void {
    this.#isHolding = false;
    this.#socket.resume();
  }
}

function discard(chunk: Buffer): void {
  chunk.fill(0);
  overwriteStackSoon();
}

/** Returns the number of line breaks at the start of a chunk, in bytes; it counts few more than are allowed. */
function lineBreaksAt(chunk: Buffer | undefined): number {
  let at = 0;
  while (at <= maxLineBreaks && (chunk?.[at] === 0x0d || chunk?.[at] === 0x0a)) at++;
  return at;
}
