/** Per-request state that the middleware shares. */
import type { Request } from "express";
import { parseTarget, type Target } from "./request-target.js";

export interface RequestContext {
  readonly target: Target;
  readonly started: number;
  /** Whether the token was accepted. */
  authenticated: boolean;
}

const context = Symbol("context");

/** A property, because a WeakMap entry per request is expensive to collect. */
export function contextOf(req: Request & { [context]?: RequestContext }): RequestContext {
  req[context] ??= { target: parseTarget(req.url), started: performance.now(), authenticated: false };
  return req[context];
}
