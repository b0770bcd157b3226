/** Options of the client's methods. */
import type { PutRequest } from "./api-types.js";
import type { PlaceOptions } from "./discovery.js";
import type { CallOptions } from "./request.js";

export type ClientOptions = PlaceOptions &
  Pick<CallOptions, "timeoutMs"> & {
    /**
     * Called once, when the client token has less than 7 days left. What it throws or rejects with becomes a warning of the
     * process (`StrongroomWarning`); the request succeeds all the same.
     */
    readonly onTokenExpiring?: ((expiresAt: Date) => void) | undefined;
  };

/** Kind of a secret. */
export type SecretType = NonNullable<PutRequest["type"]>;

/** Bytes must be UTF-8; the caller wipes them. */
export type Text = string | Uint8Array;

/** The condition of a change. When it does not hold, nothing changes and the method throws PRECONDITION_FAILED. */
export type ChangeOptions = CallOptions & {
  /** Only if the secret exists and still has this `etag`, as get, put and list return it; `*`: only if it exists. */
  readonly ifMatch?: string | undefined;
};

export type PutOptions = ChangeOptions & {
  /** Default: the present secret's; null for none. */
  readonly type?: SecretType | null | undefined;
  /** Default: the present secret's; null for none. */
  readonly description?: string | null | undefined;
  /** Only if there is no secret at this path. */
  readonly ifAbsent?: boolean | undefined;
  /** Do not keep the present type and description: store those given alone. */
  readonly replaceMetadata?: boolean | undefined;
};

export type ListOptions = CallOptions & {
  /** Only paths that start with this. */
  readonly prefix?: string | undefined;
  /** Only paths that sort after this one. */
  readonly after?: string | undefined;
  /** Maximum number of entries, 1 to 1000. */
  readonly limit?: number | undefined;
};
