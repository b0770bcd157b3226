/** Per-request state that the middleware shares. */
import type { Request } from "express";
import type { Caller } from "../access/credentials.js";
import type { ErrorCode } from "../errors.js";
import type { BatchItem } from "../observer.js";
import { parseTarget, type Target } from "./request-target.js";

export interface RequestContext {
  readonly target: Target;
  readonly started: number;
  /** Whose token was accepted. */
  caller: Caller | null;
  /** Reports the request to the observers; null once that is done. See `reportFinished`. */
  report: ((req: Request, status: number, tag: string | null) => void) | null;
  // What is known of the request for the observers.
  secretPath: string | null;
  subject: string | null;
  version: number | null;
  prefix: string | null;
  count: number | null;
  operations: BatchItem[] | null;
  code: ErrorCode | null;
  requestId: string | null;
}

const context = Symbol("context");

/** A property, because a WeakMap entry per request is expensive to collect. */
export function contextOf(req: Request & { [context]?: RequestContext }): RequestContext {
  req[context] ??= {
    target: parseTarget(req.url),
    started: performance.now(),
    caller: null,
    report: null,
    secretPath: null,
    subject: null,
    version: null,
    prefix: null,
    count: null,
    operations: null,
    code: null,
    requestId: null,
  };
  return req[context];
}

/** The caller of an authenticated request. */
export function callerOf(req: Request): Caller {
  const { caller } = contextOf(req);
  if (caller === null) throw new Error("the request has not been authenticated");
  return caller;
}
