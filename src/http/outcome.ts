/** What handlers return: the adapter sends it, and wipes it once it is sent or the client is gone. */
import type { TaggedResponse } from "../vault/conditions.js";
import type { ListPart } from "../vault/list.js";

/** A response of known length. */
export type Whole = {
  readonly status: number;
  /** None, where the status has no body: 204, 304. */
  readonly pieces: readonly Uint8Array[];
  /** Without quotes. */
  readonly etag?: string;
  /** Where it is not JSON in UTF-8. */
  readonly type?: string;
  /** Something was changed: the response leaves also when the token has ended since. */
  readonly isDone?: boolean;
  /** The response is the last of its connection. */
  readonly isLast?: boolean;
  /** Called once the response is on its way and the request is recorded. */
  readonly after?: () => void;
};

/** A list that is sent as it is read. */
export type Parts = { readonly parts: AsyncGenerator<ListPart, void, void> };

/** Lines that follow one by one, until the client has enough. */
export type Lines = {
  readonly type: string;
  /** Returns what ends them, called once. `end`: no line follows. */
  readonly lines: (send: (line: Uint8Array | string) => void, end: () => void) => () => void;
};

/** A file for browsers, which is no endpoint's. `policy`: its Content-Security-Policy. */
export type Page = { readonly type: string; readonly policy: string; readonly body: Uint8Array };

export type Outcome = Whole | Parts | Lines;

export function bytes(...pieces: readonly Uint8Array[]): Whole {
  return { status: 200, pieces };
}

/** DANGER: of texts that are not secret. */
export function json(body: object, status = 200): Whole {
  return { status, pieces: [Buffer.from(JSON.stringify(body))] };
}

export function tagged({ response, tag }: TaggedResponse): Whole {
  return { status: 200, pieces: [response], etag: tag };
}

/** DANGER: only of a response without values. */
export function parsed(response: Uint8Array): { readonly [member: string]: unknown } {
  return JSON.parse(Buffer.from(response.buffer, response.byteOffset, response.length).toString());
}
