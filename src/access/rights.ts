/** Paths that a caller may reach and metadata that it may see, beside the scopes of its token. */
import { VaultError } from "../errors.js";
import { includesPath, type NameRange } from "../paths/path-scope.js";
import type { Caller } from "./credentials.js";

/** Call it before storage is asked, so that existence never shows. @throws VaultError FORBIDDEN */
export function authorizePath(caller: Caller, path: string): void {
  if (caller === "root" || includesPath(caller.ranges, path)) return;
  throw new VaultError("FORBIDDEN", "the path is outside of this token's paths: use another token");
}

/** Whether no path is outside of the caller's paths. */
export function reachesAll(caller: Caller): boolean {
  return caller === "root" || caller.token.paths.length === 0;
}

/** Returns the paths that a list may show; undefined: all. */
export function visibleRanges(caller: Caller): { readonly within?: readonly NameRange[] } {
  return caller === "root" ? {} : { within: caller.ranges };
}

/** A token that can neither list nor get learns no metadata that it has not sent. */
export function seesMetadata(caller: Caller): boolean {
  return caller === "root" || caller.token.can.some((scope) => scope === "list" || scope === "get");
}
