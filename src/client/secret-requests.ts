/** Parts of requests: URL paths and queries, and the headers of conditions. */
import { StrongroomError } from "./client-error.js";
import type { PutOptions } from "./method-options.js";
import type { ApiRequest } from "./request.js";
import type { Carried, Requester } from "./requester.js";

/** Refuses an empty path, which would request the list. @throws StrongroomError BAD_REQUEST */
export function secretTarget(path: string, root: "secrets" | "versions" = "secrets"): string {
  if (path === "") throw new StrongroomError("BAD_REQUEST", "the secret's path is empty: give one");
  return `/v1/${root}/${encoded(path)}`;
}

/** Percent-encodes a part of a URL. @throws StrongroomError BAD_REQUEST */
export function encoded(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    throw new StrongroomError(
      "BAD_REQUEST",
      "a path or other part of a URL must not contain a lone surrogate, which UTF-8 cannot encode",
    );
  }
}

/** Returns the query of a URL, empty if no parameter has a value. @throws StrongroomError BAD_REQUEST */
export function queryOf(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  const query = given.map(([name, value]) => `${name}=${encoded(String(value))}`).join("&");
  return query && `?${query}`;
}

/** Sends a change under its condition. @throws StrongroomError */
export async function sendChange<T extends object>(
  requester: Requester,
  [method, target]: readonly [ApiRequest["method"], string],
  { ifMatch, ifAbsent, ...options }: PutOptions,
  carried: Carried = {},
): Promise<T> {
  const headers = {
    ...(ifMatch !== undefined && { "if-match": entityTag(ifMatch) }),
    ...(ifAbsent && { "if-none-match": "*" }),
  };
  return requester.send(method, target, options, { ...carried, headers });
}

function entityTag(etag: string): string {
  if (etag === "*") return etag;
  if (/^[\w-]+$/.test(etag)) return `"${etag}"`;
  throw new StrongroomError(
    "BAD_REQUEST",
    "ifMatch must be * or an etag without quotes, as get, put and list return it",
  );
}
