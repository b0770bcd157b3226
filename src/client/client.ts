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
import { findServer, findSocket, mustHaveToken, type PlaceOptions } from "./discovery.js";
import { type Field, jsonObject } from "./encode-body.js";
import type { ApiRequest, CallOptions } from "./request.js";
import { Secret } from "./secret.js";
import { closed, SocketUnavailable, Transport } from "./transport.js";

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

/** Kind of a secret. */
export type SecretType = NonNullable<PutRequest["type"]>;

export type PutOptions = CallOptions & {
  readonly type?: SecretType | undefined;
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

/**
 * Every method may throw a StrongroomError with UNREACHABLE, UNTRUSTED_CERTIFICATE, UNTRUSTED_HOME, PROTOCOL, TIMEOUT,
 * ABORTED, UNAVAILABLE, INTERNAL, UNAUTHORIZED with `credential` "token", or RATE_LIMITED. Its own comment names the other codes.
 */
export class StrongroomClient implements AsyncDisposable {
  readonly #options: ClientOptions;
  #transport: Promise<Transport> | null = null;
  #closed = false;

  /**
   * Reads no file and opens no connection before the first request; throws nothing.
   * @example
   * ```ts
   * const client = new StrongroomClient({ timeoutMs: 5_000 });
   * ```
   */
  constructor(options: ClientOptions = {}) {
    this.#options = options;
  }

  /**
   * Creates a vault and unlocks it. With `force`, replaces an existing vault, which is kept beside it.
   * @throws StrongroomError ALREADY_EXISTS without `force`; VAULT_LOCKED while a lock is running; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { vaultPath } = await client.init(passphrase);
   * ```
   */
  init(passphrase: Text, options: CallOptions & { readonly force?: boolean | undefined } = {}): Promise<Initialized> {
    return this.#send("POST", "/v1/init", options, { passphrase, force: options.force });
  }

  /**
   * Unlocks the vault, and checks the passphrase even when it is unlocked.
   * @throws StrongroomError UNAUTHORIZED with `credential` "passphrase"; RATE_LIMITED with `retryAfter` in seconds;
   * VAULT_LOCKED without a vault or while a lock is running; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * await client.unlock(passphrase);
   * ```
   */
  unlock(passphrase: Text, options: CallOptions = {}): Promise<Acknowledgement> {
    return this.#send("POST", "/v1/unlock", options, { passphrase });
  }

  /**
   * Locks the vault; succeeds also when it is locked or missing.
   * @throws StrongroomError as every method
   * @example
   * ```ts
   * await client.lock();
   * ```
   */
  lock(options: CallOptions = {}): Promise<Acknowledgement> {
    return this.#send("POST", "/v1/lock", options);
  }

  /**
   * Returns the server's and the vault's state. Needs no token.
   * @throws StrongroomError as every method, except for the token
   * @example
   * ```ts
   * const { initialized, locked } = await client.status();
   * ```
   */
  status(options: CallOptions = {}): Promise<VaultStatus> {
    return this.#request({ method: "GET", path: "/v1/status" }, options, false);
  }

  /**
   * Locks the vault and stops the server.
   * @throws StrongroomError as every method
   * @example
   * ```ts
   * await client.shutdown();
   * ```
   */
  shutdown(options: CallOptions = {}): Promise<Acknowledgement> {
    return this.#send("POST", "/v1/shutdown", options);
  }

  /**
   * Copies all sealed secrets, as of one moment, to a new directory on the server's machine; the caller removes it. With
   * `reader` (see the contract), a full or read-only disk gives the vault's own directory instead: see `direct`.
   * @throws StrongroomError as every method
   * @example
   * ```ts
   * const { directory, secretCount } = await client.snapshot();
   * ```
   */
  snapshot(options: CallOptions & { readonly reader?: string | undefined } = {}): Promise<Snapshot> {
    const query = options.reader === undefined ? "" : `?reader=${encoded(options.reader)}`;
    return this.#send("POST", `/v1/snapshot${query}`, options);
  }

  /**
   * Returns the server's contract, an OpenAPI document.
   * @throws StrongroomError as every method
   * @example
   * ```ts
   * const { openapi } = await client.openapi(); // "3.1.0"
   * ```
   */
  openapi(options: CallOptions = {}): Promise<{ readonly [name: string]: unknown }> {
    return this.#send("GET", "/v1/openapi.json", options);
  }

  /**
   * Creates the secret, or replaces its value, type and description.
   * @throws StrongroomError VAULT_LOCKED; PRECONDITION_FAILED for a condition that does not hold; INTEGRITY; INTERNAL;
   * BAD_REQUEST for an invalid path, or a value that is too large or not UTF-8
   * @example
   * ```ts
   * await client.put("app/db/password", "s3cr3t", { type: "password" });
   * ```
   */
  async put(path: string, value: Text, options: PutOptions = {}): Promise<Stored> {
    const { type, description } = options;
    return this.#send("PUT", secretTarget(path), options, { value, type, description });
  }

  /**
   * Returns the secret; `reveal()` returns its value.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; INTEGRITY for a damaged secret; INTERNAL; BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * const password = (await client.get("app/db/password")).reveal();
   * ```
   */
  async get(path: string, options: CallOptions = {}): Promise<Secret> {
    return new Secret(await this.#send<SecretResponse>("GET", secretTarget(path), options));
  }

  /**
   * Returns the secret, or undefined when the path has none.
   * @throws StrongroomError as `get`, except for NOT_FOUND
   * @example
   * ```ts
   * const password = (await client.getOrUndefined("app/db/password"))?.reveal() ?? "default";
   * ```
   */
  async getOrUndefined(path: string, options: CallOptions = {}): Promise<Secret | undefined> {
    try {
      return await this.get(path, options);
    } catch (error) {
      if (error instanceof StrongroomError && error.code === "NOT_FOUND") return undefined;
      throw error;
    }
  }

  /**
   * Deletes the secret.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; PRECONDITION_FAILED for a condition that does not hold; INTEGRITY;
   * BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * await client.delete("app/db/password");
   * ```
   */
  async delete(path: string, options: CallOptions = {}): Promise<Deleted> {
    return this.#send("DELETE", secretTarget(path), options);
  }

  /**
   * Returns the versions that are kept, newest first, without values.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; BAD_REQUEST for an invalid path; INTEGRITY; UNAVAILABLE; INTERNAL
   * @example
   * ```ts
   * const { versions } = await client.versions("app/db/password");
   * ```
   */
  async versions(path: string, options: CallOptions = {}): Promise<SecretHistory> {
    return this.#send("GET", secretTarget(path, "versions"), options);
  }

  /**
   * Makes a version that is kept the newest: its value and metadata are stored again.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; BAD_REQUEST for an invalid path or version; INTEGRITY;
   * UNAVAILABLE; INTERNAL
   * @example
   * ```ts
   * await client.undo("app/db/password", 3);
   * ```
   */
  async undo(path: string, version: number, options: CallOptions = {}): Promise<Stored> {
    return this.#send("POST", secretTarget(path, "versions"), options, { version });
  }

  /**
   * Deletes all earlier versions.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; BAD_REQUEST for an invalid path; INTEGRITY; UNAVAILABLE;
   * INTERNAL
   * @example
   * ```ts
   * const { message } = await client.prune("app/db/password");
   * ```
   */
  async prune(path: string, options: CallOptions = {}): Promise<Deleted> {
    return this.#send("DELETE", secretTarget(path, "versions"), options);
  }

  /**
   * Returns one page of paths and metadata, without values; `next` is the path to continue `after`.
   * @throws StrongroomError VAULT_LOCKED; INTERNAL; BAD_REQUEST for an invalid prefix, path or limit
   * @example
   * ```ts
   * const { entries, next } = await client.list({ prefix: "app/", limit: 100 });
   * ```
   */
  async list(options: ListOptions = {}): Promise<SecretList> {
    const { prefix, after, limit } = options;
    const given = Object.entries({ prefix, after, limit }).filter(([, value]) => value !== undefined);
    const query = given.map(([name, value]) => `${name}=${encoded(String(value))}`).join("&");
    return this.#send("GET", `/v1/secrets${query && `?${query}`}`, options);
  }

  /**
   * Lists in pages of `limit` entries (default 100), each requested when the caller asks for it.
   * @throws StrongroomError as `list`, on the page that fails
   * @example
   * ```ts
   * for await (const { entries } of client.pages({ prefix: "app/" })) console.log(entries.length);
   * ```
   */
  async *pages({ limit = 100, ...options }: ListOptions = {}): AsyncGenerator<SecretList, void, void> {
    let page = await this.list({ ...options, limit });
    yield page;
    while (page.next !== undefined) {
      page = await this.list({ ...options, limit, after: page.next });
      yield page;
    }
  }

  /**
   * Closes all connections and cancels running requests, which throw ABORTED. A closed client stays closed; throws nothing.
   * @example
   * ```ts
   * await client.close();
   * ```
   */
  async close(): Promise<void> {
    this.#closed = true;
    const transport = await this.#transport?.catch(() => null);
    transport?.close();
  }

  /**
   * As `close`, at the end of a block; throws nothing.
   * @example
   * ```ts
   * await using client = new StrongroomClient();
   * ```
   */
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
    this.#transport ??= this.#connect(true);
    const connecting = this.#transport;
    try {
      const transport = await connecting;
      const token = withToken ? mustHaveToken(transport.place) : null;
      return decodeResponse<T>(await transport.send(request, token, { signal, timeoutMs }), transport.place);
    } catch (error) {
      if (error instanceof SocketUnavailable) {
        if (this.#transport === connecting) this.#transport = this.#connect(false);
        return this.#request(request, options, withToken);
      }
      if (this.#transport === connecting && isStalePlace(error)) {
        this.#transport = null;
        connecting.then((transport) => transport.retire()).catch(() => {}); // the server was never found
      }
      throw error;
    }
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
