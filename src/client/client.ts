/** Client of a Strongroom server for programs: one method for each endpoint of the contract. */
import type { Deleted, SecretList, Secret as SecretResponse, Stored } from "./api-types.js";
import { type BatchOperation, type BatchResponse, type BatchResult, batchBody, resultOf } from "./batch-requests.js";
import { StrongroomError } from "./client-error.js";
import { HistoryClient } from "./history-client.js";
import { keepsMetadata, putKeeping } from "./keeping-put.js";
import type { ChangeOptions, ListOptions, PutOptions, Text } from "./method-options.js";
import { readMany, secretOf } from "./reading-many.js";
import { type CallOptions, queryOf } from "./request.js";
import { Secret } from "./secret.js";
import { secretTarget, sendChange } from "./secret-requests.js";

export type { Audit, AuditOptions } from "./access/audit-client.js";
export type { CreateTokenOptions, Tokens } from "./access/tokens.js";
export type {
  Acknowledgement,
  AuditCheckpoint,
  AuditHead,
  AuditPage,
  AuditRecord,
  AuditVerdicts,
  BatchRefusal,
  CreatedKey,
  Deleted,
  Initialized,
  Key,
  KeyList,
  LastLock,
  Metadata,
  NewToken,
  Revoked,
  Rotated,
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
export type {
  BatchOperation,
  BatchResult,
  CopyOperation,
  DeleteOperation,
  GetOperation,
  MoveOperation,
  PutOperation,
} from "./batch-requests.js";
export { type ErrorCode, StrongroomError } from "./client-error.js";
export type { PlaceOptions } from "./discovery.js";
export type { ChangeOptions, ClientOptions, ListOptions, PutOptions, SecretType, Text } from "./method-options.js";
export type { CallOptions } from "./request.js";
export type { Secret } from "./secret.js";

/**
 * Every method may throw a StrongroomError with UNREACHABLE, UNTRUSTED_CERTIFICATE, UNTRUSTED_HOME, PROTOCOL, TIMEOUT,
 * ABORTED, UNAVAILABLE, INTERNAL, UNAUTHORIZED with `credential` "token", FORBIDDEN for what a client token does not cover, or
 * RATE_LIMITED. Its own comment names the other codes.
 */
export class StrongroomClient extends HistoryClient {
  /**
   * Creates the secret, or replaces its value. It keeps the present type and description, but for those given, and needs
   * a second request for that, a list, unless both are given or `replaceMetadata` or `ifAbsent` is set.
   * @throws StrongroomError VAULT_LOCKED; FORBIDDEN also for that list: a token that cannot list needs `replaceMetadata`;
   * PRECONDITION_FAILED for a condition that does not hold, or while other writers are always faster; INTEGRITY; INTERNAL;
   * BAD_REQUEST for an invalid path, or a value that is too large or not UTF-8
   * @example
   * ```ts
   * await client.put("app/db/password", "s3cr3t", { type: "password" });
   * ```
   */
  async put(path: string, value: Text, options: PutOptions = {}): Promise<Stored> {
    const target = secretTarget(path);
    const put = ({ type, description, ...rest }: PutOptions) => {
      const fields = { value, type: type ?? undefined, description: description ?? undefined };
      return sendChange<Stored>(this.requester, ["PUT", target], rest, { fields });
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
   * Returns the secrets in the order of the paths, undefined for a path that has none: one request for each 1000, or for as
   * many as the server sends at once.
   * @throws StrongroomError as `get`, except for NOT_FOUND
   * @example
   * ```ts
   * const [user, password] = await client.getMany(["app/db/user", "app/db/password"]);
   * ```
   */
  async getMany(paths: readonly string[], options: CallOptions = {}): Promise<(Secret | undefined)[]> {
    const found: (Secret | undefined)[] = [];
    for await (const read of readMany((gets) => this.batch(gets, options), paths)) found.push(...read.map(secretOf));
    return found;
  }

  /**
   * Does up to 1000 operations in one request. With any change: all or nothing. Gets alone: each for itself.
   * @throws StrongroomError VAULT_LOCKED; with the `index` of the operation, and without having changed anything,
   * NOT_FOUND, PRECONDITION_FAILED, INTEGRITY, and BAD_REQUEST for an invalid path or value, or a path that is changed
   * twice; INTERNAL; BAD_REQUEST for a batch that is too large
   * @example
   * ```ts
   * await client.batch([{ copy: "app/key", to: "app/old-key" }, { put: "app/key", value: "s3cr3t" }]);
   * ```
   */
  async batch(operations: readonly BatchOperation[], options: CallOptions = {}): Promise<BatchResult[]> {
    const body = batchBody(operations);
    const readsOnly = operations.every((operation) => "get" in operation);
    const { results } = await this.requester.send<BatchResponse>("POST", "/v1/batch", options, { body, readsOnly });
    return results.map(resultOf);
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
    return sendChange(this.requester, ["DELETE", secretTarget(path)], options);
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
    return this.requester.send("GET", `/v1/secrets${queryOf({ prefix, after, limit })}`, options);
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
}
