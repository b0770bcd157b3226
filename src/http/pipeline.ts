/**
 * Turns of pipelined requests: on one connection each starts only after the response before it has been sent (RFC 9112,
 * section 9.3.2). Meanwhile its bytes stay unparsed and the connection is not read, so that a client that never reads
 * costs little memory.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isAuthenticated } from "./open-connections.js";

export type Handle = (req: IncomingMessage, res: ServerResponse) => void;
type Parse = (bytes: Buffer) => void;

const pipeline = Symbol("pipeline");
type Piped = Socket & { [pipeline]?: Pipeline };

/** Without a valid token only a few requests make sense: 1,024 clients that send more would cost 260 MiB. */
const maxUnauthenticatedBytes = 4_096;

const headEnd = Buffer.from("\r\n\r\n");

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
    if (this.#hasEnded) return void chunk.fill(0);
    this.#held.push(chunk);
    this.#feed();
  }

  add(res: ServerResponse, handle: Handle): void {
    if (this.current === null) this.#start(res, handle);
    else this.#waiting.push([res, handle]);
  }

  end(): void {
    this.#hasEnded = true;
    for (const chunk of this.#held.splice(0)) chunk.fill(0);
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
      const bytes = this.#cut();
      this.#parse(bytes);
      bytes.fill(0);
    }
    if (this.#held.length > 0) this.#hold();
    else if (this.#isHolding) this.#resume();
  }

  /** Takes the first held bytes up to the end of a request's head, so that they begin at most one more request. */
  #cut(): Buffer {
    const chunk = this.#held.shift() ?? Buffer.alloc(0);
    const end = chunk.indexOf(headEnd) + headEnd.length;
    if (end < headEnd.length || end === chunk.length) return chunk;
    this.#held.unshift(chunk.subarray(end));
    return chunk.subarray(0, end);
  }

  #hold(): void {
    const length = this.#held.reduce((sum, chunk) => sum + chunk.length, 0);
    if (length > maxUnauthenticatedBytes && !isAuthenticated(this.#socket)) return void this.#socket.destroy();
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
