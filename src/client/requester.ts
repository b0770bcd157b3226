/** Requests of one client: the connection to the server, found when it is needed, and found again after a restart. */
import { StrongroomError } from "./client-error.js";
import { decodeResponse, decodeText, type Received } from "./decode-response.js";
import { findServer, findSocket, mustHaveToken, type Place } from "./discovery.js";
import { type Bytes, type Field, jsonObject } from "./encode-body.js";
import type { ClientOptions } from "./method-options.js";
import type { ApiRequest, CallOptions } from "./request.js";
import { closed, SocketUnavailable, Transport } from "./transport.js";

/** What a request carries besides its address. */
export type Carried = {
  /** The JSON body: an object of these fields, or one built by the caller. Wiped when it is sent. */
  readonly fields?: Readonly<Record<string, Field>>;
  readonly body?: Bytes;
  readonly headers?: Readonly<Record<string, string>>;
  readonly readsOnly?: boolean;
};

export class Requester {
  readonly #options: ClientOptions;
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
    return this.#exchange(request, options, withToken, decodeResponse<T>);
  }

  /** Reads a text instead of JSON. */
  text(path: string, options: CallOptions): Promise<string> {
    return this.#exchange({ method: "GET", path }, options, true, decodeText);
  }

  async #exchange<T>(
    request: ApiRequest,
    options: CallOptions,
    withToken: boolean,
    decode: (received: Received, place: Place) => T,
  ): Promise<T> {
    if (this.#closed) throw closed();
    const { signal, timeoutMs = this.#options.timeoutMs } = options;
    this.#transport ??= this.#connect(true);
    const connecting = this.#transport;
    try {
      const transport = await connecting;
      const token = withToken ? mustHaveToken(transport.place) : null;
      const received = await transport.send(request, token, { signal, timeoutMs });
      this.#warnOnce(received.headers["strongroom-token-expires"]);
      return decode(received, transport.place);
    } catch (error) {
      if (error instanceof SocketUnavailable) {
        if (this.#transport === connecting) this.#transport = this.#connect(false);
        return this.#exchange(request, options, withToken, decode);
      }
      if (this.#transport === connecting && isStalePlace(error)) {
        this.#transport = null;
        connecting.then((transport) => transport.retire()).catch(() => {}); // the server was never found
      }
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const transport = await this.#transport?.catch(() => null);
    transport?.close();
  }

  #warnOnce(expires: string | string[] | undefined): void {
    if (typeof expires !== "string" || this.#warned) return;
    this.#warned = true;
    this.#options.onTokenExpiring?.(new Date(expires));
  }

  /** Uses TCP where there is no socket of the server, or none that accepts connections. */
  async #connect(withSocket: boolean): Promise<Transport> {
    const local = withSocket ? await findSocket(this.#options) : null;
    return Transport.to(local ?? (await findServer(this.#options)));
  }
}

/** Whether to find the server again: it may have been restarted elsewhere, or with a new certificate or token. */
function isStalePlace(error: unknown): boolean {
  if (!(error instanceof StrongroomError)) return true;
  return ["UNREACHABLE", "UNTRUSTED_CERTIFICATE"].includes(error.code) || error.credential === "token";
}
