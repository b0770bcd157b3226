/** Client of a Strongroom server for programs: one method for each endpoint of the contract. */
import type { Deleted, SecretHistory, SecretList, Secret as SecretResponse, Stored } from "./api-types.js";
import { StrongroomError } from "./client-error.js";
import { keepsMetadata, putKeeping } from "./keeping-put.js";
import type { ChangeOptions, ListOptions, PutOptions, Text } from "./method-options.js";
import type { ApiRequest, CallOptions } from "./request.js";
import type { Carried } from "./requester.js";
import { Secret } from "./secret.js";
import { conditionHeaders, encoded, secretTarget } from "./secret-target.js";
import { VaultClient } from "./vault-client.js";

export type {
  Acknowledgement,
  Deleted,
  Initialized,
  Metadata,
  NewToken,
  Revoked,
  SecretEntry,
  SecretHistory,
  SecretList,
  SecretVersion,
  Snapshot,
  Stored,
  Token,
  TokenList,
  VaultStatus,
} from "./api-types.js";
export { type ErrorCode, StrongroomError } from "./client-error.js";
export type { PlaceOptions } from "./discovery.js";
export type { ChangeOptions, ClientOptions, ListOptions, PutOptions, SecretType, Text } from "./method-options.js";
export type { CallOptions } from "./request.js";
export type { Secret } from "./secret.js";
export type { CreateTokenOptions, Tokens } from "./tokens.js";

/**
 * Every method may throw a StrongroomError with UNREACHABLE, UNTRUSTED_CERTIFICATE, UNTRUSTED_HOME, PROTOCOL, TIMEOUT,
 * ABORTED, UNAVAILABLE, INTERNAL, UNAUTHORIZED with `credential` "token", or RATE_LIMITED. Its own comment names the other codes.
 */
export class StrongroomClient extends VaultClient {
  /**
   * Creates the secret, or replaces its value. It keeps the present type and description, but for those given, and needs
   * a second request for that, unless both are given or `replaceMetadata` or `ifAbsent` is set.
   * @throws StrongroomError VAULT_LOCKED; PRECONDITION_FAILED for a condition that does not hold, or while other writers
   * are always faster; INTEGRITY; INTERNAL; BAD_REQUEST for an invalid path, or a value that is too large or not UTF-8
   * @example
   * ```ts
   * await client.put("app/db/password", "s3cr3t", { type: "password" });
   * ```
   */
  async put(path: string, value: Text, options: PutOptions = {}): Promise<Stored> {
    const target = secretTarget(path);
    const put = ({ type, description, ...rest }: PutOptions) => {
      const fields = { value, type: type ?? undefined, description: description ?? undefined };
      return this.#change<Stored>("PUT", target, rest, fields);
    };
    if (!keepsMetadata(options)) return put(options);
    return putKeeping({ list: (query) => this.list(query), put }, path, options);
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
    return new Secret(await this.requester.send<SecretResponse>("GET", secretTarget(path), options));
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
  async delete(path: string, options: ChangeOptions = {}): Promise<Deleted> {
    return this.#change("DELETE", secretTarget(path), options);
  }

  /**
   * Returns the versions that are kept, newest first, without values.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * const { versions } = await client.versions("app/db/password");
   * ```
   */
  async versions(path: string, options: CallOptions = {}): Promise<SecretHistory> {
    return this.requester.send("GET", secretTarget(path, "versions"), options);
  }

  /**
   * Returns a version that is kept, as the secret was then.
   * @throws StrongroomError as `get`; NOT_FOUND also for a version that is not kept
   * @example
   * ```ts
   * const former = (await client.version("app/db/password", 3)).reveal();
   * ```
   */
  async version(path: string, version: number, options: CallOptions = {}): Promise<Secret> {
    const target = `${secretTarget(path, "versions")}?version=${version}`;
    return new Secret(await this.requester.send<SecretResponse>("GET", target, options));
  }

  /**
   * Makes a version that is kept the newest: its value and metadata are stored again.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; PRECONDITION_FAILED for a condition that does not hold; INTEGRITY;
   * INTERNAL; BAD_REQUEST for an invalid path or version
   * @example
   * ```ts
   * await client.undo("app/db/password", 3);
   * ```
   */
  async undo(path: string, version: number, options: ChangeOptions = {}): Promise<Stored> {
    return this.#change("POST", secretTarget(path, "versions"), options, { version });
  }

  /**
   * Deletes all earlier versions.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; PRECONDITION_FAILED for a condition that does not hold; INTEGRITY;
   * INTERNAL; BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * const { message } = await client.prune("app/db/password");
   * ```
   */
  async prune(path: string, options: ChangeOptions = {}): Promise<Deleted> {
    return this.#change("DELETE", secretTarget(path, "versions"), options);
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
    return this.requester.send("GET", `/v1/secrets${query && `?${query}`}`, options);
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

  #change<T extends object>(
    method: ApiRequest["method"],
    target: string,
    { ifMatch, ifAbsent, ...options }: PutOptions,
    fields?: Carried["fields"],
  ): Promise<T> {
    return this.requester.send(method, target, options, {
      headers: conditionHeaders({ ifMatch, ifAbsent }),
      ...(fields && { fields }),
    });
  }
}
