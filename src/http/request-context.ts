/** Owns what the middlewares tell each other about one request, apart from what Express carries. */
import type { Request } from "express";
import { parseTarget, type Target } from "./request-target.js";

export interface RequestContext {
  readonly target: Target;
  readonly started: number;
  /** The token was accepted. */
  authenticated: boolean;
}

const context = Symbol("context");

/** A member rather than a WeakMap's entry, which costs garbage collection dearly for each request. */
export function contextOf(req: Request & { [context]?: RequestContext }): RequestContext {
  req[context] ??= { target: parseTarget(req.url), started: performance.now(), authenticated: false };
  return req[context];
}
