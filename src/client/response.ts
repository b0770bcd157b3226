/** Decoding of the server's responses: into the contract's objects, or an error. Their bytes are wiped. */
import type { IncomingHttpHeaders } from "node:http";
import type { Failure, Refusal } from "./api-types.js";
import { nameOf, type ServerLocation, tokenOption } from "./discovery.js";
import { StrongroomError } from "./errors.js";

export type Received = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer };

/** @throws StrongroomError with the server's code, or PROTOCOL when a Strongroom server did not send this. */
export function decodeResponse<T extends object>(received: Received, location: ServerLocation): T {
  const content = parseObject(received);
  if (content !== null && received.status === 200) return content as T;
  throw errorOf(received, content, location);
}

function errorOf(received: Received, content: object | null, location: ServerLocation): StrongroomError {
  if (content !== null && isError(content)) return errorFrom(received, content, location);
  return new StrongroomError(
    "PROTOCOL",
    `what responds at ${nameOf(location)} is not a Strongroom server of this version: check the address`,
    { status: received.status },
  );
}

/** As `decodeResponse`, of a response that is a text. */
export function decodeText(received: Received, location: ServerLocation): string {
  const { status, headers, body } = received;
  if (status === 200 && /^(?:text\/plain|application\/x-ndjson)/.test(headers["content-type"] ?? ""))
    return body.toString("utf8");
  throw errorOf(received, parseObject(received), location);
}

type ErrorContent = Pick<Refusal, "error" | "credential" | "reason" | "index"> & {
  readonly code: Refusal["code"] | Failure["code"];
  readonly requestId?: string;
};

function parseObject({ body }: Received): object | null {
  try {
    const json: unknown = JSON.parse(body.toString("utf8"));
    return typeof json === "object" && json !== null ? json : null;
  } catch {
    return null;
  } finally {
    body.fill(0);
  }
}

function isError(content: object): content is ErrorContent {
  const { error, code } = content as Partial<ErrorContent>;
  return typeof error === "string" && typeof code === "string";
}

function errorFrom({ status, headers }: Received, content: ErrorContent, location: ServerLocation): StrongroomError {
  const { error, code, requestId, credential, reason, index } = content;
  const seconds = Number(headers["retry-after"]);
  const retryAfter = Number.isInteger(seconds) ? seconds : undefined;
  return new StrongroomError(code, `${error}${hint(content, retryAfter, location)}`, {
    status,
    retryAfter,
    requestId,
    credential,
    reason,
    index,
  });
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
