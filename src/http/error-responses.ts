/** Errors as responses: the one place that turns them into status, code and message. */
import { randomUUID } from "node:crypto";
import type { ErrorRequestHandler, Request, Response } from "express";
import { statusOf, VaultError } from "../errors.js";
import type { Log } from "../log.js";
import { reportFinished } from "./finished-requests.js";
import { discardBody } from "./plaintext-hygiene.js";
import { ClientGone } from "./request-body.js";
import { contextOf } from "./request-context.js";
import { sendJson } from "./responses.js";

/** Returns the route pattern of a path. DANGER: the path itself must never be logged. */
type RouteOf = (path: string) => string;

export function sendErrors(log: Log, routeOf: RouteOf): ErrorRequestHandler {
  // Express recognizes an error handler by its four parameters.
  return (error: unknown, req, res, _next) => {
    if (error instanceof ClientGone) return abandon(req, 0);
    const refusal = error instanceof VaultError ? error : unexpected(error);
    contextOf(req).code = refusal.code;
    if (res.headersSent) return abandon(req, res.statusCode);
    sendError(req, res, refusal, log, routeOf);
  };
}

function abandon(req: Request, status: number): void {
  req.socket.destroy();
  reportFinished(req, status);
}

function unexpected(cause: unknown): VaultError {
  return new VaultError("INTERNAL", "something failed inside the server: look for this request id in its log", {
    cause,
  });
}

function sendError(req: Request, res: Response, error: VaultError, log: Log, routeOf: RouteOf): void {
  const { code, message, retryAfter, allow, credential, reason, index } = error;
  const status = statusOf[code];
  if (code === "UNAUTHORIZED") res.setHeader("WWW-Authenticate", "Bearer");
  if (retryAfter !== undefined) res.setHeader("Retry-After", retryAfter);
  if (allow !== undefined) res.setHeader("Allow", allow.join(", "));
  discardBody(req);
  if (status < 500) {
    sendJson(res, status, { error: message, code, credential, reason, index }); // without what is undefined
    return;
  }
  const requestId = randomUUID();
  contextOf(req).requestId = requestId;
  const route = routeOf(contextOf(req).target.path);
  const level = code === "UNAVAILABLE" && error.cause === undefined ? "warn" : "error";
  log[level]({ event: "request-failed", requestId, method: req.method, route, code, error });
  sendJson(res, status, { error: message, code, requestId, index });
}
