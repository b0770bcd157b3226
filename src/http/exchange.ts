/** Owns what the middlewares tell each other about one request, apart from what Express carries. */
import type { Request } from "express";
import { parseTarget, type Target } from "./target.js";

export interface Exchange {
  readonly target: Target;
  readonly started: number;
  /** The token was accepted. */
  authenticated: boolean;
}

const exchanges = new WeakMap<Request, Exchange>();

export function exchangeOf(req: Request): Exchange {
  let exchange = exchanges.get(req);
  if (exchange === undefined) {
    exchange = { target: parseTarget(req.url), started: performance.now(), authenticated: false };
    exchanges.set(req, exchange);
  }
  return exchange;
}
