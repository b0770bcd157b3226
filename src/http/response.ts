/**
 * Responses: JSON of known length that is never cached, and whose bytes are wiped once they are sent; and the one place that
 * turns an error into status, code and message.
 */
import { randomUUID } from "node:crypto";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Request, Response } from "express";
import helmet from "helmet";
import { errorStatuses, StartError, VaultError } from "../errors.js";
import type { Log } from "../log.js";
import { ClientGone } from "./body.js";
import { closeIfUnread, discardBody } from "./connections.js";
import { json as jsonOutcome, type Lines, type Page, type Whole } from "./endpoint.js";
import { isHeadRequest, requestContext } from "./request.js";
import { sendOwned } from "./sending.js";

/** Headers of every response but its type, in Node's flat form. Helmet's are constant, so they are computed once. */
const constantHeaders: readonly string[] = [...helmetHeaders(), "Cache-Control", "no-store"];

const json = "application/json; charset=utf-8";

/** Helmet's headers that matter for JSON: the others are for pages. */
function helmetHeaders(): string[] {
  const headers: string[] = [];
  class Recorder extends ServerResponse {
    override setHeader(name: string, value: number | string | readonly string[]): this {
      headers.push(name, String(value));
      return this;
    }
  }
  const req = new IncomingMessage(new Socket());
  helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    strictTransportSecurity: false, // it would bind every port of localhost to HTTPS for a year
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xFrameOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  })(req, new Recorder(req), () => {});
  return headers;
}

/** Sends the pieces as one body and wipes them once they are sent or the client has disconnected. */
export function sendWhole(res: ServerResponse, { status, pieces, etag, type = json, isLast = false }: Whole): void {
  if (isLast) res.setHeader("Connection", "close");
  if (pieces.length === 0 && (status === 204 || status === 304)) sendEmpty(res, status, etag);
  else if (res.closed || res.req.socket.destroyed) for (const piece of pieces) piece.fill(0);
  else sendAndWipe(res, status, pieces, type, etag);
}

function sendEmpty(res: ServerResponse, status: number, etag: string | undefined): void {
  const tagged = etag === undefined ? [] : ["Content-Type", json, "ETag", `"${etag}"`];
  begin(res, status, [...constantHeaders, ...tagged]).end();
}

function sendAndWipe(
  res: ServerResponse,
  status: number,
  pieces: readonly Uint8Array[],
  type: string,
  etag?: string,
): void {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  closeIfUnread(res);
  const headers = () => headersFor(length, type, etag);
  if (!isHeadRequest(res.req) && sendOwned(res, { status, headers, type, length, etag }, pieces)) return;
  onceGone(res, () => {
    for (const piece of pieces) piece.fill(0);
  });
  if (!res.headersSent) res.writeHead(status, headers());
  writeFrom(0, res, pieces);
}

/**
 * Sends the first pieces, and those of each further part once the client has taken the part before, as one body of unknown
 * length. All are wiped, as by `sendWhole`. When `next` throws, the caller must destroy the connection: that tells the client
 * that the body is incomplete.
 */
export async function sendParts(
  res: ServerResponse,
  first: readonly Uint8Array[],
  next: () => Promise<readonly Uint8Array[] | null>,
): Promise<void> {
  let current = first;
  let gone = res.closed || res.req.socket.destroyed;
  let resume = () => {};
  onceGone(res, () => {
    gone = true;
    for (const piece of current) piece.fill(0);
    resume();
  });
  /** Resolves once the connection has taken the current pieces, or is gone. */
  const taken = () =>
    new Promise<void>((resolve) => {
      if (gone) return resolve();
      resume = resolve;
      for (const piece of current) res.write(piece, () => piece.fill(0));
      res.write("", () => resolve());
    });
  begin(res, 200, [...constantHeaders, "Content-Type", json]);
  await taken();
  for (let part = await next(); part !== null; part = await next()) {
    current = part;
    if (gone) break;
    await taken();
  }
  for (const piece of current) piece.fill(0);
  res.end();
}

/** Bytes that a client may leave unread before lines are skipped. */
const maxUnread = 64 * 1024;

/** Sends lines until the client, the handler or `mayFollow`, which is asked before each, ends them. */
export function sendLines(res: ServerResponse, { type, lines }: Lines, mayFollow: () => boolean): void {
  begin(res, 200, [...constantHeaders, "Content-Type", type]);
  if (isHeadRequest(res.req)) return void res.end();
  res.flushHeaders();
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    stop(); // a client that does not read keeps the response open after its end
    res.end();
  };
  const send = (line: Uint8Array | string) => {
    if (!mayFollow()) end();
    else if (res.writableLength < maxUnread) res.write(line);
  };
  const stop = lines(send, end);
  res.once("close", end);
}

/** Sends a file of the review page, with the page's own policy in place of the one for JSON. */
export function sendPage(res: ServerResponse, { type, policy, body }: Page): void {
  const headers = headersFor(body.length, type);
  const at = headers.indexOf("Content-Security-Policy");
  headers[at + 1] = policy;
  begin(res, 200, headers).end(body);
}

function begin(res: ServerResponse, status: number, headers: string[]): ServerResponse {
  closeIfUnread(res);
  return res.writeHead(status, headers);
}

/** Returns the headers of a response, in Node's flat form; `length`: bytes of the body. */
export function headersFor(length: number, type = json, etag?: string): string[] {
  const headers = [...constantHeaders, "Content-Type", type, "Content-Length", String(length)];
  return etag === undefined ? headers : [...headers, "ETag", `"${etag}"`];
}

/** Work to do once a connection's responses are sent or lost. */
const waiting = new WeakMap<Socket, Set<() => void>>();

/** Node emits `close` only for the response whose turn it is; those queued behind it end with their connection. */
function onceGone(res: ServerResponse, work: () => void): void {
  const { socket } = res.req;
  const works = waiting.get(socket) ?? createWorks(socket);
  works.add(work);
  res.once("close", () => {
    works.delete(work);
    work();
  });
}

function createWorks(socket: Socket): Set<() => void> {
  const works = new Set<() => void>();
  waiting.set(socket, works);
  socket.once("close", () => {
    for (const work of works) work();
  });
  return works;
}

/** Writes as much at a time as the socket takes, so that a get beside long lists waits less. */
function writeFrom(first: number, res: ServerResponse, pieces: readonly Uint8Array[]): void {
  for (let at = first; at < pieces.length - 1; at++) {
    if (res.write(pieces[at])) continue;
    res.once("drain", () => writeFrom(at + 1, res, pieces));
    return;
  }
  res.end(pieces.at(-1));
}

/** How an API writes an error. `requestId`: of a failure that the log has too. */
export type ErrorForm = (
  error: VaultError,
  requestId: string | undefined,
) => { readonly status: number; readonly body: object; readonly type?: string };

/** Members that are undefined are left out. */
export const nativeErrors: ErrorForm = ({ code, message: error, credential, reason, index }, requestId) => {
  const status = errorStatuses[code];
  return {
    status,
    body: status < 500 ? { error, code, credential, reason, index } : { error, code, requestId, index },
  };
};

/**
 * Sends what went wrong; returns the status, 0 where none can be sent. A client that is gone, or has the beginning of a
 * response, loses its connection instead.
 */
export function sendError(req: Request, res: Response, error: unknown, log: Log, form: ErrorForm): number {
  if (error instanceof ClientGone) return abandon(req, 0);
  const refusal = error instanceof VaultError ? error : unexpected(error);
  const context = requestContext(req);
  context.code = refusal.code;
  if (res.headersSent) return abandon(req, res.statusCode);
  const { code, retryAfter, allow } = refusal;
  if (code === "UNAUTHORIZED") res.setHeader("WWW-Authenticate", "Bearer");
  if (retryAfter !== undefined) res.setHeader("Retry-After", retryAfter);
  if (allow !== undefined) res.setHeader("Allow", allow.join(", "));
  discardBody(req);
  const requestId = errorStatuses[code] < 500 ? undefined : logFailure(req, refusal, log);
  const { status, body, type } = form(refusal, requestId);
  sendWhole(res, { ...jsonOutcome(body, status), ...(type !== undefined && { type }) });
  return status;
}

/** Returns the id by which the log names the request. */
function logFailure(req: Request, refusal: VaultError, log: Log): string {
  const { code, cause } = refusal;
  const context = requestContext(req);
  const requestId = randomUUID();
  context.requestId = requestId;
  const level = code === "UNAVAILABLE" && cause === undefined ? "warn" : "error";
  // DANGER: the route's pattern, never the path.
  const route = context.found?.route.pattern ?? "unknown";
  log[level]({ event: "request-failed", requestId, method: req.method, route, code, error: refusal });
  return requestId;
}

function abandon(req: Request, status: number): number {
  req.socket.destroy();
  return status;
}

function unexpected(cause: unknown): VaultError {
  if (cause instanceof StartError) return new VaultError("UNAVAILABLE", cause.message, { cause }); // a file of the program
  return new VaultError("INTERNAL", "something failed inside the server: look for this request id in its log", {
    cause,
  });
}
