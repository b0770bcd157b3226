/** Requests of the client: method, URL path, query and conditions. */
import { constants } from "node:buffer";
import { StrongroomError } from "./errors.js";
import type { ChangeOptions } from "./options.js";

export type ApiRequest = {
  readonly method: "GET" | "PUT" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: Uint8Array | undefined;
  /** A POST that changes nothing. */
  readonly readsOnly?: boolean | undefined;
  /** The response is read into memory of ours, which is wiped. */
  readonly ownsResponse?: true;
  /** Headers in addition to those of every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
};

/** Whether the request changes nothing and can be sent again. */
export function isRead({ method, readsOnly }: ApiRequest): boolean {
  return method === "GET" || readsOnly === true;
}

/** No larger JSON can be decoded: V8's longest string. Lists of large vaults and values of 64 MiB come near it. */
export const mostBytesOfContent = constants.MAX_STRING_LENGTH;

/** Limit for a response that only says what was done, or why not. */
const mostBytesOfReport = 2 ** 20;

/** Returns how many bytes the server sends at most: secrets and lists go up to `mostOfContent`. */
export function mostResponseBytes(request: ApiRequest, status: number, mostOfContent: number): number {
  const hasContent = status === 200 && (isRead(request) || request.path === "/v1/batch");
  return hasContent ? mostOfContent : Math.min(mostBytesOfReport, mostOfContent);
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

/** Returns the query of a URL, or nothing when no parameter has a value. @throws StrongroomError BAD_REQUEST */
export function queryString(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  const query = given.map(([name, value]) => `${name}=${encoded(String(value))}`).join("&");
  return query && `?${query}`;
}

/** Returns the URL path of a secret. @throws StrongroomError BAD_REQUEST for an empty path, which would request the list */
export function secretUrl(path: string, resource = "secrets"): string {
  if (path === "") throw new StrongroomError("BAD_REQUEST", "the path is empty");
  return `/v1/${resource}/${encoded(path)}`;
}

const scheme = "strongroom://";

/** Reads `strongroom://path#field`, percent-encoded like a URL. @throws StrongroomError BAD_REQUEST */
export function readReference(text: string): { readonly path: string; readonly field: string | null } {
  const [path = "", field, ...others] = text.slice(scheme.length).split("#");
  if (!text.startsWith(scheme) || path === "" || field === "" || others.length > 0) throw invalidReference();
  try {
    return { path: decodeURIComponent(path), field: field === undefined ? null : decodeURIComponent(field) };
  } catch {
    throw invalidReference();
  }
}

function invalidReference(): StrongroomError {
  return new StrongroomError("BAD_REQUEST", "a reference must be strongroom://path or strongroom://path#field");
}

/** Returns the URL path of a token. @throws StrongroomError BAD_REQUEST */
export function tokenUrl(name: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name)) return `/v1/tokens/${name}`;
  throw new StrongroomError("BAD_REQUEST", "invalid token name: use 1 to 64 of a-z, 0-9, dot, dash and underscore");
}

type Conditions = Pick<ChangeOptions, "ifMatch"> & { readonly ifAbsent?: boolean | undefined };

/** Returns the headers of a conditional change. @throws StrongroomError BAD_REQUEST */
export function conditionHeaders({ ifMatch, ifAbsent }: Conditions): Readonly<Record<string, string>> {
  return {
    ...(ifMatch !== undefined && { "if-match": entityTag(ifMatch) }),
    ...(ifAbsent && { "if-none-match": "*" }),
  };
}

function entityTag(etag: string): string {
  if (etag === "*") return etag;
  if (/^[\w-]+$/.test(etag)) return `"${etag}"`;
  throw new StrongroomError(
    "BAD_REQUEST",
    "ifMatch must be * or an etag without quotes, as get, put and list return it",
  );
}

/** Returns a time as the API takes it. @throws StrongroomError BAD_REQUEST for an invalid Date */
export function formatTime<Nothing extends null | undefined>(time: Date | string | Nothing): string | Nothing {
  if (!(time instanceof Date)) return time;
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw new StrongroomError("BAD_REQUEST", "expiresAt is an invalid date");
}
