/** Requests of one client: the connection to the server, found when it is needed, and found again after a restart. */
import { inspect } from "node:util";
import { StrongroomError } from "./client-error.js";
import { decodeResponse, decodeText, type Received } from "./decode-response.js";
import { findServer, findSocket, mustHaveToken, type Place } from "./discovery.js";
import { type Bytes, type Field, jsonObject } from "./encode-body.js";
import type { ClientOptions } from "./method-options.js";
import type { ApiRequest, CallOptions } from "./request.js";
import { Lifetime } from "./request-lifetime.js";
import { SocketUnavailable, Transport } from "./transport.js";

/** What a request carries besides its address. */
export type Carried = {
  /** The JSON body: an object of these fields, or one built by the caller. Wiped when it is sent. */
  readonly fields?: Readonly<Record<string, Field>>;
  readonly body?: Bytes;
  readonly headers?: Readonly<Record<string, string>>;
  readonly readsOnly?: boolean;
};

type Exchange<T> = {
  readonly request: ApiRequest;
  readonly withToken: boolean;
  readonly decode: (received: Received, place: Place) => T;
};

export class Requester {
  readonly #options: ClientOptions;
  readonly #running = new Set<Lifetime>();
  #transport: Promise<Transport> | null = null;
  #closed = false;
  #warned = false;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** Sends the token, and a body that is wiped afterwards. */
  async send<T extends object>(
    method: ApiRequest["method"],
    path: string,
    options: CallOptions,
    { fields, headers, readsOnly, body = fields && jsonObject(fields) }: Carried = {},
  ): Promise<T> {
    try {
      return await this.request<T>({ method, path, body, headers, readsOnly }, options, true);
    } finally {
      body?.fill(0);
    }
  }

  request<T extends object>(request: ApiRequest, options: CallOptions, withToken: boolean): Promise<T> {
    return this.#exchange({ request, withToken, decode: decodeResponse<T> }, options);
  }

  /** Reads a text instead of JSON. */
  text(path: string, options: CallOptions): Promise<string> {
    return this.#exchange({ request: { method: "GET", path }, withToken: true, decode: decodeText }, options);
  }

  /** Cancels running requests, and keeps no connection. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const lifetime of this.#running) lifetime.end(closed());
    this.#transport?.then((transport) => transport.close()).catch(() => {}); // the server was never found
  }

  async #exchange<T>(exchange: Exchange<T>, options: CallOptions): Promise<T> {
    if (this.#closed) throw closed();
    const { signal, timeoutMs = this.#options.timeoutMs } = options;
    const lifetime = new Lifetime(exchange.request, { signal, timeoutMs });
    this.#running.add(lifetime);
    try {
      return await this.#attempt(exchange, lifetime);
    } finally {
      this.#running.delete(lifetime);
      lifetime.release();
    }
  }

  async #attempt<T>(exchange: Exchange<T>, lifetime: Lifetime): Promise<T> {
    const connecting = this.#transport ?? this.#connect(true);
    const transport = await lifetime.wait(connecting);
    try {
      return await this.#exchangeOver(transport, exchange, lifetime);
    } catch (error) {
      const isUnsent = error instanceof SocketUnavailable;
      if (this.#transport === connecting && isStalePlace(error)) {
        this.#transport = null;
        transport.retire();
        if (isUnsent) this.#connect(false);
      }
      if (!isUnsent) throw error;
    }
    return this.#attempt(exchange, lifetime);
  }

  async #exchangeOver<T>(
    transport: Transport,
    { request, withToken, decode }: Exchange<T>,
    lifetime: Lifetime,
  ): Promise<T> {
    const token = withToken ? mustHaveToken(transport.place) : null;
    const received = await transport.send(request, token, lifetime);
    try {
      return decode(received, transport.place);
    } finally {
      void this.#warnOnce(received.headers["strongroom-token-expires"]);
    }
  }

  /** Never rejects: what the program's callback throws must not make a request fail that was done. */
  async #warnOnce(expires: string | string[] | undefined): Promise<void> {
    if (typeof expires !== "string" || this.#warned) return;
    this.#warned = true;
    try {
      await this.#options.onTokenExpiring?.(new Date(expires));
    } catch (error) {
      process.emitWarning("onTokenExpiring failed", { type: "StrongroomWarning", detail: inspect(error) });
    }
  }

  /** Keeps the connection for the next requests, unless the server is not found. */
  #connect(withSocket: boolean): Promise<Transport> {
    const connecting = this.#open(withSocket);
    this.#transport = connecting;
    connecting.catch(() => {
      if (this.#transport === connecting) this.#transport = null;
    });
    return connecting;
  }

  /** Uses TCP where there is no socket of the server, or none that accepts connections. */
  async #open(withSocket: boolean): Promise<Transport> {
    const local = withSocket ? await findSocket(this.#options) : null;
    return Transport.to(local ?? (await findServer(this.#options)));
  }
}

/** Whether to find the server again: it may have been restarted elsewhere, or with a new certificate or token. */
function isStalePlace(error: unknown): boolean {
  if (!(error instanceof StrongroomError)) return true;
  return ["UNREACHABLE", "UNTRUSTED_CERTIFICATE"].includes(error.code) || error.credential === "token";
}

function closed(): StrongroomError {
  return new StrongroomError("ABORTED", "the client is closed: create another");
}
