/** Bodies of the requests that create and rotate client tokens. They carry no secret. */
import { defaultScopes, scopes } from "../contract/names.js";
import { VaultError } from "../errors.js";
import { isScope } from "../paths/path-scope.js";
import type { Scope } from "./scopes.js";
import { tokenName } from "./token-record.js";

/** The root token's name: no client token can have it. */
export const rootName = "root";

export const maxPaths = 64;
export const defaultTtlSeconds = 90 * 24 * 3600;
export const maxTtlSeconds = 100 * 365 * 24 * 3600;
export const maxOverlapSeconds = 30 * 24 * 3600;

/** `ttlSeconds` 0: never expires. `paths` empty: all. */
export type TokenRequest = {
  readonly name: string;
  readonly can: readonly Scope[];
  readonly paths: readonly string[];
  readonly ttlSeconds: number;
  /** See `UnsignedRecord`. */
  readonly session?: true;
};

/** @throws VaultError BAD_REQUEST that names the rule */
export function readTokenRequest(body: Uint8Array): TokenRequest {
  const { name, can = defaultScopes, paths = [], ttlSeconds = defaultTtlSeconds } = parseJsonMembers(body);
  if (typeof name !== "string" || !tokenName.test(name)) {
    throw invalid("name must be 1 to 64 of a-z, 0-9, dot, dash and underscore, and begin with a letter or digit");
  }
  return {
    name,
    can: readScopes(can),
    paths: readPaths(paths),
    ttlSeconds: readSeconds("ttlSeconds", ttlSeconds, maxTtlSeconds),
  };
}

/** Returns the overlap in seconds; 0 without a body. @throws VaultError BAD_REQUEST */
export function readRotation(body: Uint8Array): number {
  if (body.length === 0) return 0;
  const { overlapSeconds = 0 } = parseJsonMembers(body);
  return readSeconds("overlapSeconds", overlapSeconds, maxOverlapSeconds);
}

/**
 * Returns the members of a body that is one JSON object. DANGER: the parser's own error would quote the body.
 * @throws VaultError BAD_REQUEST
 */
export function parseJsonMembers(body: Uint8Array): { readonly [name: string]: unknown } {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder("utf8", { fatal: true }).decode(body));
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return { ...parsed };
  } catch {
    // refused as any other body that is not an object
  }
  throw invalid("the body must be one JSON object in UTF-8");
}

function readScopes(can: unknown): Scope[] {
  const known = (text: unknown): text is Scope => scopes.some((scope) => scope === text);
  if (!Array.isArray(can) || can.length === 0 || !can.every(known)) {
    throw invalid(`can must list at least one of ${scopes.join(", ")}`);
  }
  return scopes.filter((scope) => can.includes(scope));
}

export function readPaths(paths: unknown): string[] {
  const isText = (path: unknown): path is string => typeof path === "string";
  if (!Array.isArray(paths) || paths.length > maxPaths || !paths.every(isText)) {
    throw invalid(`paths must be a list of at most ${maxPaths} paths`);
  }
  const canonical = paths.map((path) => path.normalize("NFC"));
  if (!canonical.every(isScope)) {
    throw invalid("paths must be valid paths of secrets, or of subtrees, which end in a slash");
  }
  return [...new Set(canonical)];
}

export function readSeconds(name: string, value: unknown, max: number): number {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max) return value as number;
  throw invalid(`${name} must be a whole number from 0 to ${max}`);
}

function invalid(problem: string): VaultError {
  return new VaultError("BAD_REQUEST", problem);
}
