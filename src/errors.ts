/** Errors with a message for people: the closed list of codes, each with its HTTP status, and failed starts. */

export const errorStatuses = {
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  VAULT_LOCKED: 403,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  PRECONDITION_FAILED: 412,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  INTEGRITY: 500,
  UNAVAILABLE: 503,
} as const;

export type ErrorCode = keyof typeof errorStatuses;

/** Why a client token that was valid no longer is. */
export const endReasons = ["expired", "revoked", "rotated"] as const;
export type EndReason = (typeof endReasons)[number];

type Extras = {
  /** Seconds to wait, sent as `Retry-After`. */
  readonly retryAfter?: number;
  /** Methods of the path, sent as `Allow`. */
  readonly allow?: readonly string[];
  /** With UNAUTHORIZED: which credential was wrong. */
  readonly credential?: "token" | "passphrase" | undefined;
  /** With UNAUTHORIZED for a token that was valid: why it no longer is. */
  readonly reason?: EndReason;
  /** Which operation of a batch was refused. */
  readonly index?: number | undefined;
  /** For the log, which records its name, code and stack frames, never its message. */
  readonly cause?: unknown;
};

/** An error for the client. The message says what was wrong and what to do, and never contains any part of a secret. */
export class VaultError extends Error {
  readonly code: ErrorCode;
  readonly retryAfter: number | undefined;
  readonly allow: readonly string[] | undefined;
  readonly credential: Extras["credential"];
  readonly reason: Extras["reason"];
  readonly index: number | undefined;

  constructor(code: ErrorCode, message: string, extras: Extras = {}) {
    super(message, extras.cause === undefined ? {} : { cause: extras.cause });
    this.name = "VaultError";
    this.code = code;
    this.retryAfter = extras.retryAfter;
    this.allow = extras.allow;
    this.credential = extras.credential;
    this.reason = extras.reason;
    this.index = extras.index;
  }
}

/** The server cannot start; the message says what to fix. `exitCode`: 2 for an invalid setting, 1 for anything else. */
export class StartError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = "StartError";
    this.exitCode = exitCode;
  }
}

/** Returns the system's code of a failed file or network operation (`ENOENT`, …), or undefined. */
export function systemCode(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}

const fullOrReadOnly = new Set(["ENOSPC", "EDQUOT", "EROFS"]);

/** Whether an operation, or what an error for the client is based on, failed because the disk is full or read-only. */
export function takesNoFiles(error: unknown): boolean {
  const failed = error instanceof VaultError ? error.cause : error;
  return fullOrReadOnly.has(systemCode(failed) ?? "");
}
