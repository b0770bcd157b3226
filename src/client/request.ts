/** A request of the client, and the parts of its URL. Its types need no types of Node, as those of the whole package. */
import { StrongroomError } from "./client-error.js";

export type ApiRequest = {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: Uint8Array | undefined;
  /** Whether a POST changes nothing. */
  readonly readsOnly?: boolean | undefined;
  /** Besides those of every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
};

/** Whether the request changes nothing, so that it can be sent again. */
export function isRead({ method, readsOnly }: ApiRequest): boolean {
  return method === "GET" || readsOnly === true;
}

export type CallOptions = {
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds for each request, from finding the server to the end of the response, a second try included (default
   * 30,000); 0, and more than 2,147,483,647 (about 25 days), wait forever.
   */
  readonly timeoutMs?: number | undefined;
};

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
