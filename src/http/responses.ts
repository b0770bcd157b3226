/** Owns how answers leave: always JSON, of known length, never stored by anyone; and the one place that answers errors. */
import { randomUUID } from "node:crypto";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { ErrorRequestHandler, Request, RequestHandler, Response } from "express";
import helmet from "helmet";
import { statusOf, VaultError } from "../errors.js";
import type { Log } from "../log.js";
import { discardBody } from "./plaintext-hygiene.js";
import { ClientGone } from "./request-body.js";
import { contextOf } from "./request-context.js";

/** Tells the pattern of a path's route, for the log: the path itself must not get there. */
type RouteOf = (path: string) => string;

/** An unread body of at most this is left to Node to discard, so that the connection can go on. */
const discardableBytes = 64 * 1024;

/** Connections whose end was announced. */
const closing = new WeakSet<Socket>();

/** Whether a request came too late: what is not going to be answered must not be done (RFC 9112 section 9.6). */
export function cameTooLate({ socket }: IncomingMessage): boolean {
  return closing.has(socket);
}

/** How long a connection that is to be closed goes on discarding what comes. */
const lingerMs = 1_000;

/** What every answer says, in Node's flat form. Helmet's part never changes: it is asked for it once. */
const constantHeaders: readonly string[] = [
  ...helmetHeaders(),
  "Cache-Control",
  "no-store",
  "Content-Type",
  "application/json; charset=utf-8",
];

/** Without HSTS, which would bind every port of localhost to HTTPS for a year. */
function helmetHeaders(): string[] {
  const headers: string[] = [];
  class Recorder extends ServerResponse {
    override setHeader(name: string, value: number | string | readonly string[]): this {
      headers.push(name, String(value));
      return this;
    }
  }
  const req = new IncomingMessage(new Socket());
  helmet({ strictTransportSecurity: false })(req, new Recorder(req), () => {});
  return headers;
}

export function sendJson(res: Response, status: number, body: object): void {
  sendBytes(res, status, [Buffer.from(JSON.stringify(body))]);
}

/** Sends the pieces as one body, and wipes them once they have left or the client has gone. */
export function sendBytes(res: ServerResponse, status: number, pieces: readonly Uint8Array[]): void {
  const wipe = () => {
    for (const piece of pieces) piece.fill(0);
  };
  if (res.closed || res.req.socket.destroyed) {
    wipe();
    return;
  }
  onceGone(res, wipe);
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  res.writeHead(status, [...constantHeaders, "Content-Length", String(length)]);
  writeFrom(0, res, pieces);
}

/** What is to be done once the answers of a connection are gone. */
const waiting = new WeakMap<Socket, Set<() => void>>();

/** Node closes only the answer whose turn it is: those that stand behind it go with their connection. */
function onceGone(res: ServerResponse, work: () => void): void {
  const { socket } = res.req;
  const works = waiting.get(socket) ?? workOf(socket);
  works.add(work);
  res.once("close", () => {
    works.delete(work);
    work();
  });
}

function workOf(socket: Socket): Set<() => void> {
  const works = new Set<() => void>();
  waiting.set(socket, works);
  socket.once("close", () => {
    for (const work of works) work();
  });
  return works;
}

/** As much at a time as the socket takes: a get beside lists of 100,000 waited 9 ms at p99 for one sent whole, now 6. */
function writeFrom(first: number, res: ServerResponse, pieces: readonly Uint8Array[]): void {
  for (let at = first; at < pieces.length - 1; at++) {
    if (res.write(pieces[at])) continue;
    res.once("drain", () => writeFrom(at + 1, res, pieces));
    return;
  }
  res.end(pieces.at(-1));
}

export function answerErrors(log: Log, routeOf: RouteOf): ErrorRequestHandler {
  // Express knows an error handler by its four parameters.
  return (error: unknown, req, res, _next) => {
    if (error instanceof ClientGone || res.headersSent) {
      req.socket.destroy();
      return;
    }
    const refusal = error instanceof VaultError ? error : unexpected(error);
    sendError(req, res, refusal, log, routeOf);
  };
}

function unexpected(cause: unknown): VaultError {
  return new VaultError("INTERNAL", "something failed inside the server: its log has more under this request id", {
    cause,
  });
}

function sendError(req: Request, res: Response, error: VaultError, log: Log, routeOf: RouteOf): void {
  const { code, message, retryAfter, allow, credential } = error;
  const status = statusOf[code];
  if (code === "UNAUTHORIZED") res.setHeader("WWW-Authenticate", "Bearer");
  if (retryAfter !== undefined) res.setHeader("Retry-After", retryAfter);
  if (allow !== undefined) res.setHeader("Allow", allow.join(", "));
  if (mustClose(req)) closeGently(req, res);
  discardBody(req);
  if (status < 500) {
    sendJson(res, status, { error: message, code, ...(credential && { credential }) });
    return;
  }
  const requestId = randomUUID();
  const route = routeOf(contextOf(req).target.path);
  const level = code === "UNAVAILABLE" && error.cause === undefined ? "warn" : "error";
  log[level]({ event: "request-failed", requestId, method: req.method, route, code, error });
  sendJson(res, status, { error: message, code, requestId });
}

/**
 * Node destroys the socket right after the answer; the kernel then resets the connection because of the unread body, and
 * the reset can overtake the answer. So the body is discarded for a moment longer.
 */
function closeGently({ socket }: Request, res: Response): void {
  closing.add(socket);
  res.setHeader("Connection", "close");
  socket.destroySoon = () => {
    socket.end();
    setTimeout(() => socket.destroy(), lingerMs).unref();
  };
}

/** Whether a body is on its way that nobody will read, and that is unwelcome or too long to be discarded. */
function mustClose(req: Request): boolean {
  const { "content-length": length, "transfer-encoding": encoding } = req.headers;
  if (req.complete || (length === undefined && encoding === undefined)) return false;
  return !contextOf(req).authenticated || encoding !== undefined || Number(length) > discardableBytes;
}

/** One debug line a request, once it is answered. */
export function logRequests(log: Log, routeOf: RouteOf): RequestHandler {
  return (req, res, next) => {
    res.once("finish", () => {
      const { target, started } = contextOf(req);
      const route = routeOf(target.path);
      const durationMs = Math.round(performance.now() - started);
      log.debug({ event: "request", method: req.method, route, status: res.statusCode, durationMs });
    });
    next();
  };
}
