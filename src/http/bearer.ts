/** Bearer token check (RFC 6750), constant time. */
import { timingSafeEqual } from "node:crypto";
import type { RequestHandler } from "express";
import type { Lockout } from "../access/lockout.js";
import { digestToken } from "../access/root-token.js";
import { VaultError } from "../errors.js";
import { markAuthenticated } from "./open-connections.js";
import { contextOf } from "./request-context.js";
import { onlyHeader } from "./request-target.js";

const credentials = /^bearer +([^\s,]+)$/i;

/** `tokenDigest`: SHA-256 of the token. Comparing digests leaks neither length nor prefix. */
export function requireBearer(tokenDigest: Uint8Array, lockout: Lockout): RequestHandler {
  return (req, _res, next) => {
    lockout.check(req); // the gate refuses asynchronously: pipelined requests have passed it by then
    const presented = credentials.exec(onlyHeader(req.rawHeaders, "authorization") ?? "")?.[1];
    if (!timingSafeEqual(digestToken(presented ?? ""), tokenDigest) || presented === undefined) {
      lockout.fail(req);
      throw new VaultError("UNAUTHORIZED", "the bearer token is missing or wrong", { credential: "token" });
    }
    contextOf(req).authenticated = true;
    markAuthenticated(req.socket);
    next();
  };
}
