/** Replies of the key worker. Their bytes are moved to the main thread. */
import type { Bytes } from "./owned-bytes.js";

/** Why the key worker refuses. The text is for the client and never repeats any input. */
export type Refusal = {
  readonly ok: false;
  readonly code:
    | "ALREADY_EXISTS"
    | "BAD_REQUEST"
    | "INTEGRITY"
    | "INTERNAL"
    | "NOT_FOUND"
    | "RATE_LIMITED"
    | "UNAUTHORIZED"
    | "VAULT_LOCKED";
  readonly detail: string;
  /** Which operation of a batch is invalid. */
  readonly index?: number;
  /** For the log: the stack frames, without the error's message. */
  readonly trace?: string;
};

export type Done = { readonly ok: true };

/** `rotation`: names the rotation of the master key that the header is in; null when it is in none. */
export type Mounted = { readonly ok: true; readonly rotation: string | null };

/**
 * `blob` null: nothing of it was under the old key. Else the lengths of its head, and of its present. `intact`: every version
 * has metadata under either key, and a value where the old key sealed it.
 */
export type ResealReply = {
  readonly ok: true;
  readonly blob: Bytes | null;
  readonly intact: boolean;
  readonly headLength: number;
  readonly presentLength: number;
};

/** `header`: waits for `adopt` or `discard`. */
export type HeaderReply = { readonly ok: true; readonly header: Bytes; readonly reply: Bytes };

/** `headLength`: length of the blob's head, which holds all of its sealed metadata. */
export type SealReply = {
  readonly ok: true;
  readonly blob: Bytes;
  readonly headLength: number;
  readonly reply: Bytes;
};

/** `presentLength`: length of the blob without its earlier versions; that part alone opens, too. */
export type OpenReply = { readonly ok: true; readonly reply: Bytes; readonly presentLength: number };

/**
 * The replies one after the other, with the length of each, 0 for a damaged blob. One buffer for all: to move a buffer costs
 * more than to open a small blob.
 */
export type OpenManyReply = {
  readonly ok: true;
  readonly reply: Bytes;
  readonly lengths: readonly number[];
  readonly presentLengths: readonly number[];
};

export type DescribeReply = {
  readonly ok: true;
  readonly reply: Bytes;
  /** The reply, sealed; null when some of the blobs are damaged. */
  readonly page: Bytes | null;
  readonly damaged: readonly string[];
  /** The length of each blob's head; 0 when it is damaged. */
  readonly lengths: readonly number[];
};
