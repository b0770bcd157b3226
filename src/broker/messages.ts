/** Messages between the broker's thread and the main thread: types only. Bytes in them are moved. */

export type Bytes = Uint8Array<ArrayBuffer>;

export type BrokerStart = {
  readonly host: string;
  readonly port: number;
  /** Path of a Unix socket to listen on as well; null: none. */
  readonly socket: string | null;
  /** PEM of roots beside Node's own. */
  readonly upstreamCa: string | null;
  readonly limits: BrokerLimits;
};

/** Times in milliseconds. */
export type BrokerLimits = {
  /** Most connections at once; a quarter of them at most have no token yet. */
  readonly connections: number;
  /** How long a head may take: from the start of the connection, and later from its first byte. */
  readonly headMs: number;
  /** How long a connection of a session may carry nothing. */
  readonly idleMs: number;
  /** How long an exchange for a token may take in all. */
  readonly exchangeMs: number;
};

/** A host that a session may reach with a credential; `name`: its route `/r/NAME/`, if it has one. */
export type BoundHost = {
  readonly host: string;
  readonly port: number;
  readonly allowsPrivate: boolean;
  readonly name: string | null;
};

/**
 * Rights of one token at the broker. `id`: names the session in later messages; `tree`: the token that it descends from,
 * or its own: limits hold for all of a tree together, since a program can make child tokens.
 */
export type Session = {
  readonly id: string;
  readonly tree: string;
  readonly bound: readonly BoundHost[];
  /** Hosts that are reached through a tunnel, without a credential. */
  readonly allowed: readonly string[];
  readonly egress: "any" | "listed";
};

/** One request of a program, as far as it decides about its credential. */
export type Use = {
  readonly session: string;
  readonly host: string;
  readonly port: number;
  /** Name of the binding, where the program used its route. */
  readonly name: string | null;
  readonly method: string;
  readonly target: string;
  /** Names of its headers, in lower case. */
  readonly headers: readonly string[];
  /** Port on loopback from which the program has connected; null at the Unix socket. */
  readonly clientPort: number | null;
};

/** `retryAfter`: seconds. */
export type BrokerRefusal = {
  readonly ok: false;
  readonly retryAfter?: number;
  readonly status: 400 | 403 | 407 | 429 | 502 | 503;
  readonly code: string;
  readonly error: string;
};

/**
 * Questions of the broker's thread.
 *
 * - `session`: whose token this is.
 * - `permit`: whether a request gets a credential; it may wait for an approval. `hashesBody`: the credential depends on the body.
 * - `render`: the head of a permitted request, with its credential. `fields`: its header lines, each ended by CR LF;
 *   `payloadHash`: see `RequestToRender`.
 */
export type Questions = {
  session: {
    ask: { readonly token: string; readonly address: string };
    answer: { readonly ok: true; readonly session: Session };
  };
  permit: { ask: Use; answer: { readonly ok: true; readonly permit: number; readonly hashesBody: boolean } };
  render: {
    ask: { readonly permit: number; readonly fields: Bytes; readonly payloadHash: string | null };
    answer: { readonly ok: true; readonly head: Bytes };
  };
};

/** A request for a token: whole, with its body. It holds credentials. */
export type ExchangeRequest = {
  readonly host: string;
  readonly port: number;
  readonly allowsPrivate: boolean;
  readonly request: Bytes;
};

/** `body`: of the endpoint's response, which is JSON. `problem`: what the endpoint did, for the client. */
export type Exchanged =
  | { readonly ok: true; readonly status: number; readonly body: Bytes }
  | { readonly ok: false; readonly problem: string };

export type QuestionKind = keyof Questions;
export type Ask<K extends QuestionKind> = Questions[K]["ask"];
export type Answer<K extends QuestionKind> = Questions[K]["answer"] | BrokerRefusal;

export type FromBroker =
  | { readonly kind: "listening"; readonly port: number }
  | { readonly kind: "failed"; readonly code: string; readonly at: "port" | "socket" }
  | { readonly kind: QuestionKind; readonly id: number; readonly ask: Ask<QuestionKind> }
  /** The upstream's status once it is known, or the broker's own; for the audit log. */
  | { readonly kind: "used"; readonly permit: number; readonly status: number }
  | { readonly kind: "certificate"; readonly id: number; readonly certificate: string }
  | { readonly kind: "exchanged"; readonly id: number; readonly exchanged: Exchanged };

export type ToBroker =
  | { readonly kind: "answer"; readonly id: number; readonly answer: Answer<QuestionKind> }
  /** Makes the session's authority, or returns the one there is. `until`: see `SessionAuthority.make`. */
  | {
      readonly kind: "authority";
      readonly id: number;
      readonly session: string;
      readonly hosts: readonly string[];
      readonly until: number;
    }
  /** Sends a request for a token. */
  | { readonly kind: "exchange"; readonly id: number; readonly exchange: ExchangeRequest }
  /** The session has ended: its authority goes, and its connections are closed. */
  | { readonly kind: "end"; readonly session: string };
