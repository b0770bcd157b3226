/**
 * Owns the guard against other web sites: a page that a browser shows must reach the vault neither by a name that it
 * points at this machine (DNS rebinding) nor across origins. Judged before authentication, and never as a failure of it.
 */
import type { RequestHandler } from "express";
import { VaultError } from "../errors.js";
import { contextOf } from "./request-context.js";
import { onlyHeader } from "./request-target.js";

export type GuardSettings = {
  /** The address listened on, as the system tells it. */
  readonly address: string;
  /** What was asked to be listened on: perhaps a name for it. */
  readonly host: string;
  /** Further names by which clients may call the server. */
  readonly serverNames: readonly string[];
};

export function guardOrigin({ address, host, serverNames }: GuardSettings): RequestHandler {
  const names = new Set([
    "localhost",
    "127.0.0.1",
    "[::1]",
    bracketed(address),
    bracketed(host),
    ...serverNames.map(bracketed),
  ]);
  const anyName = !isLoopback(address);
  return (req, _res, next) => {
    const authority = contextOf(req).target.authority ?? onlyHeader(req.rawHeaders, "host") ?? "";
    if (authority === "" || !(anyName || names.has(nameIn(authority)))) {
      throw new VaultError(
        "BAD_REQUEST",
        "the Host header does not name this server: use localhost or a configured name",
      );
    }
    const { origin } = req.headers;
    if (origin !== undefined && origin.toLowerCase() !== `https://${authority.toLowerCase()}`) {
      throw new VaultError("BAD_REQUEST", "the Origin header is not this server's own: no other site may call it");
    }
    next();
  };
}

/** Of an address as the system tells it. */
export function isLoopback(address: string): boolean {
  return address === "::1" || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(address);
}

/** The name of an authority in lower case, without its port. */
function nameIn(authority: string): string {
  return authority.toLowerCase().replace(/:\d*$/, "");
}

function bracketed(name: string): string {
  return name.includes(":") ? `[${name.toLowerCase()}]` : name.toLowerCase();
}
