/** The client's error class. Messages say what is wrong and what to do next. */
import type { Failure, Refusal } from "./api-types.js";
import { errorCodes } from "./shapes.js";

/**
 * The server's codes and the client's own: the server is not reachable (`UNREACHABLE`), is not the trusted one
 * (`UNTRUSTED_CERTIFICATE`), sent no Strongroom response (`PROTOCOL`) or none in time (`TIMEOUT`); other users own or can
 * change the server's home (`UNTRUSTED_HOME`); the caller cancelled the request (`ABORTED`).
 */
export type ErrorCode =
  | Refusal["code"]
  | Failure["code"]
  | "UNREACHABLE"
  | "UNTRUSTED_CERTIFICATE"
  | "UNTRUSTED_HOME"
  | "PROTOCOL"
  | "TIMEOUT"
  | "ABORTED";

type Extras = {
  readonly status?: number | undefined;
  readonly retryAfter?: number | undefined;
  readonly requestId?: string | undefined;
  readonly credential?: Refusal["credential"] | undefined;
  readonly reason?: Refusal["reason"] | undefined;
  readonly index?: number | undefined;
  readonly cause?: unknown;
};

export class StrongroomError extends Error {
  readonly code: ErrorCode;
  /** HTTP status; undefined without a response. */
  readonly status: number | undefined;
  /** Seconds to wait before the next attempt. */
  readonly retryAfter: number | undefined;
  /** Identifies the request in the server's log. */
  readonly requestId: string | undefined;
  /** For UNAUTHORIZED: whether the token or the passphrase was wrong. */
  readonly credential: Refusal["credential"] | undefined;
  /** For UNAUTHORIZED: why a client token is no longer valid. */
  readonly reason: Refusal["reason"] | undefined;
  /** For a batch: which operation was refused, counted from 0; undefined when the batch as a whole was. */
  readonly index: number | undefined;

  constructor(code: ErrorCode, message: string, extras: Extras = {}) {
    super(message, extras.cause === undefined ? {} : { cause: extras.cause });
    this.name = "StrongroomError";
    this.code = code;
    this.status = extras.status;
    this.retryAfter = extras.retryAfter;
    this.requestId = extras.requestId;
    this.credential = extras.credential;
    this.reason = extras.reason;
    this.index = extras.index;
  }
}

/** Returns the error for a code that the server sent. A code that only a later server knows becomes PROTOCOL. */
export function errorOfCode(code: string, message: string, extras: Extras = {}): StrongroomError {
  if (isKnown(code)) return new StrongroomError(code, message, extras);
  return new StrongroomError(
    "PROTOCOL",
    `${message} (${code}: this version of the client does not know the code)`,
    extras,
  );
}

function isKnown(code: string): code is Refusal["code"] | Failure["code"] {
  return errorCodes.includes(code);
}

/** Returns the code of a failed system call or of Node (`ENOENT`, …), for a message. */
export function systemCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "unknown";
}
