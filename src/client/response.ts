/** Decoding of the server's responses: into the contract's objects, or an error. Their bytes are wiped. */
import type { IncomingHttpHeaders } from "node:http";
import type { Refusal } from "./api-types.js";
import { locationName, type ServerLocation, tokenOption } from "./discovery.js";
import { errorOfCode, StrongroomError } from "./errors.js";
import { uncertainty } from "./lifetime.js";
import type { ApiRequest } from "./request.js";
import { type Shaped, shapeProblem } from "./shape-check.js";

export type Received = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer };

/**
 * Returns a decoder of responses of this shape.
 * @throws StrongroomError with the server's code, or PROTOCOL when a Strongroom server did not send this.
 */
export function responseDecoder<N extends keyof Shaped>(shape: N) {
  return (received: Received, location: ServerLocation, request: ApiRequest): Shaped[N] => {
    const content = parseBody(received);
    if (received.status !== 200) throw responseError(received, content, location);
    const problem = shapeProblem(shape, content);
    if (problem === null) return content as Shaped[N];
    const what = `the response is not of the API: response${problem}`;
    throw unknownServer(received, location, `${what}${uncertainty(request)}`);
  };
}

function responseError(received: Received, content: unknown, location: ServerLocation): StrongroomError {
  return isError(content) ? errorFrom(received, content, location) : unknownServer(received, location);
}

function unknownServer({ status }: Received, location: ServerLocation, what?: string): StrongroomError {
  const who = `what responds at ${locationName(location)} is not a Strongroom server of this version: check the address`;
  return new StrongroomError("PROTOCOL", what === undefined ? who : `${who} (${what})`, { status });
}

/** Like `responseDecoder`, of a response that is a text. */
export function decodeText(received: Received, location: ServerLocation): string {
  const { status, headers, body } = received;
  if (status === 200 && /^(?:text\/plain|application\/x-ndjson)/.test(headers["content-type"] ?? ""))
    return body.toString("utf8");
  throw responseError(received, parseBody(received), location);
}

/** The code may be one of a later server. */
type ErrorContent = Pick<Refusal, "error" | "credential" | "reason" | "index"> & {
  readonly code: string;
  readonly requestId?: string;
};

/** Returns null for what is not JSON. */
function parseBody({ body }: Received): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return null;
  } finally {
    body.fill(0);
  }
}

function isError(content: unknown): content is ErrorContent {
  return shapeProblem("ErrorContent", content) === null;
}

function errorFrom({ status, headers }: Received, content: ErrorContent, location: ServerLocation): StrongroomError {
  const { error, code, requestId, credential, reason, index } = content;
  const seconds = Number(headers["retry-after"]);
  const retryAfter = Number.isInteger(seconds) ? seconds : undefined;
  const message = `${error}${hint(content, retryAfter, location)}`;
  return errorOfCode(code, message, { status, retryAfter, requestId, credential, reason, index });
}

function hint(
  { credential, reason }: ErrorContent,
  retryAfter: number | undefined,
  { tokenSource }: ServerLocation,
): string {
  if (reason !== undefined) return ` (it is in ${tokenSource})`;
  if (credential === "token" && tokenSource === "STRONGROOM_TOKEN") {
    return ": STRONGROOM_TOKEN is not this server's token, unset it or set the right one";
  }
  if (credential === "token" && tokenSource === tokenOption) {
    return `: ${tokenOption} is not this server's token, correct it, or leave it out to use STRONGROOM_TOKEN_FILE`;
  }
  if (credential === "token") {
    return `: ${tokenSource} does not hold this server's token, name the right file with STRONGROOM_TOKEN_FILE`;
  }
  return retryAfter === undefined ? "" : ` (${retryAfter} s)`;
}
