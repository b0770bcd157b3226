/** Requests for one secret: their URL path, and the headers of their conditions. */
import { StrongroomError } from "./client-error.js";
import type { PutOptions } from "./method-options.js";
import { type ApiRequest, encoded } from "./request.js";
import type { Carried, Requester } from "./requester.js";

/** Refuses an empty path, which would request the list. @throws StrongroomError BAD_REQUEST */
export function secretTarget(path: string, root: "secrets" | "versions" = "secrets"): string {
  if (path === "") throw new StrongroomError("BAD_REQUEST", "the secret's path is empty: give one");
  return `/v1/${root}/${encoded(path)}`;
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
