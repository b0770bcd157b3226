/** Types of the HTTP API, generated from openapi.yaml by `npm run contract`. */

/** Body of init. Other fields are ignored. */
export interface InitRequest {
  /** The vault's master passphrase. At most 1024 bytes of UTF-8. */
  readonly passphrase: string;
  /** Replace an existing vault with a new, empty one; the old one is kept whole beside it. */
  readonly force?: boolean;
}

/** Body of unlock. Other fields are ignored. */
export interface UnlockRequest {
  /** The vault's passphrase, or the text of one of its keys. At most 1024 bytes of UTF-8. */
  readonly passphrase: string;
}

/** Body of a change of the passphrase. Other fields are ignored. */
export interface PassphraseRequest {
  /** The vault's passphrase, or the text of one of its keys. At most 1024 bytes of UTF-8. */
  readonly passphrase: string;
  /** The passphrase from now on. At most 1024 bytes of UTF-8. */
  readonly newPassphrase: string;
}

/** Body of a rotation of the master key. Other fields are ignored. */
export interface RotateRequest {
  /** The vault's master passphrase. At most 1024 bytes of UTF-8. */
  readonly passphrase: string;
  /** The texts of the keys that open the vault from now on, too; all others open nothing any more. */
  readonly keys: readonly string[];
}

/** Body of a new key. Other fields are ignored. */
export interface KeyRequest {
  /** The vault's passphrase, or the text of one of its keys. At most 1024 bytes of UTF-8. */
  readonly passphrase: string;
  /** Name of the key, for people: unique, without control characters and outer white space. At most 64 bytes of UTF-8. */
  readonly label: string;
}

/** Body of undo. Other fields are ignored. */
export interface UndoRequest {
  /** The number of a version that is kept. */
  readonly version: number;
}

/** Body of a check of checkpoints. Other fields are ignored. */
export interface AuditVerifyRequest {
  /** At most 1000. */
  readonly checkpoints: readonly AuditCheckpoint[];
}

/** Body of a batch. Other fields are ignored. */
export interface BatchRequest {
  /** What to do; an operation has one of get, put, delete, move and copy. */
  readonly operations: readonly (BatchGet | BatchPut | BatchDelete | BatchMove | BatchCopy)[];
}

/** Reads a secret. */
export interface BatchGet {
  /** Path of the secret to read, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly get: string;
  /** Tag without quotes that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Stores a secret. */
export interface BatchPut {
  /** Path to store the secret at, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly put: string;
  /** The secret value. At most 1048576 bytes of UTF-8, without lone surrogates. */
  readonly value: string;
  /** What kind of secret it is. */
  readonly type?: "oauth-token" | "api-key" | "password" | "certificate" | "other";
  /** What it is for, in plain words. At most 4096 bytes of UTF-8. */
  readonly description?: string;
  /** Tag without quotes that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Deletes a secret permanently. */
export interface BatchDelete {
  /** Path of the secret to delete, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly delete: string;
  /** Tag without quotes that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Moves or renames a secret; its times, versions and history stay. */
export interface BatchMove {
  /** Path of the secret to move, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly move: string;
  /** The path that it gets, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly to: string;
  /** Tag without quotes that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Stores the present value and metadata of a secret as a new secret at another path. */
export interface BatchCopy {
  /** Path of the secret to copy, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly copy: string;
  /** The path that it gets, not percent-encoded. At most 1024 bytes of UTF-8. */
  readonly to: string;
  /** Tag without quotes that the secret at the first path must have, or `*`: it must exist. At most 64 bytes of UTF-8. */
  readonly ifMatch?: string;
  /** There must be no secret at the path, or at the target of a move or copy. */
  readonly ifNoneMatch?: "*";
}

/** Body of put. Other fields are ignored. */
export interface PutRequest {
  /** The secret value. At most 1048576 bytes of UTF-8, without lone surrogates. */
  readonly value: string;
  /** What kind of secret it is. */
  readonly type?: "oauth-token" | "api-key" | "password" | "certificate" | "other";
  /** What it is for, in plain words. At most 4096 bytes of UTF-8. */
  readonly description?: string;
}

/** Body of a new token. Other fields are ignored. */
export interface TokenRequest {
  /** Its name: 1 to 64 of a-z, 0-9, dot, dash, underscore; `root` is the root token's. */
  readonly name: string;
  /** What the token can do. */
  readonly can?: readonly ("list" | "get" | "put" | "delete" | "lock" | "unlock" | "metrics" | "audit")[];
  /** Secrets, or with a slash at the end subtrees, that it can see and change; none: all. */
  readonly paths?: readonly string[];
  /** Seconds until it ends; 0: never. */
  readonly ttlSeconds?: number;
}

/** Body of a rotation of a token. Other fields are ignored. */
export interface RotationRequest {
  /** Seconds for which the old text stays valid. */
  readonly overlapSeconds?: number;
}

/** A record of the audit log; the members depend on the event. */
export interface AuditRecord {
  /** Number of the record. */
  readonly seq: number;
  /** ISO 8601, UTC, with milliseconds. */
  readonly time: string;
  /** What was done, or happened. */
  readonly event: string;
  /** Name of the token; `root` is the root token. */
  readonly token?: string;
  /** Address of the client; `unix` is the Unix socket. */
  readonly address?: string;
  /** Identifies the request in the server's log, or the batch. */
  readonly requestId?: string;
  /** The secret's path. */
  readonly path?: string;
  /** Target of a move or copy. */
  readonly to?: string;
  /** The client token, or the key's id, that was made, changed or removed. */
  readonly name?: string;
  /** The version that was asked for. */
  readonly version?: number;
  /** Tag of the secret that was read or stored. */
  readonly etag?: string;
  /** Of a list. */
  readonly prefix?: string;
  /** Secrets in a list, or records that a gap stands for. */
  readonly count?: number;
  /** Present in the records of a batch. */
  readonly batch?: true;
  /** Status of the response; 0: the client was gone. */
  readonly status?: number;
  /** Code of the error. */
  readonly code?: string;
  /** Why the vault was locked, or a checkpoint made. */
  readonly reason?: string;
  /** Of a lockout: what was wrong. */
  readonly credential?: string;
  /** When the first of a gap's records was lost. ISO 8601, UTC, with milliseconds. */
  readonly since?: string;
  /** Name of the key. */
  readonly key?: string;
  /** The MAC. */
  readonly mac?: string;
}

/** Where the log ends: keep it elsewhere, and no earlier part can be changed or cut unseen. */
export interface AuditHead {
  /** Name of the log, made when its first file was. */
  readonly log: string;
  /** Number of the record. */
  readonly seq: number;
  /** Value of the hash chain. */
  readonly chain: string;
}

/** A checkpoint. `chain` is the value before it. */
export interface AuditCheckpoint {
  /** Name of the log, made when its first file was. */
  readonly log: string;
  /** Number of the record. */
  readonly seq: number;
  /** ISO 8601, UTC, with milliseconds. */
  readonly time: string;
  /** Value of the hash chain. */
  readonly chain: string;
  /** Name of the key. */
  readonly key: string;
  /** The MAC. */
  readonly mac: string;
}

/** Records of the audit log. */
export interface AuditPage {
  /** Oldest first. */
  readonly records: readonly AuditRecord[];
  readonly head?: AuditHead;
}

/** Verdicts on checkpoints. */
export interface AuditVerdicts {
  /** In the order of the checkpoints. `unknown`: made under another key than the vault's. */
  readonly verdicts: readonly ("valid" | "wrong" | "unknown")[];
}

/** A token without its text. */
export interface Token {
  /** Its name: 1 to 64 of a-z, 0-9, dot, dash, underscore; `root` is the root token's. */
  readonly name: string;
  /** What the token can do. */
  readonly can: readonly ("list" | "get" | "put" | "delete" | "lock" | "unlock" | "metrics" | "audit")[];
  /** Secrets, or with a slash at the end subtrees, that it can see and change; none: all. */
  readonly paths: readonly string[];
  /** When it was created; null for the root token. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string | null;
  /** When it ends; null: never. ISO 8601, UTC, with milliseconds. */
  readonly expiresAt: string | null;
  /** When it was last used, within a minute; null: not yet, and for the root token. ISO 8601, UTC, with milliseconds. */
  readonly lastUsedAt: string | null;
}

/** A token with its text, which is never shown again. */
export interface NewToken {
  /** Always true; a failure has an error and a code instead. */
  readonly ok: true;
  /** The text, for `Authorization: Bearer`. */
  readonly token: string;
  /** Its name: 1 to 64 of a-z, 0-9, dot, dash, underscore; `root` is the root token's. */
  readonly name: string;
  /** What the token can do. */
  readonly can: readonly ("list" | "get" | "put" | "delete" | "lock" | "unlock" | "metrics" | "audit")[];
  /** Secrets, or with a slash at the end subtrees, that it can see and change; none: all. */
  readonly paths: readonly string[];
  /** When it was created; null for the root token. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string | null;
  /** When it ends; null: never. ISO 8601, UTC, with milliseconds. */
  readonly expiresAt: string | null;
  /** When it was last used, within a minute; null: not yet, and for the root token. ISO 8601, UTC, with milliseconds. */
  readonly lastUsedAt: string | null;
}

/** The client tokens. */
export interface TokenList {
  /** Ascending by name. */
  readonly tokens: readonly Token[];
}

/** Confirms that a token was revoked. */
export interface Revoked {
  /** Always true; a failure has an error and a code instead. */
  readonly ok: true;
  /** Its name: 1 to 64 of a-z, 0-9, dot, dash, underscore; `root` is the root token's. */
  readonly name: string;
  /** What was done, for people. */
  readonly message: string;
}

/** Confirms an operation on the vault. */
export interface Acknowledgement {
  /** Always true; a failure has an error and a code instead. */
  readonly ok: true;
  /** What was done, for people. */
  readonly message: string;
}

/** Confirms that a vault was created. */
export interface Initialized {
  /** Always true; a failure has an error and a code instead. */
  readonly ok: true;
  /** What was done, for people. */
  readonly message: string;
  /** Directory of the vault, or host and name of its database. */
  readonly vaultPath: string;
}

/** State of the vault that anyone on this machine may read. */
export interface VaultStatus {
  /** Whether a vault exists. */
  readonly initialized: boolean;
  /** Whether the vault is locked; true before init. */
  readonly locked: boolean;
  /** Number of stored secrets, also while locked. */
  readonly secretCount: number;
  /** Directory of the vault, or host and name of its database. */
  readonly vaultPath: string;
  /** False once the server has begun to shut down. */
  readonly serverRunning: boolean;
  /** The listening port. */
  readonly port: number;
  /** Milliseconds without activity after which the vault locks; 0 means never. */
  readonly idleTimeoutMs: number;
  /** Time of the last successful init or unlock, or of the last authenticated secret operation; before any, the server's start. ISO 8601, UTC, with milliseconds. */
  readonly lastActivity: string;
  readonly lastLock: LastLock;
  /** Version of the server. */
  readonly version: string;
  readonly rotation?: RotationProgress;
  /** False while a database does not answer: `secretCount` is then the last number that it told. */
  readonly storageAvailable?: boolean;
}

/** Why and when the vault was locked last; while it is unlocked, the time before. */
export interface LastLock {
  /** On request, after the idle timeout, because the key worker ended or the stored header took another key, because the server started, or because it is stopping. */
  readonly reason: "request" | "idle" | "crash" | "start" | "shutdown";
  /** When it was locked, or the server started. ISO 8601, UTC, with milliseconds. */
  readonly at: string;
}

/** A way into the vault. */
export interface Key {
  /** Identifies the key; `passphrase` is the passphrase. */
  readonly id: string;
  /** The passphrase, or a generated key. */
  readonly kind: "passphrase" | "key";
  /** Its name, for people; `passphrase` is the passphrase's. */
  readonly label: string;
  /** When it was created, or the passphrase last changed. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
}

/** The ways into the vault. */
export interface KeyList {
  /** The passphrase first, then the keys by age. */
  readonly keys: readonly Key[];
}

/** A new key. */
export interface CreatedKey {
  /** Always true; a failure has an error and a code instead. */
  readonly ok: true;
  /** Identifies the key; `passphrase` is the passphrase. */
  readonly id: string;
  /** Its name, for people; `passphrase` is the passphrase's. */
  readonly label: string;
  /** Its text, which opens the vault. Case and dashes do not matter. The last letter of each group checks the group. */
  readonly key: string;
}

/** Confirms that the master key is rotated. */
export interface Rotated {
  /** Always true; a failure has an error and a code instead. */
  readonly ok: true;
  /** What was done, for people. */
  readonly message: string;
  /** The labels of the keys that open nothing any more. */
  readonly removed: readonly string[];
}

/** Progress of a rotation of the master key. */
export interface RotationProgress {
  /** Number of secrets sealed under the new key, as far as checked since the server started. */
  readonly done: number;
  /** Number of secrets. */
  readonly total: number;
}

/** Metadata stored with the value; a field that was not supplied is absent. */
export interface Metadata {
  /** Kind of secret. */
  readonly type?: "oauth-token" | "api-key" | "password" | "certificate" | "other";
  /** Description for people. */
  readonly description?: string;
}

/** Confirms that a secret was stored. */
export interface Stored {
  /** Always true; a failure has an error and a code instead. */
  readonly ok: true;
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** The value's length in bytes of UTF-8. */
  readonly bytes: number;
  readonly metadata: Metadata;
  /** Number of the version: 1 at creation, one more with each put that changes something. */
  readonly version: number;
  /** Tag of this state of the secret, for If-Match and If-None-Match, where it stands in quotes. */
  readonly etag: string;
}

/** A secret with its value. */
export interface Secret {
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** The secret value. */
  readonly value: string;
  readonly metadata: Metadata;
  /** When the secret was first stored at this path. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** When the secret was last stored; never goes backwards. ISO 8601, UTC, with milliseconds. */
  readonly updatedAt: string;
  /** Number of the version: 1 at creation, one more with each put that changes something. */
  readonly version: number;
  /** Tag of this state of the secret, for If-Match and If-None-Match, where it stands in quotes. */
  readonly etag: string;
}

/** A secret in a list, without its value. */
export interface SecretEntry {
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  readonly metadata: Metadata;
  /** When the secret was first stored at this path. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** When the secret was last stored; never goes backwards. ISO 8601, UTC, with milliseconds. */
  readonly updatedAt: string;
  /** Number of the version: 1 at creation, one more with each put that changes something. */
  readonly version: number;
  /** Tag of this state of the secret, for If-Match and If-None-Match, where it stands in quotes. */
  readonly etag: string;
}

/** A version of a secret, without its value. */
export interface SecretVersion {
  readonly metadata: Metadata;
  /** When the secret was first stored at this path. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string;
  /** When this version was last stored. ISO 8601, UTC, with milliseconds. */
  readonly updatedAt: string;
  /** Number of the version: 1 at creation, one more with each put that changes something. */
  readonly version: number;
  /** Tag of this state of the secret, for If-Match and If-None-Match, where it stands in quotes. */
  readonly etag: string;
}

/** The versions of a secret. */
export interface SecretHistory {
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** Newest first, the present included. */
  readonly versions: readonly SecretVersion[];
  /** How many earlier versions cannot be decrypted; they are not among the versions. */
  readonly damaged?: number;
}

/** Secrets in ascending order of the UTF-8 bytes of their paths. */
export interface SecretList {
  /** Matching secrets; empty when nothing matches. */
  readonly entries: readonly SecretEntry[];
  /** Present when more secrets follow: continue with `after` set to this path. */
  readonly next?: string;
  /** Paths whose stored metadata cannot be decrypted; they are not among the entries. */
  readonly damaged?: readonly string[];
}

/** Confirms a deletion. */
export interface Deleted {
  /** Always true; a failure has an error and a code instead. */
  readonly ok: true;
  /** The secret's path in its canonical form (Unicode NFC). */
  readonly path: string;
  /** What was done, for people. */
  readonly message: string;
}

/** Confirms that a snapshot was taken. */
export interface Snapshot {
  /** Always true; a failure has an error and a code instead. */
  readonly ok: true;
  /** What was done, for people. */
  readonly message: string;
  /** Directory of the snapshot. */
  readonly directory: string;
  /** Number of secrets in it. */
  readonly secretCount: number;
  /** Present when it is the vault's own directory: nothing in it may be changed or removed. */
  readonly direct?: true;
}

/** Why a request was refused. */
export interface Refusal {
  /** What was wrong and what to do, for people. */
  readonly error: string;
  /** Error code, for programs. */
  readonly code:
    | "BAD_REQUEST"
    | "UNAUTHORIZED"
    | "FORBIDDEN"
    | "VAULT_LOCKED"
    | "NOT_FOUND"
    | "ALREADY_EXISTS"
    | "PRECONDITION_FAILED"
    | "RATE_LIMITED";
  /** With UNAUTHORIZED: which credential was wrong. */
  readonly credential?: "token" | "passphrase";
  /** With UNAUTHORIZED, for 30 days: why a client token is no longer valid. */
  readonly reason?: "expired" | "revoked" | "rotated";
  /** Which operation of a batch was refused, counted from 0. */
  readonly index?: number;
}

/** Why the server failed. */
export interface Failure {
  /** What was wrong and what to do, for people. */
  readonly error: string;
  /** Error code, for programs. */
  readonly code: "INTERNAL" | "INTEGRITY" | "UNAVAILABLE";
  /** Identifies the request in the server's log. */
  readonly requestId: string;
  /** Which operation of a batch was refused, counted from 0. */
  readonly index?: number;
}

/** The results of a batch. */
export interface BatchResults {
  /** Always true; a failure has an error and a code instead. */
  readonly ok: true;
  /** One for each operation, in order: the secret of a get, or why it is refused; of a put, move or copy what was stored; of a delete a confirmation. */
  readonly results: readonly (Secret | Stored | Deleted | BatchRefusal)[];
}

/** Why a get of a batch without changes is refused. */
export interface BatchRefusal {
  /** Error code, for programs. */
  readonly code: "BAD_REQUEST" | "FORBIDDEN" | "NOT_FOUND" | "PRECONDITION_FAILED" | "INTEGRITY";
  /** What was wrong and what to do, for people. */
  readonly error: string;
}
