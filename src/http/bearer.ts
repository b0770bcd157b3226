/** Bearer token check (RFC 6750), constant time. */
import type { RequestHandler, Response } from "express";
import type { ClientTokens } from "../access/client-tokens.js";
import type { ClientCaller, Credentials } from "../access/credentials.js";
import type { Lockout } from "../access/lockout.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import { markAuthenticated } from "./open-connections.js";
import { contextOf } from "./request-context.js";
import { onlyHeader } from "./request-target.js";

const credential = /^bearer +([^\s,]+)$/i;

/** Milliseconds before its end from which a token's responses say when it ends. */
const warningMs = 7 * 24 * 3600 * 1000;

/** A token that has ended is no guess: it does not count as a failure. */
export function requireBearer(
  credentials: Credentials,
  tokens: ClientTokens,
  lockout: Lockout,
  clock: Clock,
): RequestHandler {
  return (req, res, next) => {
    lockout.check(req); // the gate refuses asynchronously: pipelined requests have passed it by then
    const presented = credential.exec(onlyHeader(req.rawHeaders, "authorization") ?? "")?.[1];
    const caller = presented === undefined ? null : credentials.authenticate(presented);
    if (caller === null) {
      lockout.fail(req);
      throw new VaultError("UNAUTHORIZED", "the bearer token is missing or wrong", { credential: "token" });
    }
    contextOf(req).caller = caller;
    markAuthenticated(req.socket);
    if (caller !== "root") {
      tokens.touch(caller);
      warnOfEnd(res, caller, clock.now());
    }
    next();
  };
}

function warnOfEnd(res: Response, { until }: ClientCaller, now: number): void {
  if (until === null || until - now > warningMs) return;
  res.setHeader("Strongroom-Token-Expires", new Date(until).toISOString());
}
