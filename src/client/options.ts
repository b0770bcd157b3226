/** Options of the client's methods. Their types need no types of Node, like those of the whole package. */
import type { CheckRequest, PutRequest, TokenRequest } from "./api-types.js";
import type { PlaceOptions } from "./discovery.js";
import type { StrongroomError } from "./errors.js";

export type CallOptions = {
  /** Cancels the request, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds for each request, from finding the server to the last byte of the response, including a second attempt.
   * Default: 30,000. 0, or more than 2,147,483,647 (about 25 days): no limit.
   */
  readonly timeoutMs?: number | undefined;
};

export type ClientOptions = PlaceOptions &
  Pick<CallOptions, "timeoutMs"> & {
    /**
     * Most bytes of a response; a larger one throws PROTOCOL, and the rest is not read. Default: 536,870,888, the longest
     * string of Node. Responses that only say what was done, and refusals, have at most 1 MiB.
     */
    readonly maxResponseBytes?: number | undefined;

    /**
     * Called once, when the client token expires within 7 days. If it throws or rejects, the process emits a
     * `StrongroomWarning`; the request still succeeds.
     */
    readonly onTokenExpiring?: ((expiresAt: Date) => void) | undefined;

    /**
     * Called when requests are refused because the vault is locked, once for all that wait. Return true when it is unlocked:
     * they are sent again, once. After false, or an error, which the requests then throw, it is not called again.
     */
    readonly onLocked?: ((refusal: StrongroomError) => Promise<boolean>) | undefined;
  };

/** Kind of a secret. */
export type SecretType = NonNullable<PutRequest["type"]>;

/** Text, or its bytes in UTF-8. Bytes stay the caller's to wipe; a string cannot be wiped. */
export type Text = string | Uint8Array;

/** Texts that programs store with a secret, at most 64, 16 KiB in all. */
export type Custom = Readonly<Record<string, string>>;

/** Condition of a change. If it does not hold, nothing changes and the method throws PRECONDITION_FAILED. */
export type ChangeOptions = CallOptions & {
  /** The secret must still have this `etag`, as get, put and list return it. `*`: it must exist. */
  readonly ifMatch?: string | undefined;
};

export type PutOptions = ChangeOptions & {
  /** Default: the current type. null: no type. */
  readonly type?: SecretType | null | undefined;
  /** For people. Default: the current description. null: no description. */
  readonly description?: string | null | undefined;
  /** When the value expires, as a reminder. Default: the current time of expiry. null: none. */
  readonly expiresAt?: Date | string | null | undefined;
  /** Texts for programs. Default: the current texts. null: none. */
  readonly custom?: Custom | null | undefined;
  /** The value is base64 of a binary value. Default: it is text. */
  readonly encoding?: "base64" | undefined;
  /** There must be no secret at the path. Default: false. */
  readonly ifAbsent?: boolean | undefined;
  /** Store only the given metadata, and drop the current. Default: false. */
  readonly replaceMetadata?: boolean | undefined;
};

/** Members that are not given stay; null removes a member. */
export type MetadataChange = {
  readonly type?: SecretType | null | undefined;
  /** For people. */
  readonly description?: string | null | undefined;
  /** When the value expires, as a reminder. */
  readonly expiresAt?: Date | string | null | undefined;
  /** Texts for programs, in place of all that are there. */
  readonly custom?: Custom | null | undefined;
};

export type ListOptions = CallOptions & {
  /** Only paths that start with this text. Default: all. */
  readonly prefix?: string | undefined;
  /** Only paths that sort after this one. Default: from the first. */
  readonly after?: string | undefined;
  /** Most entries to return, 1 to 1000. Default: all; of `pages`, 100. */
  readonly limit?: number | undefined;
  /** The list does not count as activity, so it does not delay the lock after idle time. For looking for changes. */
  readonly background?: true | undefined;
};

export type CheckOptions = Omit<ListOptions, "background"> & {
  /** Parts of the report on each value. Default: strength and reuse. */
  readonly parts?: CheckRequest["parts"] | undefined;
};

export type CreateTokenOptions = CallOptions & {
  /** Scopes of the token. Default: list and get. */
  readonly can?: TokenRequest["can"] | undefined;
  /** Secrets, or subtrees, which end in a slash. Default: all. */
  readonly paths?: TokenRequest["paths"] | undefined;
  /** Seconds until the token expires. 0: never. Default: 7,776,000 (90 days). */
  readonly ttlSeconds?: number | undefined;
};

export type RotateTokenOptions = CallOptions & {
  /** Grace period for the old value, in seconds. Default: 0. */
  readonly overlapSeconds?: number | undefined;
};

export type AuditOptions = CallOptions & {
  /** Only records with a higher number. Default: from the oldest. */
  readonly after?: number | undefined;
  /** Most records to return, 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
};
