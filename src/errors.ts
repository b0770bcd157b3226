/** Owns the errors that a client may see: the closed list of codes, each with its one HTTP status. */

export const statusOf = {
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  VAULT_LOCKED: 403,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  INTEGRITY: 500,
  UNAVAILABLE: 503,
} as const;

export type ErrorCode = keyof typeof statusOf;

type Extras = {
  /** Seconds to wait, answered as `Retry-After`. */
  readonly retryAfter?: number;
  /** Methods that the path has, answered as `Allow`. */
  readonly allow?: readonly string[];
  /** Of UNAUTHORIZED: what was wrong. */
  readonly credential?: "token" | "passphrase";
  /** For the log only, which takes its name, its code and where it was thrown, never its text. */
  readonly cause?: unknown;
};

/** An error whose message is written for the client: what was wrong and what to do, never any part of a secret. */
export class VaultError extends Error {
  readonly code: ErrorCode;
  readonly retryAfter: number | undefined;
  readonly allow: readonly string[] | undefined;
  readonly credential: Extras["credential"];

  constructor(code: ErrorCode, message: string, extras: Extras = {}) {
    super(message, extras.cause === undefined ? {} : { cause: extras.cause });
    this.name = "VaultError";
    this.code = code;
    this.retryAfter = extras.retryAfter;
    this.allow = extras.allow;
    this.credential = extras.credential;
  }
}

/** The server cannot start; the message says what to mend. `exitCode` 2: a setting is wrong; 1: anything else. */
export class StartError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = "StartError";
    this.exitCode = exitCode;
  }
}

/** The system's code of a failed file or network operation (`ENOENT`, …), if the error is one. */
export function systemCode(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}
