/** Owns the types of the contract; `npm run contract` makes them from its schemas. */

/** Body of init. Other fields are ignored. */
export interface InitRequest {
  /** The vault's master passphrase. At most 1024 bytes of UTF-8, without lone surrogates. */
  readonly passphrase: string;
  /** Replace an existing vault with a new, empty one; the old one is kept whole beside it. */
  readonly force?: boolean;
}

/** Body of unlock. Other fields are ignored. */
export interface UnlockRequest {
  /** The vault's master passphrase. At most 1024 bytes of UTF-8, without lone surrogates. */
  readonly passphrase: string;
}

/** Body of put. Other fields are ignored. */
export interface PutRequest {
  /** The secret value. At most 1048576 bytes of UTF-8, without lone surrogates. */
  readonly value: string;
  /** What kind of secret it is. One of the values listed. */
  readonly type?: "oauth-token" | "api-key" | "password" | "certificate" | "other";
  /** What it is for, in plain words. At most 4096 bytes of UTF-8, without lone surrogates. */
  readonly description?: string;
}

/** That an operation on the vault was done. */
export interface Acknowledgement {
  /** Always true: failures have an error and a code. */
  readonly ok: true;
  /** What was done, in words for people. */
  readonly message: string;
}

/** That a vault was made, and where. */
export interface Initialized {
  /** Always true: failures have an error and a code. */
  readonly ok: true;
  /** What was done, in words for people. */
  readonly message: string;
  /** Where the vault is on disk. */
  readonly vaultPath: string;
}

/** What anyone on this machine may know of the vault. */
export interface VaultStatus {
  /** Whether there is a vault. */
  readonly initialized: boolean;
  /** Whether the vault is locked; true also when there is none. */
  readonly locked: boolean;
  /** Number of stored secrets, also while locked. */
  readonly secretCount: number;
  /** Where the vault is on disk. */
  readonly vaultPath: string;
  /** False once the server has begun to shut down. */
  readonly serverRunning: boolean;
  /** The port listened on. */
  readonly port: number;
  /** Milliseconds without activity after which the vault locks; 0 is never. */
  readonly idleTimeoutMs: number;
  /** The last init, unlock or secret operation that was let in; before any, the server's start. ISO 8601, UTC, with milliseconds. */
  readonly lastActivity: string;
}

/** What was stored with the value; a field that was not supplied is absent. */
export interface Metadata {
  /** What kind of secret it is. */
  readonly type?: "oauth-token" | "api-key" | "password" | "certificate" | "other";
  /** What it is for, in words for people. */
  readonly description?: string;
}

/** That a secret was stored. */
export interface Stored {
  /** Always true: failures have an error and a code. */
  readonly ok: true;
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** The value's length in bytes of UTF-8. */
  readonly bytes: number;
  readonly metadata: Metadata;
}

/** A secret with its value. */
export interface Secret {
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** The secret value. */
  readonly value: string;
  readonly metadata: Metadata;
  /** When the path first had a secret. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** When the secret was last stored; it never runs backwards. ISO 8601, UTC, with milliseconds. */
  readonly updatedAt: string;
}

/** A secret as listings show it, without its value. */
export interface SecretEntry {
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  readonly metadata: Metadata;
  /** When the path first had a secret. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** When the secret was last stored; it never runs backwards. ISO 8601, UTC, with milliseconds. */
  readonly updatedAt: string;
}

/** Secrets in ascending order of their paths' UTF-8 bytes. */
export interface SecretList {
  /** What was found; empty when nothing matches. */
  readonly entries: readonly SecretEntry[];
  /** There are more: go on with `after` set to this. */
  readonly next?: string;
  /** Paths whose stored metadata cannot be opened; they are not among the entries. */
  readonly damaged?: readonly string[];
}

/** That a secret was deleted for good. */
export interface Deleted {
  /** Always true: failures have an error and a code. */
  readonly ok: true;
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** What was done, in words for people. */
  readonly message: string;
}

/** That a snapshot was taken, and where. */
export interface Snapshot {
  /** Always true: failures have an error and a code. */
  readonly ok: true;
  /** What was done, in words for people. */
  readonly message: string;
  /** Where the snapshot is on disk. */
  readonly directory: string;
  /** Number of secrets in it. */
  readonly secretCount: number;
}

/** Why a request was refused. */
export interface Refusal {
  /** What was wrong and what to do, in words for people. */
  readonly error: string;
  /** What went wrong, for programs. */
  readonly code: "BAD_REQUEST" | "UNAUTHORIZED" | "VAULT_LOCKED" | "NOT_FOUND" | "ALREADY_EXISTS" | "RATE_LIMITED";
  /** With UNAUTHORIZED: what was wrong. */
  readonly credential?: "token" | "passphrase";
}

/** How the server failed. */
export interface Failure {
  /** What was wrong and what to do, in words for people. */
  readonly error: string;
  /** What went wrong, for programs. */
  readonly code: "INTERNAL" | "INTEGRITY" | "UNAVAILABLE";
  /** The server's log has more under this id. */
  readonly requestId: string;
}
