/** Owns the bearer token's check (RFC 6750), with no more told by its timing than that it failed. */
import { hash, timingSafeEqual } from "node:crypto";
import type { RequestHandler } from "express";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import { exchangeOf } from "./exchange.js";
import type { Lockout } from "./lockout.js";
import { onlyHeader } from "./target.js";

const credentials = /^bearer +([^\s,]+)$/i;

/** `tokenDigest`: SHA-256 of the token. Digests are compared, so that neither length nor prefix shows in the time. */
export function requireBearer(tokenDigest: Uint8Array, lockout: Lockout, log: Log): RequestHandler {
  return (req, _res, next) => {
    const presented = credentials.exec(onlyHeader(req.rawHeaders, "authorization") ?? "")?.[1];
    if (!timingSafeEqual(digestToken(presented ?? ""), tokenDigest) || presented === undefined) {
      if (lockout.fail(req)) log.warn({ event: "lockout", hint: "ten wrong tokens", ...addressOf(req.socket) });
      throw new VaultError("UNAUTHORIZED", "the bearer token is missing or wrong");
    }
    exchangeOf(req).authenticated = true;
    next();
  };
}

export function digestToken(token: string): Uint8Array {
  return hash("sha256", token, "buffer");
}

function addressOf({ remoteAddress }: { readonly remoteAddress?: string | undefined }): { address?: string } {
  return remoteAddress === undefined ? {} : { address: remoteAddress };
}
