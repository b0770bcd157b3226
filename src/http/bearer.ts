/** Bearer token check (RFC 6750), constant time. */
import type { NextFunction, Request, RequestHandler, Response } from "express";
import { type ClientTokens, textPrefix } from "../access/client-tokens.js";
import type { Caller, ClientCaller, Credentials } from "../access/credentials.js";
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
  const authenticate = (presented: string | undefined) =>
    presented === undefined ? null : credentials.authenticate(presented);
  const admit = (req: Request, res: Response, next: NextFunction, caller: Caller | null): void => {
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
  return (req, res, next) => {
    lockout.check(req); // the gate refuses asynchronously: pipelined requests have passed it by then
    const presented = credential.exec(onlyHeader(req.rawHeaders, "authorization") ?? "")?.[1];
    const caller = authenticate(presented);
    // Another server may have revoked or created it. No other text leads to a question: a guess of the root token counts.
    const refreshed = presented?.startsWith(textPrefix) ? tokens.refresh() : undefined;
    if (refreshed === undefined) return admit(req, res, next, caller);
    const failure = refreshed.then(
      () => null,
      (error: unknown) => error,
    );
    return failure.then((problem) => {
      lockout.check(req); // others may have failed meanwhile
      const current = authenticate(presented);
      if (problem !== null && current !== "root" && (current === null || !locks(req))) throw problem;
      admit(req, res, next, current);
    });
  };
}

/** A lock must work while the database does not answer: what is known of the token here counts then. */
function locks(req: Request): boolean {
  return req.method === "POST" && contextOf(req).target.path === "/v1/lock";
}

function warnOfEnd(res: Response, { until }: ClientCaller, now: number): void {
  if (until === null || until - now > warningMs) return;
  res.setHeader("Strongroom-Token-Expires", new Date(until).toISOString());
}
