/**
 * Owns the messages between the vault and the key worker: types only, nothing that runs.
 *
 * Errors do not cross threads, replies do: every answer is a union that says `ok` first. A request's body and all bytes
 * of a reply are moved: the sender must not touch them afterwards. Ciphertext that is asked about is copied.
 */

/** Bytes whose memory is ours alone: not on V8's heap, not in Node's shared pool. They can be moved and wiped. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** Why the key worker refuses. The texts are written for the client and never repeat any input. */
export type Refusal = {
  readonly ok: false;
  readonly code:
    | "ALREADY_EXISTS"
    | "BAD_REQUEST"
    | "INTEGRITY"
    | "INTERNAL"
    | "RATE_LIMITED"
    | "UNAUTHORIZED"
    | "VAULT_LOCKED";
  readonly detail: string;
  /** For the log: where it was thrown, and nothing of what was said. */
  readonly trace?: string;
};

export type Done = { readonly ok: true };

/**
 * The beginning of a blob, long enough to hold all of its sealed metadata, as a string of one character a byte: strings
 * are cheaper to keep and to send than small buffers. Empty: what is there is no blob.
 */
export type Head = string;

/** What can be known of a blob without reading all of it: its first bytes, at least 9 if it has them, and its length. */
export type BlobOutline = { readonly head: Bytes; readonly length: number };

/** What is wrong with a blob's structure. */
export type BlobFault = "foreign" | "version" | "length";

/**
 * What the key worker does.
 *
 * - `mount` gives it the vault's header (or none); first message to every fresh thread.
 * - `init` makes a new vault that waits, unused, until `adopt` (it is on disk) or `discard` (it is not).
 * - `unlock` derives, checks the passphrase and holds the master key.
 * - `lock` wipes the master key and answers once no derivation runs any more.
 * - `inspect` judges blobs by their beginnings and lengths, without any key.
 * - `seal`, `open`, `describe` turn a put's body into a blob, a blob into a get's reply, and blobs into list entries.
 * - `reveal` turns a page, list entries that `describe` has sealed together, into these entries again.
 */
export interface Operations {
  mount: { request: { op: "mount"; header: Bytes | null }; reply: Done | Refusal };
  init: {
    request: { op: "init"; body: Bytes; logN: number; now: number };
    reply: { readonly ok: true; readonly header: Bytes } | Refusal;
  };
  adopt: { request: { op: "adopt" }; reply: Done | Refusal };
  discard: { request: { op: "discard" }; reply: Done };
  unlock: { request: { op: "unlock"; body: Bytes }; reply: { readonly ok: true; readonly reply: Bytes } | Refusal };
  lock: { request: { op: "lock" }; reply: Done };
  inspect: {
    request: { op: "inspect"; blobs: readonly BlobOutline[] };
    reply: { readonly ok: true; readonly faults: readonly (BlobFault | null)[] };
  };
  seal: {
    request: { op: "seal"; path: string; body: Bytes; previous: Head | null; now: number };
    reply: SealReply | Refusal;
  };
  open: {
    request: { op: "open"; path: string; blob: Bytes };
    reply: { readonly ok: true; readonly reply: Bytes } | Refusal;
  };
  describe: {
    request: { op: "describe"; paths: readonly string[]; heads: readonly Head[] };
    reply: DescribeReply | Refusal;
  };
  reveal: {
    request: { op: "reveal"; page: Bytes };
    reply: { readonly ok: true; readonly reply: Bytes } | Refusal;
  };
}

/** `headLength`: how much from the blob's beginning holds all of its sealed metadata. */
export type SealReply = {
  readonly ok: true;
  readonly blob: Bytes;
  readonly headLength: number;
  readonly reply: Bytes;
};

export type DescribeReply = {
  readonly ok: true;
  readonly reply: Bytes;
  /** The reply, sealed; null when it is not all that was asked for. */
  readonly page: Bytes | null;
  readonly damaged: readonly string[];
  /** Of each blob, how much from its beginning holds all of its sealed metadata; 0 when it is damaged. */
  readonly lengths: readonly number[];
};

/** What goes over to the key worker at once: requests that reached the same turn of the event loop, in their order. */
export type Call = { readonly id: number; readonly requests: readonly Request[] };

/** Their replies, in the same order. */
export type Answer = { readonly id: number; readonly replies: readonly Reply[] };

export type Operation = keyof Operations;
export type RequestOf<O extends Operation> = Operations[O]["request"];
export type ReplyOf<O extends Operation> = Operations[O]["reply"];
export type Request = RequestOf<Operation>;
export type Reply = ReplyOf<Operation>;

/** What a fresh key worker is told once, when its thread starts. */
export type WorkerSettings = {
  readonly maxValueBytes: number;
  /** DANGER: for tests alone. Headers with a scrypt cost down to this are accepted; absent, 14 is the minimum. */
  readonly minScryptLogN?: number;
};

/** What a fresh thread is started with: its end of the message channel, and its settings. */
export type WorkerStart<Port> = { readonly port: Port; readonly settings: WorkerSettings };
