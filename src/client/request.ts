/** A request of the client. Its types need no types of Node, as those of the whole package. */

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
