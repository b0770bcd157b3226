/** Types of an endpoint: its row, the arguments of its handler, and the handler's results. */

import type { KeyDescription } from "../../workers/protocol.js";
import type { Caller, Credentials } from "../access/credentials.js";
import type { Lockout } from "../access/lockout.js";
import type { ReviewAccess } from "../access/review.js";
import type { RootRotation } from "../access/root-token.js";
import type { Need } from "../access/scopes.js";
import type { ClientTokens } from "../access/tokens.js";
import type { AuditLog } from "../audit/audit-log.js";
import type { AuditVerdict } from "../audit/check.js";
import type { AuditedEvent } from "../audit/record.js";
import type { Broker } from "../broker/broker.js";
import { VaultError } from "../errors.js";
import type { LastProve } from "../last-prove.js";
import type { Log } from "../log.js";
import type { BatchItem } from "../observer.js";
import { parseSecretPath } from "../paths/secret-path.js";
import type { Condition, Permit, TaggedResponse, Tags } from "../vault/conditions.js";
import type { ListPart } from "../vault/list.js";
import type { Vault } from "../vault/vault.js";
import type { Vitals } from "../vitals.js";

export type Service = {
  readonly vault: Vault;
  readonly log: Log;
  readonly credentials: Credentials;
  readonly tokens: ClientTokens;
  /** Null: there is none. */
  readonly audit: AuditLog | null;
  readonly rootRotation: RootRotation;
  readonly tokenLockout: Lockout;
  readonly passphraseLockout: Lockout;
  /** Null: it is off. */
  readonly broker: Broker | null;
  readonly approveWith: "token" | "passphrase";
  readonly maxBodyBytes: number;
  readonly maxBatchBytes: number;
  /** The OpenAPI document. */
  readonly contract: () => string;
  /** Returns the metrics in Prometheus' text format. */
  readonly scrape: () => Promise<string>;
  /** The program's. */
  readonly version: string;
  /** The listening port. */
  readonly port: number;
  /** Path of the Unix socket; null without one. */
  readonly socket: string | null;
  /** Port of the API for Vault's clients. Null: it is off. */
  readonly vaultPort: number | null;
  /** Null: the review page is off. */
  readonly review: ReviewAccess | null;
  readonly vitals: Vitals;
  /** Result that `strongroom prove` left in the home; null before its first run. */
  readonly lastProve: () => Promise<LastProve | null>;
  /** Checks the audit log; null when it is off, empty, unreadable, or too long to be checked while the server works. */
  readonly checkAuditLog: () => Promise<AuditVerdict | null>;
  /** Certificate for new connections. `endsAt`: in milliseconds since 1970. */
  readonly certificate: { readonly endsAt: number };
  readonly stopSignal: AbortSignal;
  /** Begins the shutdown, after the response was sent. */
  readonly shutDown: () => void;
};

/** A row of GET serves HEAD too. */
type Method = "GET" | "LIST" | "PUT" | "POST" | "PATCH" | "DELETE";

/** `authority` is set only in absolute form (`GET https://host/path`), where it replaces `Host`. */
export type Target = { readonly path: string; readonly query: string; readonly authority: string | null };

/** Reader of the parameter in an endpoint's path; handlers get `Given`. */
export type Subject<Given extends object = object> = {
  /** `parameter`: the raw text; "" for a path without one. @throws VaultError BAD_REQUEST */
  read(parameter: string, target: Target): Given;
  /** Returns the canonical path that is recorded, and that the caller's token must reach; null when there is none. */
  auditPath(given: Given): string | null;
};

/** The body of an endpoint's requests. */
export type BodyRule<Memory extends ArrayBufferLike = ArrayBufferLike> = {
  /** Content of the body. The connection of a `passphrase` closes after the response where it keeps plaintext. */
  readonly called: "value" | "fields" | "passphrase" | "batch" | "input";
  readonly memory: (length: number) => Uint8Array<Memory>;
  /** Returns the most bytes that are read. */
  limit(service: Service, caller: Caller | null): number;
};

/** `change`: handlers get If-Match and If-None-Match; `read`: they get If-None-Match. */
type Conditional = "change" | "read" | false;

/** Facts about a request's work for its report. Handlers write them. */
export interface Recorded {
  /** Whose token was accepted; of a login, whose credential. */
  caller: Caller | null;
  /** The name of a client token. */
  subject: string | null;
  key: KeyDescription | null;
  version: number | null;
  prefix: string | null;
  count: number | null;
  operations: BatchItem[] | null;
}

/** Arguments of every handler. */
export type BasicCall = {
  readonly service: Service;
  readonly vault: Vault;
  /** Throws when the request must no longer be carried out. Call it in the turn of a change, and between parts of a long read. */
  readonly permit: Permit;
  /** Facts about the request for the audit log and the metrics. */
  readonly recorded: Recorded;
};

type OfBody<Body> = Body extends BodyRule<infer Memory> ? { readonly body: Uint8Array<Memory> } : object;
type OfCondition<C> = C extends "change"
  ? { readonly condition: Condition }
  : C extends "read"
    ? { readonly unless: Tags | null }
    : object;
type OfScope<Scope> = Scope extends "open" | "login" ? object : { readonly caller: Caller; readonly presented: string };
type OfQuery<Query> = unknown extends Query ? object : { readonly query: Query };

type Call<Scope, Given, Body, C, Query> = BasicCall &
  Given &
  OfScope<Scope> &
  OfBody<Body> &
  OfCondition<C> &
  OfQuery<Query>;

type Row<Operation, Scope, Given extends object, Body, C, Query> = {
  /** Its name; of the native API, the operation in openapi.yaml. */
  readonly operation: Operation;
  /**
   * Method and path. The path may have one parameter (`:name`), which may contain slashes. A query (`?version`) gives the
   * requests with this parameter a row of their own.
   */
  readonly at: `${Method} /v1/${string}`;
  /** Scope that the caller's token needs. */
  readonly scope: Scope;
  /**
   * `unlocked`: works on secrets or keys, so it is refused while the vault is locked or the audit log must not miss it, and
   * counts as activity. `background`: the same, but no activity. `key`: needs the unlocked vault for something else.
   * `genuine`: a client token needs a record that the vault's key has checked. `passphrase`: its body has a passphrase that is
   * checked, so wrong ones count towards the lockout.
   */
  readonly guard: "unlocked" | "background" | "key" | "genuine" | "passphrase" | "none";
  /** Its record in the audit log; null: it is not recorded. */
  readonly audit: AuditedEvent | null;
  readonly subject: Subject<Given>;
  /** Null: a body is not read. */
  readonly body: Body;
  readonly conditional: C;
  /** Reads the query. Without it, handlers get none. @throws VaultError BAD_REQUEST */
  readonly query?: (text: string) => Query;
  /** Whether the response shows what the caller's token must still be valid for when it leaves. */
  readonly reads: boolean;
  handle(
    call: Call<NoInfer<Scope>, NoInfer<Given>, NoInfer<Body>, NoInfer<C>, NoInfer<Query>>,
  ): Outcome | Promise<Outcome>;
};

/** Everything that is decided for an endpoint. Made by `endpoint`. */
export type Endpoint<Operation extends string = string> = Omit<
  Row<Operation, Need, object, BodyRule | null, Conditional, unknown>,
  "handle"
> & { handle(call: BasicCall): Outcome | Promise<Outcome> };

/** Types the handler by the other members of its row: what is forgotten does not compile. */
export function endpoint<
  const Operation extends string,
  const Scope extends Need,
  Given extends object,
  Body extends BodyRule | null,
  const C extends Conditional,
  Query = unknown,
>(row: Row<Operation, Scope, Given, Body, C, Query>): Endpoint<Operation> {
  return row;
}

export const none: Subject = { read: () => nothing, auditPath: () => null };
const nothing = {};

export const secret: Subject<{ readonly path: string }> = {
  read: (parameter) => ({ path: parseSecretPath(parameter) }),
  auditPath: ({ path }) => path,
};

/** A transit key. Its name is a path as secrets have them. */
export const key: Subject<{ readonly key: string }> = {
  read: (parameter) => ({ key: parseKeyName(parameter) }),
  auditPath: ({ key: name }) => name,
};

/** A client token. DANGER: not recorded before there is one; the text may be a token's value. */
export const token: Subject<{ readonly token: string }> = { read: (name) => ({ token: name }), auditPath: () => null };

/** A thing with an id that the server has given it: a key of the vault, or an approval. */
export const id: Subject<{ readonly id: string }> = { read: (text) => ({ id: text }), auditPath: () => null };

/** @throws VaultError BAD_REQUEST */
export function parseKeyName(parameter: string): string {
  const name = parseSecretPath(parameter);
  if (!/\/(?:rotate|config)$/.test(name)) return name;
  throw new VaultError("BAD_REQUEST", "the name of a transit key must not end in /rotate or /config");
}

// Results of handlers: the adapter sends each, and wipes it once it is sent or the client is gone.

/** A response of known length. */
export type Whole = {
  readonly status: number;
  /** None, where the status has no body: 204, 304. */
  readonly pieces: readonly Uint8Array[];
  /** ETag without quotes. */
  readonly etag?: string;
  /** Content type where it is not JSON in UTF-8. */
  readonly type?: string;
  /** Something was changed: the response leaves also when the token has ended since. */
  readonly isDone?: boolean;
  /** The response is the last of its connection. */
  readonly isLast?: boolean;
  /** Called once the response is on its way and the request is recorded. */
  readonly after?: () => void;
};

/** A list that is sent as it is read. */
export type Parts = { readonly parts: AsyncGenerator<ListPart, void, void> };

/** Lines that follow one by one, until the client has enough. */
export type Lines = {
  readonly type: string;
  /** Returns what ends them, called once. `end`: no line follows. */
  readonly lines: (send: (line: Uint8Array | string) => void, end: () => void) => () => void;
};

/** A file for browsers, which is no endpoint's. `policy`: its Content-Security-Policy. */
export type Page = { readonly type: string; readonly policy: string; readonly body: Uint8Array };

export type Outcome = Whole | Parts | Lines;

export function bytes(...pieces: readonly Uint8Array[]): Whole {
  return { status: 200, pieces };
}

/** DANGER: of texts that are not secret. */
export function json(body: object, status = 200): Whole {
  return { status, pieces: [Buffer.from(JSON.stringify(body))] };
}

export function tagged({ response, tag }: TaggedResponse): Whole {
  return { status: 200, pieces: [response], etag: tag };
}

/** DANGER: only of a response without values. */
export function parsed(response: Uint8Array): { readonly [member: string]: unknown } {
  return JSON.parse(Buffer.from(response.buffer, response.byteOffset, response.length).toString());
}
