/** Connection of a client to its server: found at the first request, and found again after the server has restarted. */
import { inspect } from "node:util";
import { findServer, findSocket, mustHaveToken, type ServerLocation } from "./discovery.js";
import { StrongroomError } from "./errors.js";
import { type Bytes, type Field, jsonObject } from "./json-body.js";
import { Lifetime } from "./lifetime.js";
import type { CallOptions, ClientOptions } from "./options.js";
import type { ApiRequest } from "./request.js";
import { decodeText, type Received, responseDecoder } from "./response.js";
import type { SecretBytes } from "./secret-bytes.js";
import { decodeSecretBytes } from "./secret-bytes-response.js";
import type { Shaped } from "./shape-check.js";
import { SocketUnavailable, Transport } from "./transport.js";

/** Content of a request. */
export type Content = {
  /** The JSON body: an object of these fields, or one built by the caller. Wiped after it is sent. */
  readonly fields?: Readonly<Record<string, Field>>;
  readonly body?: Bytes;
  readonly headers?: Readonly<Record<string, string>>;
  readonly readsOnly?: boolean;
};

type Exchange<T> = {
  readonly request: ApiRequest;
  readonly withToken: boolean;
  readonly decode: (received: Received, location: ServerLocation, request: ApiRequest) => T;
};

export class Connection {
  readonly #options: ClientOptions;
  readonly #running = new Set<Lifetime>();
  #transport: Promise<Transport> | null = null;
  #unlocking: Promise<boolean> | null = null;
  #closed = false;
  #warned = false;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** Sends a request with the token, and wipes its body afterwards. `shape`: of the response. */
  async send<N extends keyof Shaped>(
    shape: N,
    method: ApiRequest["method"],
    path: string,
    options: CallOptions,
    { fields, headers, readsOnly, body = fields && jsonObject(fields) }: Content = {},
  ): Promise<Shaped[N]> {
    try {
      return await this.request(shape, { method, path, body, headers, readsOnly }, options, true);
    } finally {
      body?.fill(0);
    }
  }

  /** Sends a request whose body belongs to the caller. */
  request<N extends keyof Shaped>(
    shape: N,
    request: ApiRequest,
    options: CallOptions,
    withToken: boolean,
  ): Promise<Shaped[N]> {
    return this.#exchange({ request, withToken, decode: responseDecoder(shape) }, options);
  }

  /** Sends a GET for a secret whose value never becomes a string. */
  secretBytes(path: string, options: CallOptions): Promise<SecretBytes> {
    const request = { method: "GET", path, ownsResponse: true } as const;
    return this.#exchange({ request, withToken: true, decode: decodeSecretBytes }, options);
  }

  /** Sends a GET whose response is text instead of JSON. */
  text(path: string, options: CallOptions): Promise<string> {
    return this.#exchange({ request: { method: "GET", path }, withToken: true, decode: decodeText }, options);
  }

  /** Cancels running requests and closes all connections. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const lifetime of this.#running) lifetime.end(closed());
    this.#transport?.then((transport) => transport.close()).catch(() => {}); // the server was never found
  }

  /** A refused request has done nothing, so it can be repeated. */
  async #exchange<T>(exchange: Exchange<T>, options: CallOptions): Promise<T> {
    try {
      return await this.#exchangeOnce(exchange, options);
    } catch (error) {
      if (!(error instanceof StrongroomError) || error.code !== "VAULT_LOCKED") throw error;
      if (!(await this.#unlocked(error))) throw error;
    }
    return this.#exchangeOnce(exchange, options);
  }

  /** Asks the program once for all requests that are refused; after it has failed, not again. */
  async #unlocked(refusal: StrongroomError): Promise<boolean> {
    const { onLocked } = this.#options;
    if (onLocked === undefined) return false;
    this.#unlocking ??= onLocked(refusal);
    const isUnlocked = await this.#unlocking;
    if (isUnlocked) this.#unlocking = null;
    return isUnlocked;
  }

  async #exchangeOnce<T>(exchange: Exchange<T>, options: CallOptions): Promise<T> {
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
      if (this.#transport === connecting && isStaleLocation(error)) {
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
    const token = withToken ? mustHaveToken(transport.location) : null;
    const received = await transport.send(request, token, lifetime);
    try {
      return decode(received, transport.location, request);
    } finally {
      void this.#warnOnce(received.headers["strongroom-token-expires"]);
    }
  }

  /** Never rejects: an exception of the program's callback must not fail a request that succeeded. */
  async #warnOnce(expires: string | string[] | undefined): Promise<void> {
    const time = typeof expires === "string" ? new Date(expires) : null;
    if (time === null || Number.isNaN(time.getTime()) || this.#warned) return;
    this.#warned = true;
    try {
      await this.#options.onTokenExpiring?.(time);
    } catch (error) {
      process.emitWarning("onTokenExpiring failed", { type: "StrongroomWarning", detail: inspect(error) });
    }
  }

  /** Keeps the transport for later requests if the server is found. */
  #connect(withSocket: boolean): Promise<Transport> {
    const connecting = this.#open(withSocket);
    this.#transport = connecting;
    connecting.catch(() => {
      if (this.#transport === connecting) this.#transport = null;
    });
    return connecting;
  }

  /** Uses TCP when there is no Unix socket, or none that accepts connections. */
  async #open(withSocket: boolean): Promise<Transport> {
    const local = withSocket ? await findSocket(this.#options) : null;
    return Transport.to(local ?? (await findServer(this.#options)), this.#options.maxResponseBytes);
  }
}

/** Whether to find the server again: it may have restarted at another address, or with a new certificate or token. */
function isStaleLocation(error: unknown): boolean {
  if (!(error instanceof StrongroomError)) return true;
  return ["UNREACHABLE", "UNTRUSTED_CERTIFICATE"].includes(error.code) || error.credential === "token";
}

function closed(): StrongroomError {
  return new StrongroomError("ABORTED", "the client is closed: create a new one");
}
