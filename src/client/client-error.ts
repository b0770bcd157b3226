/** Owns the one class of error that the client throws. Messages say what was wrong and what to do next. */
import type { Failure, Refusal } from "./api-types.js";

/**
 * The server's codes, and the client's own: nothing answers (`UNREACHABLE`), somebody answers who is not the server that
 * is trusted (`UNTRUSTED_CERTIFICATE`) or does not speak as it should (`PROTOCOL`), no answer in time (`TIMEOUT`), or the
 * caller has ended the request (`ABORTED`).
 */
export type ErrorCode =
  | Refusal["code"]
  | Failure["code"]
  | "UNREACHABLE"
  | "UNTRUSTED_CERTIFICATE"
  | "PROTOCOL"
  | "TIMEOUT"
  | "ABORTED";

type Extras = {
  readonly status?: number | undefined;
  readonly retryAfter?: number | undefined;
  readonly requestId?: string | undefined;
  readonly credential?: Refusal["credential"] | undefined;
  readonly cause?: unknown;
};

export class StrongroomError extends Error {
  readonly code: ErrorCode;
  /** The answer's HTTP status; undefined when there was no answer. */
  readonly status: number | undefined;
  /** Seconds to wait before the next attempt. */
  readonly retryAfter: number | undefined;
  /** The server's log has more under this id. */
  readonly requestId: string | undefined;
  /** Of UNAUTHORIZED: whether the token or the passphrase was wrong. */
  readonly credential: Refusal["credential"] | undefined;

  constructor(code: ErrorCode, message: string, extras: Extras = {}) {
    super(message, extras.cause === undefined ? {} : { cause: extras.cause });
    this.name = "StrongroomError";
    this.code = code;
    this.status = extras.status;
    this.retryAfter = extras.retryAfter;
    this.requestId = extras.requestId;
    this.credential = extras.credential;
  }
}

/** The system's or Node's code of a failed operation (`ENOENT`, …), for a message. */
export function systemCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "unknown";
}
