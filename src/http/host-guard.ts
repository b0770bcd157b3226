/**
 * Guard against other web sites: neither a host name that points at this machine (DNS rebinding) nor a cross-origin
 * request reaches the vault. Runs before authentication, and a refusal never counts as a failed authentication.
 */
import type { Request, RequestHandler } from "express";
import { isLoopback } from "../access/address.js";
import { VaultError } from "../errors.js";
import { contextOf } from "./request-context.js";
import { onlyHeader } from "./request-target.js";

export type GuardSettings = {
  /** The listening address, as the system reports it. */
  readonly address: string;
  /** The `host` setting: an address or a name. */
  readonly host: string;
  /** Further names of the server. */
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
        "the Host header does not name this server: use localhost, or add the name with --server-names",
      );
    }
    const { origin } = req.headers;
    if (origin !== undefined && origin.toLowerCase() !== `https://${authority.toLowerCase()}`) {
      throw new VaultError(
        "BAD_REQUEST",
        "the Origin header names another site: only this server's own origin is allowed",
      );
    }
    refuseCrossSite(req);
    next();
  };
}

/** A browser sends the header with every request of a page, also with those that carry no `Origin`. */
function refuseCrossSite({ headers }: Request): void {
  const site = headers["sec-fetch-site"] ?? "none";
  if (site === "none" || site === "same-origin") return;
  throw new VaultError("BAD_REQUEST", "the Sec-Fetch-Site header shows a request of another site: call from this one");
}

/** Returns the host of an authority in lower case, without its port. */
function nameIn(authority: string): string {
  return authority.toLowerCase().replace(/:\d*$/, "");
}

function bracketed(name: string): string {
  return name.includes(":") ? `[${name.toLowerCase()}]` : name.toLowerCase();
}
