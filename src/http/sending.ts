/**
 * Head and body of a response in one buffer of our own, wiped once the connection has taken it.
 *
 * Node passes head and body to the connection as two pieces, which TLS joins in memory that it frees without wiping: after
 * 200 gets some values were readable there. It also computes the same head again for each response, which takes as long as
 * all of our own code for a get.
 *
 * DANGER: Node has no documented way to send a head that the program has made. This is the only place that uses two of its
 * undocumented fields: `_header`, the text of the head, and `_headerSent`. Where they are not what they were on Node 20 to 24,
 * Node sends the response as usual.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { copySecret } from "../../workers/registers.js";

type Head = { _header?: unknown; _headerSent?: unknown };

/** Bytes that are copied into one buffer; a larger piece is sent as it is. */
const mostJoined = 64 * 1024;

/** The usual head as Node wrote it in this second, around the body's length and the etag. */
type UsualHead = { readonly second: number; readonly before: string; readonly between: string; readonly after: string };

/** By content type, and whether there is an etag. */
const usualHeads = { tagged: new Map<string, UsualHead>(), untagged: new Map<string, UsualHead>() };

export type ResponseStart = {
  readonly status: number;
  /** Returns all headers in Node's flat form: those below, the etag directly behind the length, and others. */
  readonly headers: () => string[];
  readonly type: string;
  readonly length: number;
  readonly etag: string | undefined;
};

/**
 * Sends the response and wipes the pieces, also when the client disconnects before. Returns false, and has sent nothing, when
 * it is not the turn of this response on its connection, or Node's fields are not as expected; its head may then be set. Not for
 * the response to a HEAD request, which has no body.
 */
export function sendOwned(res: ServerResponse, start: ResponseStart, pieces: readonly Uint8Array[]): boolean {
  const { socket } = res;
  if (socket === null || !socket.writable) return false;
  const head = responseHead(res, start);
  if (head === null) return false;
  new Sending(res, socket, pieces).write(head);
  return true;
}

/** Returns the head, which the response takes for sent; null when Node keeps it elsewhere. */
function responseHead(
  res: ServerResponse & Head,
  { status, headers, type, length, etag }: ResponseStart,
): string | null {
  const second = Math.trunc(Date.now() / 1000);
  const isUsual = status === 200 && res.shouldKeepAlive && res.getHeaderNames().length === 0;
  const heads = etag === undefined ? usualHeads.untagged : usualHeads.tagged;
  const usual = heads.get(type);
  if (isUsual && usual?.second === second) {
    const text = `${usual.before}${length}${usual.between}${etag ?? ""}${usual.after}`;
    res._header = text;
    res._headerSent = true;
    return text;
  }
  res.writeHead(status, headers());
  const { _header: text, _headerSent: isSent } = res;
  if (typeof text !== "string" || isSent !== false) return null;
  res._headerSent = true;
  const found = isUsual ? usualHead(text, second, etag !== undefined) : null;
  if (found !== null) heads.set(type, found);
  return text;
}

const aroundLengthAndEtag = /^(.*\r\nContent-Length: )\d+(\r\nETag: ")[^"]*("\r\n.*)$/s;
const aroundLength = /^(.*\r\nContent-Length: )\d+(\r\n)(.*)$/s;

function usualHead(text: string, second: number, isTagged: boolean): UsualHead | null {
  const [, before, between, after] = (isTagged ? aroundLengthAndEtag : aroundLength).exec(text) ?? [];
  return before === undefined || between === undefined || after === undefined
    ? null
    : { second, before, between, after };
}

/** State of a connection: responses being sent, whose rest is wiped when it closes, and memory for small responses. */
type Sendings = { readonly open: Set<Sending>; memory: Buffer | null };

const socketSendings = new WeakMap<Socket, Sendings>();

/** Size of the buffer that a connection reuses for its responses, in bytes: with their heads, most are smaller. */
const smallBytes = 1024;

class Sending {
  readonly #res: ServerResponse;
  readonly #socket: Socket;
  readonly #pieces: readonly Uint8Array[];
  readonly #sendings: Sendings;
  #next = 0;
  #current: Uint8Array | null = null;

  constructor(res: ServerResponse, socket: Socket, pieces: readonly Uint8Array[]) {
    this.#res = res;
    this.#socket = socket;
    this.#pieces = pieces;
    this.#sendings = socketSendings.get(socket) ?? watch(socket);
    this.#sendings.open.add(this);
  }

  /** Writes as many pieces as fit into one buffer, and the others once the connection has taken it. */
  write(head: string): void {
    const pieces = this.#take(head.length);
    const [only] = pieces;
    this.#current = head === "" && only !== undefined && pieces.length === 1 ? only : this.#joined(head, pieces);
    this.#socket.write(this.#current, this.#taken);
  }

  wipe(): void {
    this.#current?.fill(0);
    for (const piece of this.#pieces.slice(this.#next)) piece.fill(0);
  }

  readonly #taken = (error?: Error | null): void => {
    this.#current?.fill(0);
    if (error) return;
    if (this.#next < this.#pieces.length) {
      this.write("");
      return;
    }
    this.#sendings.open.delete(this);
    this.#res.end();
  };

  /** Copies head and pieces into one buffer, and wipes the pieces. */
  #joined(head: string, pieces: readonly Uint8Array[]): Uint8Array {
    let length = head.length;
    for (const piece of pieces) length += piece.length;
    const bytes = this.#takeMemory(length);
    let at = bytes.write(head, "latin1");
    for (const piece of pieces) {
      copySecret(bytes, piece, at);
      piece.fill(0);
      at += piece.length;
    }
    return bytes;
  }

  /** Returns memory for a response: the buffer of the connection for one that is alone there, as nearly all are. */
  #takeMemory(length: number): Buffer {
    const { open, memory } = this.#sendings;
    if (length > smallBytes || open.size > 1) return ownMemory(length);
    this.#sendings.memory = memory ?? ownMemory(smallBytes);
    return this.#sendings.memory.subarray(0, length);
  }

  #take(headLength: number): readonly Uint8Array[] {
    const from = this.#next;
    let length = headLength;
    for (let piece = this.#pieces[from]; piece !== undefined; piece = this.#pieces[this.#next]) {
      length += piece.length;
      if (length > mostJoined && (headLength > 0 || this.#next > from)) break;
      this.#next++;
    }
    return this.#pieces.slice(from, this.#next);
  }
}

function watch(socket: Socket): Sendings {
  const sendings: Sendings = { open: new Set(), memory: null };
  socketSendings.set(socket, sendings);
  socket.once("close", () => {
    for (const one of sendings.open) one.wipe();
  });
  return sendings;
}

function ownMemory(length: number): Buffer {
  return Buffer.from(new ArrayBuffer(length));
}
