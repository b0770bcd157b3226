/** Owns what the middlewares tell each other about one request, apart from what Express carries. */
import type { Request } from "express";
import { parseTarget, type Target } from "./request-target.js";

export interface Exchange {
  readonly target: Target;
  readonly started: number;
  /** The token was accepted. */
  authenticated: boolean;
}

const exchange = Symbol("exchange");

/** A member rather than a WeakMap's entry, which costs garbage collection dearly for each request. */
export function exchangeOf(req: Request & { [exchange]?: Exchange }): Exchange {
  req[exchange] ??= { target: parseTarget(req.url), started: performance.now(), authenticated: false };
  return req[exchange];
}
