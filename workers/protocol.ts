/**
 * Messages between the vault and the key worker.
 *
 * Errors do not cross threads, results do: each is a union with `ok`. The body of a write that is not shared and all bytes of
 * a response are moved: the sender must not touch them afterwards. Ciphertext in a request is copied.
 */
import type { OperationKind } from "./body-limits.js";
import type { WordSlots } from "./check/words.js";

/** Bytes whose memory is ours alone: not on V8's heap, not in Node's shared pool. They can be moved and wiped. */
export type Bytes = Uint8Array<ArrayBuffer>;

/**
 * A body with a passphrase or of a batch, in memory that both threads see, so that either can wipe it whatever becomes of
 * the other. A body that is moved or copied is lost unwiped when its message meets a thread that has crashed.
 */
export type SharedBytes = Uint8Array<SharedArrayBuffer>;

/**
 * The first bytes of a blob, with all of its sealed metadata, as a string of one character a byte: strings are cheaper to
 * keep and to send than small buffers. Empty: the file is no blob.
 */
export type Head = string;

/** The first bytes of a blob, at least 9 if it has them, and its length. */
export type BlobOutline = { readonly head: Bytes; readonly length: number };

/** A fault of a blob's structure. */
export type BlobFault = "foreign" | "version" | "length";

/**
 * Operations of the key worker.
 *
 * - `load` sets the vault's header, or null before init; the first message to every new thread. An invalid header is
 *   refused, and leaves the thread without one: it opens and seals nothing until the next `load`.
 * - `init` makes a new vault that waits, unused, for `adopt` (it is on disk) or `discard` (it is not).
 * - `unlock` derives, checks the passphrase and holds the master key. A header with the passphrase's slot wrapped again, at
 *   the cost `logN`, when the slot's is below, waits for `adopt` or `discard`.
 * - `keys` lists the slots of the header; `changePassphrase`, `createKey` and `deleteKey` make a header with another slot or
 *   without one, which waits for `adopt` or `discard`.
 * - `rotate` makes a header with a new master key, and the old one sealed under it, which waits as well; `reseal` seals again
 *   what is in a blob under the old key, and `finishRotation` makes the header without that key.
 * - `lock` signs the audit log's last checkpoint, if it has one, then wipes the master key and cancels waiting derivations.
 *   What was sent before it, needs the key and has not begun is refused as locked. `drain` responds when no derivation is
 *   running any more.
 * - `inspect` checks the structure of blobs by their first bytes and lengths, without a key.
 * - `write` makes a new blob of the one at a path: see `Write`. A write that keeps its versions refuses a damaged blob.
 *   `reread`: it was read again and found so, and may be written as it is.
 * - `open` and `describe` turn a blob into a get's response, and blobs into list entries. `open` is packed: see `Call`.
 *   `assess` judges values.
 * - `describeUses` lists the hosts that secrets may be used for, and `render` makes the head of a request to one of them, with
 *   the secret in it.
 * - Where `render` lacks a token, `startExchange` makes the request for one, with null where there is no refresh token, and the
 *   write `takeToken` takes it from the response. Where it lacks the store of a refresh token, `storeRefreshToken` comes first.
 *   `reviewTokens` ends tokens of a secret that has changed; null: it is gone.
 * - `startLogin` makes the request for a first refresh token, from a body with the code of a login, and the write `takeLogin`
 *   takes it from the response.
 * - `readDecision` reads the body of an approval, which may hold a passphrase that `unlock` checks.
 * - `history`, `openVersion` list the versions in a blob, and open one.
 * - `kvRead` is a read of Vault's KV engine, `kvMetadata` shows the settings of a secret, and `kvVersions` reads numbers of
 *   versions from a body.
 * - `plan` checks a batch's body, and returns its operations without the values.
 * - `check` opens all versions in a blob, refuses when one is damaged, and says when the secret expires.
 * - `createTransitKey`, `changeTransitKey` seal a transit key, new, with another version or setting; the body of a new key
 *   may bring its material. `showTransitKey`, `listTransitKeys` show what is not secret, `exportTransitKey` the private part
 *   only of an exportable key. `checkTransitDeletion` refuses where the key must not be deleted.
 * - `useTransitKey` encrypts, signs and so on; a null blob: there is no such key, which it says of a valid body. A null
 *   response: more messages of the versions in `lacking` must be reserved first, by storing the blob that `reserveMessages`
 *   makes.
 * - `randomBytes`, `hashBytes` and `oneTimeCode` make random bytes, a hash, and the current code of a secret that is a TOTP seed.
 * - `signRecords`, `verifyRecords` make and check the MACs of records that the vault keeps in the clear; `resignRecords` makes
 *   the MACs of a rotation that waits for `adopt`.
 * - `signCheckpoint`, `verifyCheckpoints` make and check the MACs of the audit log's checkpoints.
 */
interface Operations {
  load: { request: { op: "load"; header: Bytes | null }; response: Loaded | Refusal };
  init: {
    request: { op: "init"; body: SharedBytes; logN: number; now: number };
    response: { readonly ok: true; readonly header: Bytes } | Refusal;
  };
  adopt: { request: { op: "adopt" }; response: Loaded | Refusal };
  discard: { request: { op: "discard" }; response: Done };
  unlock: {
    /** `forVault`: the passphrase, or the text of a key, is the field `key` of the body, as Vault's clients send it. */
    request: { op: "unlock"; body: SharedBytes; logN?: number; forVault?: boolean };
    response: { readonly ok: true; readonly response: Bytes; readonly header: Bytes | null } | Refusal;
  };
  keys: { request: { op: "keys" }; response: { readonly ok: true; readonly response: Bytes } | Refusal };
  changePassphrase: {
    request: { op: "changePassphrase"; body: SharedBytes; logN: number; now: number };
    response: HeaderResult | Refusal;
  };
  createKey: { request: { op: "createKey"; body: SharedBytes; now: number }; response: HeaderResult | Refusal };
  deleteKey: { request: { op: "deleteKey"; id: string }; response: HeaderResult | Refusal };
  rotate: { request: { op: "rotate"; body: SharedBytes; logN: number }; response: HeaderResult | Refusal };
  reseal: {
    request: { op: "reseal"; path: string; blob: Bytes; isKey?: boolean };
    response: ResealResult | Refusal;
  };
  finishRotation: {
    request: { op: "finishRotation"; rotation: string };
    response: { readonly ok: true; readonly header: Bytes } | Refusal;
  };
  lock: {
    request: { op: "lock"; checkpoint?: string };
    response: { readonly ok: true; readonly signed: CheckpointSignature | null };
  };
  drain: { request: { op: "drain" }; response: Done };
  inspect: {
    request: { op: "inspect"; blobs: readonly BlobOutline[] };
    response: { readonly ok: true; readonly faults: readonly (BlobFault | null)[] };
  };
  write: {
    request: {
      op: "write";
      path: string;
      /** The blob at the path, or the head that a put needs where no history is kept; null: there is none. */
      previous: Bytes | Head | null;
      reread: boolean;
    } & Write;
    response: WriteResult | Refusal;
  };
  plan: {
    request: { op: "plan"; body: SharedBytes };
    response: { readonly ok: true; readonly operations: readonly PlannedOperation[] } | Refusal;
  };
  open: {
    /** `forVault`: the response is `data` of a read of Vault's KV engine. */
    request: { op: "open"; path: string; blob: Bytes; forVault?: boolean };
    response: OpenResult | Refusal;
  };
  history: {
    request: { op: "history"; path: string; blob: Bytes };
    response: { readonly ok: true; readonly response: Bytes } | Refusal;
  };
  openVersion: {
    request: { op: "openVersion"; path: string; blob: Bytes; version: number };
    response: { readonly ok: true; readonly response: Bytes } | Refusal;
  };
  kvRead: {
    /** `version` null: the current one. `subkeys`: the depth to which keys are shown without values; null: the value. */
    request: { op: "kvRead"; path: string; blob: Bytes; version: number | null; subkeys: number | null };
    response: { readonly ok: true; readonly status: 200 | 404; readonly response: Bytes } | Refusal;
  };
  kvMetadata: { request: { op: "kvMetadata"; path: string; blob: Bytes }; response: JsonResult | Refusal };
  kvVersions: {
    request: { op: "kvVersions"; body: SharedBytes };
    response: { readonly ok: true; readonly versions: readonly number[] } | Refusal;
  };
  check: {
    request: { op: "check"; path: string; blob: Bytes; isKey?: boolean };
    /** Milliseconds since 1970; null for a secret that does not expire. */
    response: { readonly ok: true; readonly expiresAt: number | null } | Refusal;
  };
  describeUses: {
    request: { op: "describeUses"; paths: readonly string[]; heads: readonly Head[] };
    response: { readonly ok: true; readonly uses: readonly (readonly Binding[])[] } | Refusal;
  };
  readDecision: {
    request: { op: "readDecision"; body: SharedBytes };
    response:
      | {
          readonly ok: true;
          readonly approve: boolean;
          readonly duration: number | "request" | "session";
          readonly hasPassphrase: boolean;
        }
      | Refusal;
  };
  render: {
    request: { op: "render"; path: string; blob: Bytes } & RequestToRender;
    response:
      | { readonly ok: true; readonly head: Bytes }
      | { readonly ok: true; readonly head: null; readonly lacks: "token" | "store"; readonly etag: string }
      | Refusal;
  };
  startExchange: {
    request: { op: "startExchange"; path: string; blob: Bytes; host: string; port: number };
    response: StartedExchange | { readonly ok: true; readonly request: null; readonly etag: string } | Refusal;
  };
  startLogin: {
    request: { op: "startLogin"; path: string; blob: Bytes; host: string; port: number; body: SharedBytes };
    response: StartedExchange | Refusal;
  };
  reviewTokens: {
    request: { op: "reviewTokens"; path: string; blob: Bytes | null };
    response: Done | Refusal;
  };
  describe: {
    /** `deletedAt`: milliseconds since 1970, of secrets in the trash. */
    request: {
      op: "describe";
      paths: readonly string[];
      heads: readonly Head[];
      deletedAt?: readonly number[];
    };
    response: DescribeResult | Refusal;
  };
  assess: {
    request: {
      op: "assess";
      secrets: readonly { readonly path: string; readonly blob: Bytes }[];
      /** The caller's, for digests. */
      key: Bytes;
      parts: readonly AssessPart[];
      words: WordSlots;
    };
    /** `response`: list entries, separated by commas. `damaged`: paths of secrets that do not open. */
    response: { readonly ok: true; readonly response: Bytes; readonly damaged: readonly string[] } | Refusal;
  };
  createTransitKey: {
    request: {
      op: "createTransitKey";
      name: string;
      exists: boolean;
      body: SharedBytes;
      now: number;
      form?: VaultForm;
    };
    response: SealResult | Refusal;
  };
  changeTransitKey: {
    request: {
      op: "changeTransitKey";
      change: "rotate" | "config";
      name: string;
      blob: Bytes;
      body: SharedBytes;
      now: number;
      form?: VaultForm;
    };
    response: SealResult | Refusal;
  };
  showTransitKey: {
    request: { op: "showTransitKey"; name: string; blob: Bytes; form?: VaultForm };
    response: JsonResult | Refusal;
  };
  exportTransitKey: {
    request: { op: "exportTransitKey"; name: string; blob: Bytes; form?: VaultForm };
    response: JsonResult | Refusal;
  };
  checkTransitDeletion: {
    request: { op: "checkTransitDeletion"; name: string; blob: Bytes; form?: VaultForm };
    response: Done | Refusal;
  };
  listTransitKeys: {
    request: { op: "listTransitKeys"; names: readonly string[]; heads: readonly Head[] };
    response: DescribeResult | Refusal;
  };
  useTransitKey: {
    request: {
      op: "useTransitKey";
      use: TransitUse;
      name: string;
      blob: Bytes | null;
      body: Bytes | SharedBytes;
      form?: VaultForm;
    };
    response:
      | { readonly ok: true; readonly response: Bytes; readonly status?: number }
      | { readonly ok: true; readonly response: null; readonly lacking: readonly number[] }
      | Refusal;
  };
  reserveMessages: {
    request: { op: "reserveMessages"; name: string; blob: Bytes; versions: readonly number[] };
    response: { readonly ok: true; readonly blob: Bytes } | Refusal;
  };
  randomBytes: { request: { op: "randomBytes"; body: SharedBytes; form?: VaultForm }; response: JsonResult | Refusal };
  hashBytes: { request: { op: "hashBytes"; body: SharedBytes; form: VaultForm }; response: JsonResult | Refusal };
  oneTimeCode: {
    request: { op: "oneTimeCode"; path: string; blob: Bytes; now: number };
    response: JsonResult | Refusal;
  };
  signRecords: {
    request: { op: "signRecords"; texts: readonly string[] };
    response: { readonly ok: true; readonly macs: readonly string[] } | Refusal;
  };
  verifyRecords: {
    request: { op: "verifyRecords"; texts: readonly string[]; macs: readonly string[] };
    response: { readonly ok: true; readonly valid: readonly boolean[] } | Refusal;
  };
  resignRecords: {
    request: { op: "resignRecords"; texts: readonly string[]; macs: readonly string[] };
    response: { readonly ok: true; readonly macs: readonly (string | null)[] } | Refusal;
  };
  signCheckpoint: {
    request: { op: "signCheckpoint"; text: string };
    response: ({ readonly ok: true } & CheckpointSignature) | Refusal;
  };
  verifyCheckpoints: {
    request: { op: "verifyCheckpoints"; checkpoints: readonly SignedCheckpoint[] };
    response: { readonly ok: true; readonly verdicts: readonly CheckpointVerdict[] } | Refusal;
  };
}

/**
 * Changes that make a new blob of the blob at their path. `put`, `undo` and `changeMetadata` make the next version, of
 * a body, of a kept version, and with other metadata; `kvWrite` is a put of Vault's KV engine, and `kvConfigure`
 * changes the settings of a secret. `prune` removes the earlier versions, `changeVersions` destroys versions, marks
 * them as deleted, or removes that mark. `setUses` changes the hosts that a secret may be used for. `takeToken` and
 * `storeRefreshToken` make a version where a refresh token was rotated, `takeLogin` where a login has brought one. `move` and
 * `copy` seal it for another path.
 */
interface Writes {
  put: { readonly body: Bytes | SharedBytes };
  undo: { readonly body: Bytes | SharedBytes };
  changeMetadata: { readonly body: Bytes | SharedBytes };
  kvWrite: { readonly body: Bytes | SharedBytes; readonly isPatch: boolean };
  kvConfigure: { readonly body: Bytes | SharedBytes; readonly isPatch: boolean };
  prune: object;
  changeVersions: {
    readonly versions: readonly number[] | "current";
    readonly change: VersionChange;
    readonly mayDestroyCurrent: boolean;
  };
  setUses: { readonly add: Binding | null; readonly removeHost: string | null };
  takeToken: TakenResponse;
  takeLogin: TakenResponse;
  storeRefreshToken: object;
  move: { readonly to: string };
  copy: { readonly to: string };
}

export type WriteKind = keyof Writes;
export type WriteOf<K extends WriteKind> = { readonly kind: K } & Writes[K];
export type Write = { readonly [K in WriteKind]: WriteOf<K> }[WriteKind];

export type VersionChange = "destroy" | "delete" | "undelete";

/**
 * A request of one of Vault's clients, and its result, are in Vault's form. `name`: what the client calls the key; `given`: fields
 * from the URL, by our names.
 */
export type VaultForm = { readonly name: string; readonly given: Readonly<Record<string, string>> };

/** The judgements of a value: see operations/assess.ts. */
export const assessParts = ["strength", "reuse", "search", "breach"] as const;
export type AssessPart = (typeof assessParts)[number];

/** The uses of a transit key. */
export type TransitUse = "encrypt" | "decrypt" | "unwrap" | "rewrap" | "sign" | "verify" | "hmac" | "datakey";

/** The JSON that a client gets. */
export type JsonResult = { readonly ok: true; readonly response: Bytes };

/** `key`: the name of the key that made the MAC. */
export type CheckpointSignature = { readonly key: string; readonly mac: string };
export type SignedCheckpoint = CheckpointSignature & { readonly text: string };

/** `unknown`: made under a key that this vault does not have, or has no more. */
export type CheckpointVerdict = "valid" | "wrong" | "unknown";

/** An operation of a batch; `start` and `end` say where in the body it is. The paths are not checked yet. */
export type PlannedOperation = {
  readonly kind: OperationKind;
  readonly path: string;
  /** Target of a move or copy. */
  readonly to: string | null;
  /** Whether a secret at the target goes to the trash. */
  readonly trashReplaced: boolean;
  readonly ifMatch: string | null;
  readonly ifNoneMatch: string | null;
  readonly start: number;
  readonly end: number;
};

/**
 * One message to the key worker: the requests of one turn of the event loop, in order, and after them the opens, packed in
 * one moved buffer each way. To clone an open as an object costs more than to open it. A tuple, because the names of an
 * object's members would be written and looked up with each message. `now`: milliseconds since 1970.
 *
 *   opens, each: form (1): 0, or 1 for Vault's ‖ p, length of the path (4, big endian) ‖ b, length of the blob (4) ‖
 *     path (p, UTF-8) ‖ blob (b)
 */
export type Call = readonly [id: number, now: number, requests: readonly ClonedRequest[] | null, opens: Bytes | null];

/** The responses to the requests, in the same order, and the results of the opens. */
export type CallResult = readonly [id: number, responses: readonly Result[] | null, ...opened: Opened | NoneOpened];
type NoneOpened = readonly [bytes: null, refusals: null];

/**
 * Results of packed opens.
 *
 *   bytes, each: r, length of the response (4, big endian) ‖ current length (4) ‖ etag (16, ASCII) ‖ response (r); nothing for one
 *   that is refused
 *
 * refusals: by their place in the message; null when there are none, since a map takes as long to pass as a response.
 */
export type Opened = readonly [bytes: Bytes, refusals: ReadonlyMap<number, Refusal> | null];

export type Operation = keyof Operations;
export type RequestOf<O extends Operation> = Operations[O]["request"];
export type ResultOf<O extends Operation> = Operations[O]["response"];
export type Request = RequestOf<Operation>;
export type OpenRequest = RequestOf<"open">;
export type ClonedRequest = Exclude<Request, OpenRequest>;
export type Result = ResultOf<Operation>;

/** Why the key worker refuses. The text is for the client and never repeats any input. */
export type Refusal = {
  readonly ok: false;
  readonly code:
    | "ALREADY_EXISTS"
    | "BAD_REQUEST"
    | "FORBIDDEN"
    | "INTEGRITY"
    | "INTERNAL"
    | "NOT_FOUND"
    | "RATE_LIMITED"
    | "UNAUTHORIZED"
    | "VAULT_LOCKED";
  readonly detail: string;
  /** Which operation of a batch is invalid. */
  readonly index?: number;
  /** Stack frames for the log, without the error's message. */
  readonly trace?: string;
};

export type Done = { readonly ok: true };

/** `rotation`: names the rotation of the master key that the header is in; null when it is in none. */
export type Loaded = { readonly ok: true; readonly rotation: string | null };

/**
 * `blob` null: nothing of it was under the old key. `currentLength`: of its current version. `intact`: every version has
 * metadata under either key, and a value where the old key sealed it.
 */
export type ResealResult = {
  readonly ok: true;
  readonly blob: Bytes | null;
  readonly intact: boolean;
  readonly currentLength: number;
};

/** One of the vault's ways in, as `keys` lists it. */
export type KeyDescription = { readonly id: string; readonly kind: "passphrase" | "key"; readonly label: string };

/** `header`: waits for `adopt` or `discard`. `key`: the created or deleted key. */
export type HeaderResult = {
  readonly ok: true;
  readonly header: Bytes;
  readonly response: Bytes;
  readonly key?: KeyDescription;
};

/** The write changes nothing. */
export type Unchanged = { readonly ok: true; readonly blob: null };

/** `removed`: how many versions a `prune` removes. `problem`: why `takeToken` or `takeLogin` has found no token. */
export type WriteResult = (SealResult | Unchanged) & { readonly removed?: number; readonly problem?: LoginProblem };

export type SealResult = {
  readonly ok: true;
  readonly blob: Bytes;
  readonly response: Bytes;
  readonly etag: string;
};

/** `currentLength`: length of the blob without its earlier versions; that part alone also opens. */
export type OpenResult = {
  readonly ok: true;
  readonly response: Bytes;
  readonly etag: string;
  readonly currentLength: number;
};

export type DescribeResult = {
  readonly ok: true;
  readonly response: Bytes;
  readonly damaged: readonly string[];
};

/**
 * Earlier versions that a put keeps: at most `keepVersions` and, except for the newest, within `keepVersionBytes` of
 * ciphertext in all.
 */
export type HistoryLimits = { readonly keepVersions: number; readonly keepVersionBytes: number };

/** Passed once, when a thread starts. */
export type WorkerSettings = HistoryLimits & {
  readonly maxValueBytes: number;
  /** DANGER: only for tests. Headers with a scrypt cost down to this are accepted; absent, 14 is the minimum. */
  readonly minScryptLogN?: number;
};

/**
 * How many locks the main thread has sent, one number in memory that both threads see: so the key worker knows of a lock
 * before the messages in front of it are read.
 */
export type SentLocks = Int32Array<SharedArrayBuffer>;

/** The start of a thread: its end of the message channel, its settings and its locks. */
export type WorkerStart<Port> = {
  readonly port: Port;
  readonly settings: WorkerSettings;
  readonly sentLocks: SentLocks;
};

/** A host that requests with a secret may go to, sealed with its metadata. See the schema `Use` in openapi.yaml. */
export type Binding = ComputedMembers & {
  readonly host: string;
  readonly port: number;
  /** The header's name, in lower case. */
  readonly header: string;
  /** `{}` stands for the value; null with `basic`, a user's name, and where the head is signed. */
  readonly format: string | null;
  readonly basic: string | null;
  /** Null: all. */
  readonly methods: readonly string[] | null;
  readonly paths: readonly string[] | null;
  readonly ask: string;
  readonly private: boolean;
  readonly name: string | null;
};

/** One member, which says how a credential is computed from the value. */
export type ComputedMembers = {
  readonly githubApp?: {
    readonly appId: string;
    readonly installation: string;
    /** URL of the API, where it is not the usual one of the host. */
    readonly api?: string;
  };
  readonly oauth?: { readonly tokenUrl: string; readonly clientId: string; readonly scope?: string };
  readonly sigv4?: { readonly service: string; readonly region: string };
};

/** Why no token was issued. `reauthorize`: the refresh token is not valid, so that a person has to get another one. */
export type TokenProblem = "exchange" | "reauthorize";

/** Why a login has brought no refresh token. `pending`: the person has not decided; `slow-down`: and is asked about too often. */
export type LoginProblem = TokenProblem | "pending" | "slow-down" | "denied" | "not-lasting" | "changed";

/** `request`: for a token, to this host and port. */
type StartedExchange = {
  readonly ok: true;
  readonly request: Bytes;
  readonly host: string;
  readonly port: number;
  readonly allowsPrivate: boolean;
  readonly etag: string;
};

/** A response of a token endpoint. `host`, `port`: of the binding; `etag`: of the secret for which the request was made. */
type TakenResponse = {
  readonly body: Bytes | SharedBytes;
  readonly host: string;
  readonly port: number;
  readonly etag: string;
  readonly status: number;
};

/**
 * `fields`: header lines, each ended by CR LF, from the broker's reader of heads. `payloadHash`: SHA-256 of the body in hex; null
 * where it was not read.
 */
export type RequestToRender = {
  readonly host: string;
  readonly port: number;
  readonly method: string;
  readonly target: string;
  readonly fields: Bytes;
  readonly payloadHash: string | null;
};
