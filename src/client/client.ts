/** Client of a Strongroom server for programs: one method for each endpoint of the contract. */
import type {
  Acknowledgement,
  Deleted,
  Initialized,
  PutRequest,
  SecretHistory,
  SecretList,
  Secret as SecretResponse,
  Snapshot,
  Stored,
  VaultStatus,
} from "./api-types.js";
import { StrongroomError } from "./client-error.js";
import { decodeResponse } from "./decode-response.js";
import { findServer, mustHaveToken, type PlaceOptions } from "./discovery.js";
import { type Field, jsonObject } from "./encode-body.js";
import type { ApiRequest, CallOptions } from "./request.js";
import { Secret } from "./secret.js";
import { closed, Transport } from "./transport.js";

export type {
  Acknowledgement,
  Deleted,
  Initialized,
  Metadata,
  SecretEntry,
  SecretHistory,
  SecretList,
  SecretVersion,
  Snapshot,
  Stored,
  VaultStatus,
} from "./api-types.js";
export { type ErrorCode, StrongroomError } from "./client-error.js";
export type { PlaceOptions } from "./discovery.js";
export type { CallOptions } from "./request.js";
export type { Secret } from "./secret.js";

export type ClientOptions = PlaceOptions & Pick<CallOptions, "timeoutMs">;

export type PutOptions = CallOptions & {
  readonly type?: PutRequest["type"] | undefined;
  readonly description?: string | undefined;
};

export type ListOptions = CallOptions & {
  /** Only paths that start with this. */
  readonly prefix?: string | undefined;
  /** Only paths that sort after this one. */
  readonly after?: string | undefined;
  /** Maximum number of entries, 1 to 1000. */
  readonly limit?: number | undefined;
};

/** Bytes must be UTF-8; the caller wipes them. */
export type Text = string | Uint8Array;

export class StrongroomClient implements AsyncDisposable {
  readonly #options: ClientOptions;
  #transport: Promise<Transport> | null = null;
  #closed = false;

  /** Reads no file and opens no connection before the first request. */
  constructor(options: ClientOptions = {}) {
    this.#options = options;
  }

  /** Creates a vault and unlocks it. With `force`, replaces an existing vault, which is kept beside it. */
  init(passphrase: Text, options: CallOptions & { readonly force?: boolean | undefined } = {}): Promise<Initialized> {
    return this.#send("POST", "/v1/init", options, { passphrase, force: options.force });
  }

  unlock(passphrase: Text, options: CallOptions = {}): Promise<Acknowledgement> {
    return this.#send("POST", "/v1/unlock", options, { passphrase });
  }

  lock(options: CallOptions = {}): Promise<Acknowledgement> {
    return this.#send("POST", "/v1/lock", options);
  }

  /** Needs no token. */
  status(options: CallOptions = {}): Promise<VaultStatus> {
    return this.#request({ method: "GET", path: "/v1/status" }, options, false);
  }

  shutdown(options: CallOptions = {}): Promise<Acknowledgement> {
    return this.#send("POST", "/v1/shutdown", options);
  }

  /** Copies all sealed secrets, as of one moment, to a new directory on the server's machine; the caller removes it. */
  snapshot(options: CallOptions = {}): Promise<Snapshot> {
    return this.#send("POST", "/v1/snapshot", options);
  }

  /** Returns the server's contract, an OpenAPI document. */
  openapi(options: CallOptions = {}): Promise<{ readonly [name: string]: unknown }> {
    return this.#send("GET", "/v1/openapi.json", options);
  }

  /** Creates the secret, or replaces its value, type and description. */
  async put(path: string, value: Text, options: PutOptions = {}): Promise<Stored> {
    const { type, description } = options;
    return this.#send("PUT", secretTarget(path), options, { value, type, description });
  }

  /** Returns the secret; `reveal()` returns its value. */
  async get(path: string, options: CallOptions = {}): Promise<Secret> {
    return new Secret(await this.#send<SecretResponse>("GET", secretTarget(path), options));
  }

  async delete(path: string, options: CallOptions = {}): Promise<Deleted> {
    return this.#send("DELETE", secretTarget(path), options);
  }

  /** Returns the versions that are kept, newest first, without values. */
  async versions(path: string, options: CallOptions = {}): Promise<SecretHistory> {
    return this.#send("GET", secretTarget(path, "versions"), options);
  }

  /** Makes a version that is kept the newest: its value and metadata are stored again. */
  async undo(path: string, version: number, options: CallOptions = {}): Promise<Stored> {
    return this.#send("POST", secretTarget(path, "versions"), options, { version });
  }

  /** Deletes all earlier versions. */
  async prune(path: string, options: CallOptions = {}): Promise<Deleted> {
    return this.#send("DELETE", secretTarget(path, "versions"), options);
  }

  async list(options: ListOptions = {}): Promise<SecretList> {
    const { prefix, after, limit } = options;
    const given = Object.entries({ prefix, after, limit }).filter(([, value]) => value !== undefined);
    const query = given.map(([name, value]) => `${name}=${encoded(String(value))}`).join("&");
    return this.#send("GET", `/v1/secrets${query && `?${query}`}`, options);
  }

  /** Lists in pages of `limit` entries (default 100), each requested when the caller asks for it. */
  async *pages({ limit = 100, ...options }: ListOptions = {}): AsyncGenerator<SecretList, void, void> {
    let page = await this.list({ ...options, limit });
    yield page;
    while (page.next !== undefined) {
      page = await this.list({ ...options, limit, after: page.next });
      yield page;
    }
  }

  /** Closes all connections and cancels running requests. A closed client stays closed. */
  async close(): Promise<void> {
    this.#closed = true;
    const transport = await this.#transport?.catch(() => null);
    transport?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Sends the fields, if any, as the JSON body. */
  async #send<T extends object>(
    method: ApiRequest["method"],
    path: string,
    options: CallOptions,
    fields?: Readonly<Record<string, Field>>,
  ): Promise<T> {
    const body = fields && jsonObject(fields);
    try {
      return await this.#request<T>({ method, path, body }, options, true);
    } finally {
      body?.fill(0);
    }
  }

  async #request<T extends object>(request: ApiRequest, options: CallOptions, withToken: boolean): Promise<T> {
    if (this.#closed) throw closed();
    const { signal, timeoutMs = this.#options.timeoutMs } = options;
    this.#transport ??= findServer(this.#options).then((place) => new Transport(place));
    const connecting = this.#transport;
    try {
      const transport = await connecting;
      const token = withToken ? mustHaveToken(transport.place) : null;
      return decodeResponse<T>(await transport.send(request, token, { signal, timeoutMs }), transport.place);
    } catch (error) {
      if (this.#transport === connecting && isStalePlace(error)) {
        this.#transport = null;
        connecting.then((transport) => transport.retire()).catch(() => {}); // the server was never found
      }
      throw error;
    }
  }
}

/** Whether to find the server again: it may have been restarted elsewhere, or with a new certificate or token. */
function isStalePlace(error: unknown): boolean {
  if (!(error instanceof StrongroomError)) return true;
  return ["UNREACHABLE", "UNTRUSTED_CERTIFICATE"].includes(error.code) || error.credential === "token";
}

/** Refuses an empty path, which would request the list. */
function secretTarget(path: string, root: "secrets" | "versions" = "secrets"): string {
  if (path === "") throw new StrongroomError("BAD_REQUEST", "the secret's path is empty: give one");
  return `/v1/${root}/${encoded(path)}`;
}

function encoded(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    throw new StrongroomError("BAD_REQUEST", "a path must not contain a lone surrogate, which UTF-8 cannot encode");
  }
}
