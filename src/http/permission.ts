/** Path of a request, and those that its token permits. */
import type { Request } from "express";
import { VaultError } from "../errors.js";
import { includesPath, type NameRange } from "../paths/path-scope.js";
import { parseSecretPath } from "../paths/secret-path.js";
import type { Service } from "./endpoint.js";
import { callerOf, contextOf } from "./request-context.js";

/** Returns the canonical path, and notes it for the observers. @throws VaultError BAD_REQUEST */
export function secretPathOf(req: Request, rest: string): string {
  const path = parseSecretPath(rest);
  contextOf(req).secretPath = path;
  return path;
}

/** Call it before storage is asked, so that existence never shows. @throws VaultError FORBIDDEN */
export function mustBeWithin(req: Request, path: string): void {
  if (isOutside(req, path)) throw outside();
}

/** After a body was read: the token may have been revoked while the client took its time. @throws VaultError UNAUTHORIZED */
export function mustStillBeValid({ credentials }: Service, req: Request, body: Uint8Array): void {
  try {
    credentials.mustStillBeValid(callerOf(req));
  } catch (error) {
    body.fill(0);
    throw error;
  }
}

/**
 * As `mustBeWithin`, after a body was read. `judge` rejects with BAD_REQUEST when the body is invalid, which comes first.
 * It wipes the body. @throws VaultError FORBIDDEN, UNAUTHORIZED
 */
export async function mustBeWithinStill(
  service: Service,
  req: Request,
  path: string,
  body: Uint8Array,
  judge: () => Promise<void>,
): Promise<void> {
  mustStillBeValid(service, req, body);
  if (!isOutside(req, path)) return;
  await judge();
  throw outside();
}

/** The paths that a list may show; undefined: all. */
export function visibleRanges(req: Request): { readonly within?: readonly NameRange[] } {
  const caller = callerOf(req);
  return caller === "root" ? {} : { within: caller.ranges };
}

function isOutside(req: Request, path: string): boolean {
  const caller = callerOf(req);
  return caller !== "root" && !includesPath(caller.ranges, path);
}

function outside(): VaultError {
  return new VaultError("FORBIDDEN", "the path is outside of this token's paths: use another token");
}
