/**
 * Connections: the turns of pipelined requests, which connections to close when there are too many, and the end of one whose
 * request has a body that no endpoint reads.
 *
 * On one connection each request starts only after the response before it has been sent (RFC 9112, section 9.3.2). Until then
 * its bytes stay unparsed and the connection is not read, so that a client that never reads costs little memory.
 *
 * Connections that never presented a valid token get a quarter of the places; beyond, the oldest of them is closed. So a
 * client with the token always gets in, and clients without one cost a bounded amount of memory. Where all others have
 * presented one, the connection that has been idle for the longest makes room.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { MethodSpelling } from "./list-method.js";
import { isAuthenticatedRequest } from "./request.js";

export type Handle = (req: IncomingMessage, res: ServerResponse) => void;
type Parse = (bytes: Buffer) => void;

const pipeline = Symbol("pipeline");
type Piped = Socket & { [pipeline]?: Pipeline };

/** Memory limit for pending bytes of a connection without a valid token, which needs only a few requests. */
const maxUnauthenticatedBytes = 4_096;

const headEnd = Buffer.from("\r\n\r\n");

/**
 * Bytes of a body that are parsed in one call, whatever is in them. DANGER: cut at each line break, a body of empty lines would
 * be a call of the parser for each byte, and keep the event loop busy.
 */
const bodyPiece = 1_024;

/** Bytes of empty lines before a request, from which on its connection is closed. HTTP allows any number, and one is in use. */
const maxLineBreaks = 256;

/** `takesList`: its requests may have the method LIST, which Node's parser does not know; the handler gets it as LINK. */
type PipelineOptions = { readonly takesList?: boolean };

/**
 * Puts a pipeline between a connection and its HTTP parser. It wipes each chunk of plaintext once the parser has copied
 * it; its listener also keeps Node from reading into one buffer for the whole process, which no code can reach.
 * For a server's event of a new connection, after Node's own listener.
 */
export function addPipeline(socket: Piped, { takesList = false }: PipelineOptions = {}): void {
  const parsers = socket.listeners("data") as Parse[];
  for (const parser of parsers) socket.off("data", parser);
  const parse = (bytes: Buffer) => {
    for (const parser of parsers) Reflect.apply(parser, socket, [bytes]);
  };
  const added = new Pipeline(socket, parse, takesList ? new MethodSpelling() : null);
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

/** Returns the responses of a connection's requests that are not sent yet, in their order. */
export function unsentResponses(socket: Piped): readonly ServerResponse[] {
  return socket[pipeline]?.unsent ?? [];
}

/** Returns true while a request of this connection has no complete response yet. */
export function isResponding(socket: Piped): boolean {
  return socket[pipeline]?.current != null;
}

/** Orders connections by their last request. */
let requests = 0;

/** Returns the socket that has been idle for the longest; undefined when all have a request in progress. */
export function longestIdle<S>(sockets: Iterable<S>, pipelineState: (socket: S) => Piped): S | undefined {
  let found: S | undefined;
  let oldest = Number.POSITIVE_INFINITY;
  for (const socket of sockets) {
    const { [pipeline]: queue } = pipelineState(socket);
    if (queue === undefined || queue.current !== null || queue.lastRequest >= oldest) continue;
    found = socket;
    oldest = queue.lastRequest;
  }
  return found;
}

class Pipeline {
  current: ServerResponse | null = null;
  /** Number of its last request among those of all connections; of a new one, as if it had just sent one. */
  lastRequest = ++requests;
  readonly #socket: Socket;
  readonly #parse: Parse;
  readonly #spelling: MethodSpelling | null;
  /** Parsed, but not started: what came in one piece with the end of a body. */
  readonly #waiting: [ServerResponse, Handle][] = [];
  /** Not parsed yet. */
  readonly #held: Buffer[] = [];
  #isHolding = false;
  #hasEnded = false;

  constructor(socket: Socket, parse: Parse, spelling: MethodSpelling | null) {
    this.#socket = socket;
    this.#parse = parse;
    this.#spelling = spelling;
  }

  take(chunk: Buffer): void {
    if (this.#hasEnded) return void discard(chunk);
    this.#held.push(chunk);
    this.#feed();
  }

  add(res: ServerResponse, handle: Handle): void {
    this.#spelling?.announced(res.req);
    if (this.current === null) this.#start(res, handle);
    else this.#waiting.push([res, handle]);
  }

  end(): void {
    this.#hasEnded = true;
    for (const chunk of this.#held.splice(0)) discard(chunk);
  }

  #start(res: ServerResponse, handle: Handle): void {
    this.current = res;
    this.lastRequest = ++requests;
    res.once("close", this.#next);
    handle(res.req, res);
  }

  readonly #next = (): void => {
    this.current = null;
    const [res, handle] = this.#waiting.shift() ?? [];
    if (res !== undefined && handle !== undefined && !this.#socket.destroyed) this.#start(res, handle);
    this.#feed();
  };

  get unsent(): readonly ServerResponse[] {
    const all = [this.current, ...this.#waiting.map(([res]) => res)];
    return all.flatMap((res) => (res === null || res.writableFinished ? [] : res));
  }

  /** The body of the current request is parsed as it comes; what is behind it waits. */
  get #isBusy(): boolean {
    return this.#waiting.length > 0 || this.current?.req.complete === true;
  }

  #feed(): void {
    while (!this.#isBusy && this.#held.length > 0) {
      if (this.#floods) return void this.#drop();
      const bytes = this.#cut();
      this.#spelling?.respell(bytes);
      this.#parse(bytes);
      this.#spelling?.parsed();
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
    const end = this.#spelling?.isOn ? this.#spelling.lengthOfPiece(chunk) : endOfHead(chunk, from);
    if (end === chunk.length) return chunk;
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

/** Returns the end of the first head that ends behind `from`; the chunk's length when there is none. */
function endOfHead(chunk: Buffer, from: number): number {
  const at = chunk.indexOf(headEnd, from);
  return at < 0 ? chunk.length : at + headEnd.length;
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

const membership = Symbol("membership");
type Membership = { isAuthenticated: boolean; readonly exempt: (is: boolean) => void };
type Watched = Socket & { [membership]?: Membership };

/** Exempts the connection from being closed when there are too many, or ends its exemption: its token is no longer valid. */
export function markAuthenticated(socket: Watched, is: boolean): void {
  const { [membership]: own } = socket;
  if (own === undefined || own.isAuthenticated === is) return;
  own.isAuthenticated = is;
  own.exempt(is);
}

/** A connection of the Unix socket counts as one: only the owner can open it. */
function isAuthenticated(socket: Watched): boolean {
  return socket[membership]?.isAuthenticated ?? true;
}

export class OpenConnections {
  readonly #limit: number;
  readonly #onFull: () => void;
  readonly #open = new Set<Socket>();
  /** Oldest first. */
  readonly #unauthenticated = new Set<Socket>();
  /** Authenticated connections, each with its TLS socket. */
  readonly #authenticated = new Map<Socket, Socket>();
  /** By the client's address and port, the only thing that a TLS socket and its underlying socket have in common. */
  readonly #unused = new Map<string, Socket>();

  /** `onFull` is called whenever a connection is closed because there are too many. */
  constructor(server: Server, limit: number, onFull: () => void) {
    this.#limit = limit;
    this.#onFull = onFull;
    server.on("connection", (socket: Socket) => this.#add(socket));
    server.on("secureConnection", (socket: Socket) => this.#secured(socket));
  }

  /** Node counts connections without a request as busy, but a stop need not wait for them. */
  closeUnused(): void {
    for (const socket of this.#unused.values()) socket.destroy();
  }

  #add(socket: Socket): void {
    const name = peerAddress(socket);
    this.#open.add(socket);
    this.#unauthenticated.add(socket);
    this.#unused.set(name, socket);
    socket.once("close", () => {
      this.#forget(socket);
      if (this.#unused.get(name) === socket) this.#unused.delete(name);
    });
    const { size } = this.#unauthenticated;
    if (this.#open.size > this.#limit || size > Math.ceil(this.#limit / 4)) this.#closeOne();
  }

  #secured(socket: Watched): void {
    const name = peerAddress(socket);
    const underlying = this.#unused.get(name);
    if (underlying === undefined) return;
    const exempt = (is: boolean) => {
      if (!this.#open.has(underlying)) return;
      if (is) this.#authenticated.set(underlying, socket);
      else this.#authenticated.delete(underlying);
      if (is) this.#unauthenticated.delete(underlying);
      else this.#unauthenticated.add(underlying);
    };
    socket[membership] = { isAuthenticated: false, exempt };
    socket.once("data", () => this.#unused.delete(name));
  }

  /**
   * The newest connection is among the unauthenticated. When all others are authenticated, one of them that is idle is closed,
   * as clients expect of connections that they keep; if none is, the newest.
   */
  #closeOne(): void {
    const [oldest, another] = this.#unauthenticated;
    const closed = another === undefined ? (this.#longestIdle() ?? oldest) : oldest;
    if (closed === undefined) return;
    this.#forget(closed);
    closed.destroy();
    this.#onFull();
  }

  #longestIdle(): Socket | undefined {
    return longestIdle(this.#authenticated, ([, secured]) => secured)?.[0];
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket);
    this.#unauthenticated.delete(socket);
    this.#authenticated.delete(socket);
  }
}

function peerAddress({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

// The end of a connection with an unread body, unless that is short and of an authenticated request.

/** Node discards an unread body up to this size, so that the connection can be reused. */
const discardableBytes = 64 * 1024;

/** Connections for which `Connection: close` was sent. */
const closing = new WeakSet<Socket>();

/** Returns true if an earlier request closes the connection: this one must not be carried out (RFC 9112, section 9.6). */
export function isAfterClose({ socket }: IncomingMessage): boolean {
  return closing.has(socket);
}

/**
 * Makes a response that is about to be sent the last of its connection, when its request has an unread body that is
 * unauthenticated, or too long to be discarded. The rest of such a body is not parsed: in chunks of one byte, that
 * takes far longer than reading it. Nor is the connection destroyed immediately, as Node would do: the kernel would reset it
 * because of the unread body, and the reset can overtake the response.
 */
export function closeIfUnread(res: ServerResponse): void {
  const { req } = res;
  if (!mustClose(req)) return;
  const { socket } = req;
  closing.add(socket);
  res.setHeader("Connection", "close");
  socket.destroySoon = () => endLingering(socket);
  endInput(socket);
}

function mustClose(req: IncomingMessage): boolean {
  const { "content-length": length, "transfer-encoding": encoding } = req.headers;
  if (req.complete || (length === undefined && encoding === undefined)) return false;
  return !isAuthenticatedRequest(req) || encoding !== undefined || Number(length) > discardableBytes;
}

/** How long a closing connection continues to discard input, in milliseconds. */
const lingerMs = 1_000;

/** Ends the connection once everything is sent, and discards its input for a moment longer. */
export function endLingering(socket: Duplex): void {
  socket.end();
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

/** Discards an unread body and wipes what arrives of it: it may hold a passphrase. */
export function discardBody(req: IncomingMessage): void {
  if (req.readableEnded) return;
  req.on("data", (chunk: Buffer) => chunk.fill(0));
  req.once("close", overwriteStackSoon).resume();
}

// Plaintext that TLS leaves in memory. Each place was found by scanning the process from outside, on Node 20, 22 and 24.

/** OpenSSL's SSL_OP_CLEANSE_PLAINTEXT, for which Node has no name: wipes the record buffer once it has been read. */
export const cleansePlaintext = 0x2;

/**
 * Returns true if a connection keeps up to 15 bytes from the end of each TLS record until its next record or its end. OpenSSL's AES-GCM
 * for processors with AVX-512 leaves the last, incomplete block of plaintext in the cipher's state (OpenSSL 3.1 and later, thus
 * Node 22 and 24). Node cannot clear it, but the end of the connection does.
 */
export function keepsPlaintext(socket: Socket | null): boolean {
  return socket instanceof TLSSocket && /GCM/.test(socket.getCipher().name);
}

/** 64 KiB of arguments. */
const filler: readonly number[] = Array(8192).fill(0);

let isDue = false;

/**
 * Overwrites the 16 KiB of stack into which Node decrypts. Arguments are pushed onto the stack, and from the event loop
 * these reach deeper than the plaintext did. They are passed to a V8 builtin, which reads only two of them and is never
 * optimized away; a function that reads all of them would cost more than the rest of a get.
 */
export function overwriteStackSoon(): void {
  if (isDue) return;
  isDue = true;
  setImmediate(() => {
    isDue = false;
    Reflect.apply(Object.is, undefined, filler);
  });
}
