/** Client of a Strongroom server: a method for each operation of the HTTP API. */
import type {
  Acknowledgement,
  Agent,
  AgentRequest,
  ApprovalList,
  AuditCheckpoint,
  AuditPage,
  AuditVerdicts,
  BrokerAccess,
  CheckList,
  CreatedKey,
  Deleted,
  ExportedTransitKey,
  Initialized,
  KeyList,
  LoggedIn,
  LoginRequest,
  NewToken,
  OneTimeCode,
  ReviewCode,
  Revoked,
  Rotated,
  SecretHistory,
  SecretList,
  Snapshot,
  Stored,
  Token,
  TokenList,
  TransitDeleted,
  TransitKey,
  TransitKeyList,
  TransitResult,
  Trashed,
  TrashList,
  UseList,
  UseRequest,
  UseSet,
  VaultStatus,
} from "./api-types.js";
import {
  type BatchOperation,
  type BatchResult,
  batchBody,
  batchResults,
  readMany,
  resultSecret,
  unexpectedResults,
} from "./batch.js";
import { Connection } from "./connection.js";
import { StrongroomError } from "./errors.js";
import { encodeBase64, jsonListObject } from "./json-body.js";
import type {
  AuditOptions,
  CallOptions,
  ChangeOptions,
  CheckOptions,
  ClientOptions,
  CreateTokenOptions,
  ListOptions,
  MetadataChange,
  PutOptions,
  RotateTokenOptions,
  Text,
} from "./options.js";
import { keepsMetadata, putKeeping } from "./put-keeping.js";
import { conditionHeaders, encoded, formatTime, queryString, readReference, secretUrl, tokenUrl } from "./request.js";
import { Secret } from "./secret.js";
import type { SecretBytes } from "./secret-bytes.js";
import type { VitalSigns } from "./shape-check.js";
import {
  type ConfigureTransitKeyOptions,
  type CreateTransitKeyOptions,
  decodeBase64,
  type EncryptOptions,
  inputFields,
  optionalBase64,
  resultField,
  resultShapes,
  type SignOptions,
  type TransitBatchInput,
  type TransitUse,
  transitUrl,
} from "./transit.js";

export type {
  Acknowledgement,
  Agent,
  AgentRequest,
  Approval,
  ApprovalList,
  AuditCheckpoint,
  AuditHead,
  AuditPage,
  AuditRecord,
  AuditVerdicts,
  BatchRefusal,
  BrokerAccess,
  CheckEntry,
  CheckList,
  CreatedKey,
  Deleted,
  ExportedTransitKey,
  Initialized,
  Key,
  KeyList,
  LastLock,
  LoggedIn,
  LoginRequest,
  Metadata,
  NewToken,
  OneTimeCode,
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
  TransitDeleted,
  TransitKey,
  TransitKeyEntry,
  TransitKeyList,
  TransitKeyVersion,
  TransitResult,
  TrashEntry,
  Trashed,
  TrashList,
  Use,
  UseList,
  UseRequest,
  UseSet,
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
  TrashOperation,
} from "./batch.js";
export type { PlaceOptions } from "./discovery.js";
export { type ErrorCode, StrongroomError } from "./errors.js";
export type {
  AuditOptions,
  CallOptions,
  ChangeOptions,
  CheckOptions,
  ClientOptions,
  CreateTokenOptions,
  Custom,
  ListOptions,
  MetadataChange,
  PutOptions,
  RotateTokenOptions,
  SecretType,
  Text,
} from "./options.js";
export type { Secret } from "./secret.js";
export type { SecretBytes } from "./secret-bytes.js";
export type { VitalSigns } from "./shape-check.js";
export type {
  ConfigureTransitKeyOptions,
  CreateTransitKeyOptions,
  EncryptOptions,
  SignOptions,
  TransitBatchInput,
  TransitKeyType,
  TransitUse,
} from "./transit.js";

/** The methods for client tokens under shorter names. */
export type Tokens = {
  readonly create: StrongroomClient["createToken"];
  readonly list: StrongroomClient["listTokens"];
  readonly self: StrongroomClient["showSelf"];
  readonly rotate: StrongroomClient["rotateToken"];
  readonly revoke: StrongroomClient["revokeToken"];
};

/** The methods for the audit log under shorter names. */
export type Audit = { readonly read: StrongroomClient["readAudit"]; readonly verify: StrongroomClient["verifyAudit"] };

/**
 * Every method may throw a StrongroomError with one of these codes: UNREACHABLE, UNTRUSTED_CERTIFICATE, UNTRUSTED_HOME,
 * PROTOCOL, TIMEOUT, ABORTED, UNAVAILABLE, INTERNAL, UNAUTHORIZED with `credential` "token", FORBIDDEN when the client token
 * does not cover the request, RATE_LIMITED. The comment of a method names its other codes.
 */
export class StrongroomClient implements AsyncDisposable {
  readonly #connection: Connection;

  /** `client.tokens.create(…)` is `client.createToken(…)`, and so on. */
  readonly tokens: Tokens = {
    create: (name, options) => this.createToken(name, options),
    list: (options) => this.listTokens(options),
    self: (options) => this.showSelf(options),
    rotate: (name, options) => this.rotateToken(name, options),
    revoke: (name, options) => this.revokeToken(name, options),
  };

  /** `client.audit.read(…)` is `client.readAudit(…)`, and so on. */
  readonly audit: Audit = {
    read: (options) => this.readAudit(options),
    verify: (checkpoints, options) => this.verifyAudit(checkpoints, options),
  };

  /**
   * Creates a client, which reads no file and opens no connection before its first request; throws nothing.
   * @param options Where the server is, the token, and the default timeout. Default: the user's own server.
   * @example
   * ```ts
   * const client = new StrongroomClient({ timeoutMs: 5_000 });
   * ```
   */
  constructor(options: ClientOptions = {}) {
    this.#connection = new Connection(options);
  }

  /**
   * Stores a secret, and keeps its current metadata (type, description, time of expiry, custom texts) unless other is given.
   * Keeping it takes a second request, a list; none is kept if type and description are both given, or with
   * `replaceMetadata` or `ifAbsent`.
   * @param path Path of the secret, such as `app/db/password`.
   * @param value Text, or with `encoding` base64; at most 1 MiB in UTF-8, unless the server has another limit.
   * @throws StrongroomError VAULT_LOCKED; FORBIDDEN, also when the token may not list: use `replaceMetadata` then;
   * PRECONDITION_FAILED if the condition does not hold, or if other writers are always faster; INTEGRITY; INTERNAL;
   * BAD_REQUEST for an invalid path, or a value that is too long or not UTF-8
   * @example
   * ```ts
   * await client.put("app/db/password", "s3cr3t", { type: "password" });
   * ```
   */
  async put(path: string, value: Text, options: PutOptions = {}): Promise<Stored> {
    const url = secretUrl(path);
    const put = async ({ ifMatch, ifAbsent, encoding, ...rest }: PutOptions): Promise<Stored> => {
      const { type, description, expiresAt, custom, ...call } = rest;
      const texts = { type: type ?? undefined, description: description ?? undefined, custom: custom ?? undefined };
      const fields = { value, encoding, ...texts, expiresAt: formatTime(expiresAt ?? undefined) };
      return this.#connection.send("Stored", "PUT", url, call, {
        fields,
        headers: conditionHeaders({ ifMatch, ifAbsent }),
      });
    };
    if (!keepsMetadata(options)) return put(options);
    return putKeeping({ list: (query) => this.list(query), put }, path, options);
  }

  /**
   * Stores a binary value, which `get` returns byte for byte: see `revealBytes()`.
   * @param bytes At most 768 KiB, unless the server has another limit. They stay the caller's to wipe.
   * @throws StrongroomError as `put`
   * @example
   * ```ts
   * await client.putBytes("app/tls.p12", await readFile("tls.p12"));
   * ```
   */
  async putBytes(path: string, bytes: Uint8Array, options: Omit<PutOptions, "encoding"> = {}): Promise<Stored> {
    const value = encodeBase64(bytes);
    try {
      return await this.put(path, value, { ...options, encoding: "base64" });
    } finally {
      value.fill(0);
    }
  }

  /**
   * Returns a secret; `reveal()` returns its value, and `revealBytes()` the bytes of a binary one.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; INTEGRITY for a corrupt secret; INTERNAL; BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * const password = (await client.get("app/db/password")).reveal();
   * ```
   */
  async get(path: string, options: CallOptions = {}): Promise<Secret> {
    return new Secret(await this.#connection.send("Secret", "GET", secretUrl(path), options));
  }

  /**
   * Returns a secret whose value never becomes a string, for programs that wipe what they have used. It costs a connection.
   * @throws StrongroomError as `get`
   * @example
   * ```ts
   * const secret = await client.getBytes("app/tls.p12");
   * secret.wipe();
   * ```
   */
  async getBytes(path: string, options: CallOptions = {}): Promise<SecretBytes> {
    return this.#connection.secretBytes(secretUrl(path), options);
  }

  /**
   * Returns a secret, or undefined when there is none at the path.
   * @throws StrongroomError as `get`, except NOT_FOUND
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
   * Returns the value that a reference names: `strongroom://app/db/password`, or a field of a JSON value with
   * `strongroom://app/db#user.name`. In the path, `%` is `%25` and `#` is `%23`.
   * @throws StrongroomError as `get`; NOT_FOUND also without the field; BAD_REQUEST for an invalid reference
   * @example
   * ```ts
   * const user = await client.resolve("strongroom://app/db#user.name");
   * ```
   */
  async resolve(reference: string, options: CallOptions = {}): Promise<string> {
    const { path, field } = readReference(reference);
    const secret = await this.get(path, options);
    return field === null ? secret.reveal() : secret.field(field);
  }

  /**
   * Returns the secrets in the order of the paths, undefined where there is none. Sends one request for each 1000 paths, or
   * more requests if the values exceed what the server returns at once.
   * @throws StrongroomError as `get`, except NOT_FOUND
   * @example
   * ```ts
   * const [user, password] = await client.getMany(["app/db/user", "app/db/password"]);
   * ```
   */
  async getMany(paths: readonly string[], options: CallOptions = {}): Promise<(Secret | undefined)[]> {
    const found: (Secret | undefined)[] = [];
    for await (const read of readMany((gets) => this.batch(gets, options), paths))
      found.push(...read.map(resultSecret));
    return found;
  }

  /**
   * Runs up to 1000 operations in one request. If any of them changes something, all succeed or none has an effect; a batch
   * of gets reports a failure for each get.
   * @throws StrongroomError VAULT_LOCKED; with the `index` of the operation, and without any effect, NOT_FOUND,
   * PRECONDITION_FAILED, INTEGRITY, or BAD_REQUEST for an invalid path or value or a path that is changed twice; INTERNAL;
   * BAD_REQUEST for a batch that is too large
   * @example
   * ```ts
   * await client.batch([{ copy: "app/key", to: "app/old-key" }, { put: "app/key", value: "s3cr3t" }]);
   * ```
   */
  async batch(operations: readonly BatchOperation[], options: CallOptions = {}): Promise<BatchResult[]> {
    const body = batchBody(operations);
    const readsOnly = operations.every((operation) => "get" in operation);
    const { results } = await this.#connection.send("BatchResults", "POST", "/v1/batch", options, { body, readsOnly });
    return batchResults(operations, results);
  }

  /**
   * Changes only the metadata of a secret: its value stays, in a new version.
   * @param change Members that are not given stay; null removes a member.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; PRECONDITION_FAILED; INTEGRITY; INTERNAL; BAD_REQUEST for an invalid
   * path or change
   * @example
   * ```ts
   * await client.changeMetadata("app/db/password", { expiresAt: new Date("2026-12-31") });
   * ```
   */
  async changeMetadata(
    path: string,
    { type, description, expiresAt, custom }: MetadataChange,
    { ifMatch, ...options }: ChangeOptions = {},
  ): Promise<Stored> {
    const fields = { type, description, expiresAt: formatTime(expiresAt), custom };
    const content = { fields, headers: conditionHeaders({ ifMatch }) };
    return this.#connection.send("Stored", "PATCH", secretUrl(path, "metadata"), options, content);
  }

  /**
   * Deletes a secret for good: `trash` can be undone.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; PRECONDITION_FAILED; INTEGRITY; BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * await client.delete("app/db/password");
   * ```
   */
  async delete(path: string, { ifMatch, ...options }: ChangeOptions = {}): Promise<Deleted> {
    return this.#connection.send("Deleted", "DELETE", secretUrl(path), options, {
      headers: conditionHeaders({ ifMatch }),
    });
  }

  /**
   * Returns a page of paths and metadata, without values. `next` is the path to continue `after`.
   * @throws StrongroomError VAULT_LOCKED; INTERNAL; BAD_REQUEST for an invalid prefix, path or limit
   * @example
   * ```ts
   * const { entries, next } = await client.list({ prefix: "app/", limit: 100 });
   * ```
   */
  async list({ prefix, after, limit, background, ...options }: ListOptions = {}): Promise<SecretList> {
    const query = queryString({ prefix, after, limit, background: background && "true" });
    return this.#connection.send("SecretList", "GET", `/v1/secrets${query}`, options);
  }

  /**
   * Yields pages of `limit` entries (default: 100), and requests each when it is needed.
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
   * Returns judgements of values, which stay in the server: what is weak, equal, breached, or to be searched for. Pages as
   * `list` does.
   * @param key 32 random bytes in base64, the same for all pages.
   * @throws StrongroomError VAULT_LOCKED; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { entries } = await client.check(randomBytes(32).toString("base64"), { prefix: "app/" });
   * const weak = entries.filter(({ score = 4 }) => score < 3);
   * ```
   */
  check(key: string, { parts, prefix, after, limit, ...options }: CheckOptions = {}): Promise<CheckList> {
    const content = { fields: { key, parts, prefix, after, limit }, readsOnly: true };
    return this.#connection.send("CheckList", "POST", "/v1/check", options, content);
  }

  /**
   * Returns the stored versions of a secret, newest first, without values.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * const { versions } = await client.versions("app/db/password");
   * ```
   */
  async versions(path: string, options: CallOptions = {}): Promise<SecretHistory> {
    return this.#connection.send("SecretHistory", "GET", secretUrl(path, "versions"), options);
  }

  /**
   * Returns a stored version of a secret, with its value.
   * @param version Number of the version, from 1.
   * @throws StrongroomError as `get`; NOT_FOUND also when the version is not stored
   * @example
   * ```ts
   * const former = (await client.version("app/db/password", 3)).reveal();
   * ```
   */
  async version(path: string, version: number, options: CallOptions = {}): Promise<Secret> {
    const url = `${secretUrl(path, "versions")}?version=${version}`;
    return new Secret(await this.#connection.send("Secret", "GET", url, options));
  }

  /**
   * Restores an earlier version: stores its value and metadata as a new version.
   * @param version Number of the version to restore, from 1.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; PRECONDITION_FAILED; INTEGRITY; INTERNAL; BAD_REQUEST for an invalid
   * path or version
   * @example
   * ```ts
   * await client.undo("app/db/password", 3);
   * ```
   */
  async undo(path: string, version: number, { ifMatch, ...options }: ChangeOptions = {}): Promise<Stored> {
    const content = { fields: { version }, headers: conditionHeaders({ ifMatch }) };
    return this.#connection.send("Stored", "POST", secretUrl(path, "versions"), options, content);
  }

  /**
   * Deletes all earlier versions of a secret.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; PRECONDITION_FAILED; INTEGRITY; INTERNAL; BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * const { message } = await client.prune("app/db/password");
   * ```
   */
  async prune(path: string, { ifMatch, ...options }: ChangeOptions = {}): Promise<Deleted> {
    const headers = conditionHeaders({ ifMatch });
    return this.#connection.send("Deleted", "DELETE", secretUrl(path, "versions"), options, { headers });
  }

  /**
   * Destroys the value and the metadata of an earlier version for good; its number and times stay.
   * @param version Number of the version, from 1; not the newest.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; PRECONDITION_FAILED; INTEGRITY; INTERNAL; BAD_REQUEST for the newest
   * version, an invalid path or version
   * @example
   * ```ts
   * await client.destroyVersion("app/db/password", 3);
   * ```
   */
  async destroyVersion(path: string, version: number, { ifMatch, ...options }: ChangeOptions = {}): Promise<Deleted> {
    const url = `${secretUrl(path, "versions")}${queryString({ version })}`;
    return this.#connection.send("Deleted", "DELETE", url, options, { headers: conditionHeaders({ ifMatch }) });
  }

  /**
   * Moves a secret with all its versions to the trash, where it replaces an earlier one of the same path.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; PRECONDITION_FAILED; INTEGRITY; INTERNAL; BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * const { deletedAt } = await client.trash("app/db/password");
   * ```
   */
  async trash(path: string, { ifMatch, ...options }: ChangeOptions = {}): Promise<Trashed> {
    const headers = conditionHeaders({ ifMatch });
    return this.#connection.send("Trashed", "POST", secretUrl(path, "trash"), options, { headers });
  }

  /**
   * Returns a page of what is in the trash, without values. `next` is the path to continue `after`.
   * @throws StrongroomError VAULT_LOCKED; INTERNAL; BAD_REQUEST for an invalid prefix, path or limit
   * @example
   * ```ts
   * const { entries } = await client.listTrash({ prefix: "app/" });
   * ```
   */
  async listTrash({ prefix, after, limit, ...options }: ListOptions = {}): Promise<TrashList> {
    return this.#connection.send("TrashList", "GET", `/v1/trash${queryString({ prefix, after, limit })}`, options);
  }

  /**
   * Brings a secret back from the trash, with all its versions.
   * @throws StrongroomError ALREADY_EXISTS while there is another secret at the path; NOT_FOUND; VAULT_LOCKED;
   * PRECONDITION_FAILED; INTEGRITY; INTERNAL; BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * await client.untrash("app/db/password");
   * ```
   */
  async untrash(path: string, { ifMatch, ...options }: ChangeOptions = {}): Promise<Deleted> {
    const headers = conditionHeaders({ ifMatch });
    return this.#connection.send("Deleted", "POST", secretUrl(path, "untrash"), options, { headers });
  }

  /**
   * Destroys a secret in the trash for good.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; PRECONDITION_FAILED; INTEGRITY; BAD_REQUEST for an invalid path
   * @example
   * ```ts
   * await client.destroyTrashed("app/db/password");
   * ```
   */
  async destroyTrashed(path: string, { ifMatch, ...options }: ChangeOptions = {}): Promise<Deleted> {
    const headers = conditionHeaders({ ifMatch });
    return this.#connection.send("Deleted", "DELETE", secretUrl(path, "trash"), options, { headers });
  }

  /**
   * Creates a vault and unlocks it.
   * @param passphrase 1 to 1024 bytes in UTF-8.
   * @param options `force`: replace an existing vault, which is kept beside the new one. Default: false.
   * @throws StrongroomError ALREADY_EXISTS without `force`; VAULT_LOCKED while a lock is running; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { vaultPath } = await client.init(passphrase);
   * ```
   */
  init(
    passphrase: Text,
    { force, ...options }: CallOptions & { readonly force?: boolean | undefined } = {},
  ): Promise<Initialized> {
    return this.#connection.send("Initialized", "POST", "/v1/init", options, { fields: { passphrase, force } });
  }

  /**
   * Unlocks the vault. Checks the passphrase even if the vault is already unlocked.
   * @param passphrase The passphrase or a key.
   * @throws StrongroomError UNAUTHORIZED with `credential` "passphrase"; RATE_LIMITED with `retryAfter` in seconds;
   * VAULT_LOCKED while a lock is running; INTEGRITY if the header was changed; INTERNAL; BAD_REQUEST, also before init
   * @example
   * ```ts
   * await client.unlock(passphrase);
   * ```
   */
  unlock(passphrase: Text, options: CallOptions = {}): Promise<Acknowledgement> {
    return this.#connection.send("Acknowledgement", "POST", "/v1/unlock", options, { fields: { passphrase } });
  }

  /**
   * Locks the vault. Succeeds also when the vault is locked or there is none.
   * @throws StrongroomError as every method
   * @example
   * ```ts
   * await client.lock();
   * ```
   */
  lock(options: CallOptions = {}): Promise<Acknowledgement> {
    return this.#connection.send("Acknowledgement", "POST", "/v1/lock", options);
  }

  /**
   * Returns the state of the server and the vault. Needs no token.
   * @throws StrongroomError as every method, except those for tokens
   * @example
   * ```ts
   * const { initialized, locked } = await client.status();
   * ```
   */
  status(options: CallOptions = {}): Promise<VaultStatus> {
    return this.#connection.request("VaultStatus", { method: "GET", path: "/v1/status" }, options, false);
  }

  /**
   * Changes the passphrase. The vault stays locked or unlocked.
   * @param passphrase The current passphrase or a key.
   * @throws StrongroomError UNAUTHORIZED with `credential` "passphrase"; RATE_LIMITED; VAULT_LOCKED while a lock is running;
   * INTEGRITY; INTERNAL; BAD_REQUEST, also before init
   * @example
   * ```ts
   * await client.changePassphrase(passphrase, newPassphrase);
   * ```
   */
  changePassphrase(passphrase: Text, newPassphrase: Text, options: CallOptions = {}): Promise<Acknowledgement> {
    return this.#connection.send("Acknowledgement", "POST", "/v1/passphrase", options, {
      fields: { passphrase, newPassphrase },
    });
  }

  /**
   * Returns what unlocks the vault: the passphrase and the keys, without their values.
   * @throws StrongroomError INTERNAL; BAD_REQUEST before init
   * @example
   * ```ts
   * const { keys } = await client.keys();
   * ```
   */
  keys(options: CallOptions = {}): Promise<KeyList> {
    return this.#connection.send("KeyList", "GET", "/v1/keys", options);
  }

  /**
   * Creates a key, which unlocks the vault like the passphrase. It is returned once and stored nowhere.
   * @param passphrase The passphrase or another key.
   * @param label Unique name of the key, 1 to 64 bytes in UTF-8.
   * @throws StrongroomError ALREADY_EXISTS for a label that is taken; UNAUTHORIZED with `credential` "passphrase";
   * RATE_LIMITED; VAULT_LOCKED while a lock is running; INTEGRITY; INTERNAL; BAD_REQUEST, also before init
   * @example
   * ```ts
   * const { key } = await client.createKey(passphrase, "recovery");
   * ```
   */
  createKey(passphrase: Text, label: string, options: CallOptions = {}): Promise<CreatedKey> {
    return this.#connection.send("CreatedKey", "POST", "/v1/keys", options, { fields: { passphrase, label } });
  }

  /**
   * Deletes a key. It no longer unlocks the vault.
   * @param id From `keys`.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTERNAL; BAD_REQUEST for the last key or passphrase
   * @example
   * ```ts
   * const { keys } = await client.keys();
   * for (const { id, label } of keys) if (label === "laptop") await client.deleteKey(id);
   * ```
   */
  async deleteKey(id: string, options: CallOptions = {}): Promise<Acknowledgement> {
    return this.#connection.send("Acknowledgement", "DELETE", `/v1/keys/${encoded(id)}`, options);
  }

  /**
   * Rotates the master key. The server re-encrypts all secrets in the background; `rotation` in the status shows progress.
   * @param passphrase The passphrase, or a key if the vault has no passphrase.
   * @param keys Keys to keep. The others, whose labels the result lists in `removed`, no longer unlock the vault.
   * @throws StrongroomError UNAUTHORIZED with `credential` "passphrase"; RATE_LIMITED; VAULT_LOCKED while a lock is running;
   * ALREADY_EXISTS during a rotation; INTEGRITY; INTERNAL; BAD_REQUEST, also before init
   * @example
   * ```ts
   * const { removed } = await client.rotate(passphrase, [recoveryKey]);
   * ```
   */
  rotate(passphrase: Text, keys: readonly Text[] = [], options: CallOptions = {}): Promise<Rotated> {
    return this.#connection.send("Rotated", "POST", "/v1/rotate", options, { fields: { passphrase, keys } });
  }

  /**
   * Creates a client token. Its value, `token`, is returned once.
   * @param name 1 to 64 of a-z, 0-9, dot, dash and underscore.
   * @param options By default the token may list and get all secrets, for 90 days.
   * @throws StrongroomError ALREADY_EXISTS for a name that is taken; VAULT_LOCKED; FORBIDDEN without the root token;
   * INTEGRITY; INTERNAL; BAD_REQUEST for an invalid name, scope, path or time
   * @example
   * ```ts
   * const { token } = await client.createToken("ci", { paths: ["app/"], ttlSeconds: 30 * 86_400 });
   * ```
   */
  createToken(name: string, { can, paths, ttlSeconds, ...options }: CreateTokenOptions = {}): Promise<NewToken> {
    return this.#connection.send("NewToken", "POST", "/v1/tokens", options, {
      fields: { name, can, paths, ttlSeconds },
    });
  }

  /**
   * Binds a secret to a host, which programs then reach through the broker without reading the secret. The same host
   * replaces its binding.
   * @param path The secret's path.
   * @param use The host, and which requests to it get the secret.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; FORBIDDEN without the root token; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * await client.setUse("app/api-key", { host: "api.example.com", header: "x-api-key", format: "{}" });
   * ```
   */
  setUse(path: string, use: UseRequest, options: CallOptions = {}): Promise<UseSet> {
    return this.#connection.send("UseSet", "PUT", secretUrl(path, "uses"), options, { fields: { ...use } });
  }

  /**
   * Lists the hosts that secrets are bound to.
   * @throws StrongroomError VAULT_LOCKED; FORBIDDEN without the root token; BAD_REQUEST; INTERNAL
   * @example
   * ```ts
   * const { uses } = await client.listUses({ prefix: "app/" });
   * ```
   */
  listUses({ prefix, ...options }: CallOptions & { readonly prefix?: string | undefined } = {}): Promise<UseList> {
    return this.#connection.send("UseList", "GET", `/v1/uses${queryString({ prefix })}`, options);
  }

  /**
   * Returns the hosts that one secret is bound to.
   * @param path The secret's path.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; FORBIDDEN without the root token; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { uses } = await client.showUses("app/api-key");
   * ```
   */
  showUses(path: string, options: CallOptions = {}): Promise<UseList> {
    return this.#connection.send("UseList", "GET", secretUrl(path, "uses"), options);
  }

  /**
   * Has the server exchange the code of a login for the refresh token, and store it. The binding's `oauth` says where. For a
   * device, call it again every so many seconds until `state` is `stored`.
   * @throws StrongroomError NOT_FOUND without such a binding, or while the broker is off; UNAVAILABLE where the endpoint issues
   * none; VAULT_LOCKED; FORBIDDEN without the root token; INTEGRITY; INTERNAL; BAD_REQUEST where the code is no longer valid
   * @example
   * ```ts
   * const { state } = await client.logIn("app/mail", "mail.example.com", { deviceCode });
   * ```
   */
  logIn(path: string, host: string, login: LoginRequest, options: CallOptions = {}): Promise<LoggedIn> {
    const url = `${secretUrl(path, "uses")}${queryString({ host })}`;
    return this.#connection.send("LoggedIn", "POST", url, options, { fields: { ...login } });
  }

  /**
   * Removes the binding of a secret to a host.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; FORBIDDEN without the root token; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * await client.removeUse("app/api-key", "api.example.com");
   * ```
   */
  removeUse(path: string, host: string, options: CallOptions = {}): Promise<Deleted> {
    return this.#connection.send("Deleted", "DELETE", `${secretUrl(path, "uses")}${queryString({ host })}`, options);
  }

  /**
   * Creates a session at the broker: a token that may use secrets and read nothing, and the certificate to trust.
   * @throws StrongroomError NOT_FOUND while the broker is off; VAULT_LOCKED; FORBIDDEN without the root token; INTEGRITY;
   * INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { token } = await client.createAgent({ paths: ["app/"], ttlSeconds: 3600 });
   * ```
   */
  createAgent({ paths, ttlSeconds, allowHosts, egress, ...options }: CallOptions & AgentRequest = {}): Promise<Agent> {
    return this.#connection.send("Agent", "POST", "/v1/agents", options, {
      fields: { paths, ttlSeconds, allowHosts, egress },
    });
  }

  /**
   * Returns what a program needs to use the broker with the session's token that this client has.
   * @throws StrongroomError NOT_FOUND while the broker is off; VAULT_LOCKED; FORBIDDEN; INTERNAL
   * @example
   * ```ts
   * const { port } = await client.showBroker();
   * ```
   */
  showBroker(options: CallOptions = {}): Promise<BrokerAccess> {
    return this.#connection.send("BrokerAccess", "GET", "/v1/broker", options);
  }

  /**
   * Lists the requests that wait for approval at the broker.
   * @throws StrongroomError NOT_FOUND while the broker is off; VAULT_LOCKED; FORBIDDEN without the root token
   * @example
   * ```ts
   * const { approvals } = await client.listApprovals();
   * ```
   */
  listApprovals(options: CallOptions = {}): Promise<ApprovalList> {
    return this.#connection.send("ApprovalList", "GET", "/v1/approvals", options);
  }

  /**
   * Approves or refuses a request that waits.
   * @throws StrongroomError NOT_FOUND when it no longer waits; UNAUTHORIZED with `credential` "passphrase"; VAULT_LOCKED;
   * FORBIDDEN without the root token; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * await client.decideApproval(id, { approve: true });
   * ```
   */
  decideApproval(
    id: string,
    decision: { readonly approve: boolean; readonly for?: string | number; readonly passphrase?: Text | undefined },
    options: CallOptions = {},
  ): Promise<Acknowledgement> {
    return this.#connection.send("Acknowledgement", "POST", `/v1/approvals/${encoded(id)}`, options, {
      fields: { ...decision },
    });
  }

  /**
   * Lists the client tokens without their values. Expired ones are listed for 30 days.
   * @throws StrongroomError FORBIDDEN without the root token; INTEGRITY if the list of tokens is damaged
   * @example
   * ```ts
   * const { tokens } = await client.listTokens();
   * ```
   */
  listTokens(options: CallOptions = {}): Promise<TokenList> {
    return this.#connection.send("TokenList", "GET", "/v1/tokens", options);
  }

  /**
   * Returns the token that this client uses. The root token is named `root`.
   * @throws StrongroomError as every method
   * @example
   * ```ts
   * const { name, can, paths, expiresAt } = await client.showSelf();
   * ```
   */
  showSelf(options: CallOptions = {}): Promise<Token> {
    return this.#connection.send("Token", "GET", "/v1/tokens/self", options);
  }

  /**
   * Issues a new value for a token, which expires when the old value would have.
   * @param name Of a client token. `root`: the root token, whose file the server replaces.
   * @throws StrongroomError NOT_FOUND; VAULT_LOCKED; FORBIDDEN without the root token; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { token } = await client.rotateToken("ci", { overlapSeconds: 3600 });
   * ```
   */
  async rotateToken(name: string, { overlapSeconds, ...options }: RotateTokenOptions = {}): Promise<NewToken> {
    return this.#connection.send("NewToken", "POST", tokenUrl(name), options, { fields: { overlapSeconds } });
  }

  /**
   * Revokes a client token, also while the vault is locked. After UNAVAILABLE, it is revoked until the server restarts.
   * @throws StrongroomError NOT_FOUND; FORBIDDEN without the root token; INTEGRITY
   * @example
   * ```ts
   * await client.revokeToken("ci");
   * ```
   */
  async revokeToken(name: string, options: CallOptions = {}): Promise<Revoked> {
    return this.#connection.send("Revoked", "DELETE", tokenUrl(name), options);
  }

  /**
   * Creates a transit key, which encrypts or signs in the server and never leaves it.
   * @param name A path, as secrets have them.
   * @throws StrongroomError ALREADY_EXISTS; VAULT_LOCKED; FORBIDDEN without the root token; RATE_LIMITED; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * await client.createTransitKey("app/backups");
   * ```
   */
  async createTransitKey(
    name: string,
    { type, exportable, key, ...options }: CreateTransitKeyOptions = {},
  ): Promise<TransitKey> {
    const fields = { type, exportable, key: optionalBase64(key) };
    return this.#connection.send("TransitKey", "POST", transitUrl("keys", name), options, { fields });
  }

  /**
   * Lists the transit keys within the token's paths.
   * @throws StrongroomError VAULT_LOCKED; INTERNAL
   * @example
   * ```ts
   * const { keys } = await client.listTransitKeys();
   * ```
   */
  listTransitKeys(options: CallOptions = {}): Promise<TransitKeyList> {
    return this.#connection.send("TransitKeyList", "GET", "/v1/transit/keys", options);
  }

  /**
   * Returns a transit key's settings, versions and public keys.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { latestVersion } = await client.showTransitKey("app/backups");
   * ```
   */
  async showTransitKey(name: string, options: CallOptions = {}): Promise<TransitKey> {
    return this.#connection.send("TransitKey", "GET", transitUrl("keys", name), options);
  }

  /**
   * Adds a version to a transit key. Earlier versions still decrypt and verify.
   * @param options `key`: a key to import in place of a new, random one.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST; FORBIDDEN without the root token
   * @example
   * ```ts
   * await client.rotateTransitKey("app/backups");
   * ```
   */
  async rotateTransitKey(
    name: string,
    { key, ...options }: Pick<CreateTransitKeyOptions, "key"> & CallOptions = {},
  ): Promise<TransitKey> {
    const fields = { key: optionalBase64(key) };
    return this.#connection.send("TransitKey", "POST", transitUrl("keys", name, "/rotate"), options, { fields });
  }

  /**
   * Changes the settings of a transit key.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST; FORBIDDEN without the root token
   * @example
   * ```ts
   * await client.configureTransitKey("app/backups", { minDecryptionVersion: 2 });
   * ```
   */
  async configureTransitKey(
    name: string,
    { minDecryptionVersion, deletionAllowed, ...options }: ConfigureTransitKeyOptions,
  ): Promise<TransitKey> {
    const fields = { minDecryptionVersion, deletionAllowed };
    return this.#connection.send("TransitKey", "POST", transitUrl("keys", name, "/config"), options, { fields });
  }

  /**
   * Deletes a transit key whose `deletionAllowed` is true. Ciphertext that it made is lost.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST; FORBIDDEN without the root token
   * @example
   * ```ts
   * await client.deleteTransitKey("app/backups");
   * ```
   */
  async deleteTransitKey(name: string, options: CallOptions = {}): Promise<TransitDeleted> {
    return this.#connection.send("TransitDeleted", "DELETE", transitUrl("keys", name), options);
  }

  /**
   * Returns the private parts of a transit key that was made `exportable`.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST; FORBIDDEN without the root token
   * @example
   * ```ts
   * const { keys } = await client.exportTransitKey("app/backups");
   * ```
   */
  async exportTransitKey(name: string, options: CallOptions = {}): Promise<ExportedTransitKey> {
    return this.#connection.send("ExportedTransitKey", "GET", transitUrl("export", name), options);
  }

  /**
   * Encrypts with a transit key. Returns the ciphertext, as `vault:v1:…`.
   * @param plaintext At most 1 MiB by default; with an RSA key, 190 or 446 bytes.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const ciphertext = await client.encrypt("app/backups", "s3cr3t");
   * ```
   */
  async encrypt(name: string, plaintext: Text, { aad, ...options }: EncryptOptions = {}): Promise<string> {
    return resultField(await this.#use("encrypt", name, { plaintext, aad }, options), "ciphertext");
  }

  /**
   * Decrypts with a transit key. Returns the plaintext in memory of its own, which can be wiped.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST, also when the ciphertext is damaged or of another key
   * @example
   * ```ts
   * const plaintext = await client.decrypt("app/backups", ciphertext);
   * ```
   */
  async decrypt(
    name: string,
    ciphertext: string,
    { aad, ...options }: EncryptOptions = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    return decodeBase64(resultField(await this.#use("decrypt", name, { ciphertext, aad }, options), "plaintext"));
  }

  /**
   * Unwraps the file key of an age file with an `x25519` key. Returns it in memory of its own, which can be wiped.
   * @param stanza Parts of an X25519 stanza in the file's header, 32 bytes each.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST, also when the stanza is for another recipient
   * @example
   * ```ts
   * const fileKey = await client.unwrap("backup/identity", { share, wrapped });
   * ```
   */
  async unwrap(
    name: string,
    { share, wrapped }: { readonly share: Uint8Array; readonly wrapped: Uint8Array },
    options: CallOptions = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    const stanza = { share: optionalBase64(share), wrapped: optionalBase64(wrapped) };
    return decodeBase64(resultField(await this.#use("unwrap", name, stanza, options), "fileKey"));
  }

  /**
   * Encrypts a ciphertext again under the newest version of its key, without showing the plaintext.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const renewed = await client.rewrap("app/backups", ciphertext);
   * ```
   */
  async rewrap(name: string, ciphertext: string, { aad, ...options }: EncryptOptions = {}): Promise<string> {
    return resultField(await this.#use("rewrap", name, { ciphertext, aad }, options), "ciphertext");
  }

  /**
   * Signs with a transit key. Returns the signature, as `vault:v1:…`.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const signature = await client.sign("app/releases", message);
   * ```
   */
  async sign(name: string, input: Text, options: SignOptions = {}): Promise<string> {
    const { hash, marshaling, signatureAlgorithm, prehashed, ...call } = options;
    const fields = { input, hash, marshaling, signatureAlgorithm, prehashed };
    return resultField(await this.#use("sign", name, fields, call), "signature");
  }

  /**
   * Returns whether a signature of `sign` is right.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * if (!(await client.verify("app/releases", message, signature))) throw new Error("forged");
   * ```
   */
  async verify(name: string, input: Text, signature: string, options: SignOptions = {}): Promise<boolean> {
    const { hash, marshaling, signatureAlgorithm, prehashed, ...call } = options;
    const fields = { input, signature, hash, marshaling, signatureAlgorithm, prehashed };
    return resultField(await this.#use("verify", name, fields, call), "valid");
  }

  /**
   * Makes a MAC with a transit key of type `hmac` or `aes256-gcm96`. Returns it as `vault:v1:…`.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const mac = await client.hmac("app/cookies", "user=47");
   * ```
   */
  async hmac(
    name: string,
    input: Text,
    { hash, ...options }: Pick<SignOptions, "hash"> & CallOptions = {},
  ): Promise<string> {
    return resultField(await this.#use("hmac", name, { input, hash }, options), "hmac");
  }

  /**
   * Runs up to 1000 inputs in one request. The result of a refused input has `error` and `code`.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const results = await client.transitBatch("encrypt", "app/backups", [{ plaintext: "a" }, { plaintext: "b" }]);
   * ```
   */
  async transitBatch(
    use: TransitUse,
    name: string,
    inputs: readonly TransitBatchInput[],
    options: CallOptions = {},
  ): Promise<readonly TransitResult[]> {
    const body = jsonListObject("batch", inputs.map(inputFields));
    const sent = this.#connection.send(resultShapes[use], "POST", transitUrl(use, name), options, {
      body,
      readsOnly: true,
    });
    const { results = [] } = await sent;
    if (results.length !== inputs.length) throw unexpectedResults();
    return results;
  }

  /**
   * Returns a new data key, in plain and encrypted by a transit key: `decrypt` gives the same key.
   * @param options `bits`: 128, 256 or 512. Default: 256.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { key, ciphertext } = await client.dataKey("app/backups");
   * ```
   */
  async dataKey(
    name: string,
    { bits, aad, ...options }: EncryptOptions & { readonly bits?: 128 | 256 | 512 | undefined } = {},
  ): Promise<{ readonly key: Uint8Array<ArrayBuffer>; readonly ciphertext: string }> {
    const content = { fields: { bits, aad: optionalBase64(aad) }, readsOnly: true };
    const result = await this.#connection.send("DataKey", "POST", transitUrl("datakey", name), options, content);
    return { key: decodeBase64(resultField(result, "plaintext")), ciphertext: resultField(result, "ciphertext") };
  }

  /**
   * Returns random bytes of the server's operating system.
   * @param count 1 to 65536.
   * @throws StrongroomError VAULT_LOCKED; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const salt = await client.randomBytes(16);
   * ```
   */
  async randomBytes(count: number, options: CallOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    const content = { fields: { bytes: count }, readsOnly: true };
    return decodeBase64(
      (await this.#connection.send("RandomBytes", "POST", "/v1/transit/random", options, content)).random,
    );
  }

  /**
   * Returns the current one-time code of a secret that is a TOTP seed. The seed stays in the server.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTEGRITY; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { code, validFor } = await client.oneTimeCode("web/wiki/totp");
   * ```
   */
  async oneTimeCode(path: string, options: CallOptions = {}): Promise<OneTimeCode> {
    return this.#connection.send("OneTimeCode", "POST", secretUrl(path, "otp"), options, { readsOnly: true });
  }

  /**
   * Returns records of the audit log, oldest first, and in `head` where the log ends.
   * @throws StrongroomError FORBIDDEN without `audit`; VAULT_LOCKED for a client token until the first unlock; NOT_FOUND when
   * the server has no audit log; INTERNAL; BAD_REQUEST
   * @example
   * ```ts
   * const { records, head } = await client.readAudit({ after: 4711 });
   * ```
   */
  async readAudit({ after, limit, ...options }: AuditOptions = {}): Promise<AuditPage> {
    return this.#connection.send("AuditPage", "GET", `/v1/audit${queryString({ after, limit })}`, options);
  }

  /**
   * Returns for each checkpoint of the audit log whether this vault signed it.
   * @param checkpoints At most 1000.
   * @throws StrongroomError VAULT_LOCKED; FORBIDDEN without `audit`; INTERNAL; BAD_REQUEST for more than 1000
   * @example
   * ```ts
   * const { verdicts } = await client.verifyAudit([{ log, seq, time, chain, key, mac }]);
   * ```
   */
  async verifyAudit(checkpoints: readonly AuditCheckpoint[], options: CallOptions = {}): Promise<AuditVerdicts> {
    const known = checkpoints.map(({ log, seq, time, chain, from, reason, key, mac }) => ({
      ...{ log, seq, time, chain, key, mac },
      ...(from !== undefined && { from }),
      ...(reason !== undefined && { reason }),
    }));
    const body = jsonListObject("checkpoints", known);
    return this.#connection.send("AuditVerdicts", "POST", "/v1/audit/verify", options, { body, readsOnly: true });
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
    return this.#connection.send("Acknowledgement", "POST", "/v1/shutdown", options);
  }

  /**
   * Links all encrypted secrets, as of one moment, into a new directory on the server's machine; the caller removes it.
   * @param options `reader`: the process that will read it (see openapi.json). With it, a server whose disk is full or
   * read-only returns the vault's own directory, marked `direct`.
   * @throws StrongroomError BAD_REQUEST before init
   * @example
   * ```ts
   * const { directory, secretCount } = await client.snapshot();
   * ```
   */
  async snapshot({
    reader,
    ...options
  }: CallOptions & { readonly reader?: string | undefined } = {}): Promise<Snapshot> {
    return this.#connection.send("Snapshot", "POST", `/v1/snapshot${queryString({ reader })}`, options);
  }

  /**
   * Creates a code for the review page, which works once, within a minute.
   * @throws StrongroomError NOT_FOUND when the server runs with `--review-page off`; VAULT_LOCKED
   * @example
   * ```ts
   * const { url } = await client.createReview();
   * ```
   */
  createReview(options: CallOptions = {}): Promise<ReviewCode> {
    return this.#connection.send("ReviewCode", "POST", "/v1/review", options);
  }

  /**
   * Returns the server's metrics in the Prometheus text format.
   * @throws StrongroomError FORBIDDEN without `metrics`
   * @example
   * ```ts
   * const text = await client.metrics();
   * ```
   */
  metrics(options: CallOptions = {}): Promise<string> {
    return this.#connection.text("/v1/metrics", options);
  }

  /**
   * Returns the figures of the second that follows; takes up to a second. Times are in milliseconds, sizes in bytes.
   * @throws StrongroomError FORBIDDEN without `metrics`
   * @example
   * ```ts
   * const { getP99, connections } = await client.vitals();
   * ```
   */
  async vitals(options: CallOptions = {}): Promise<VitalSigns> {
    return this.#connection.send("VitalSigns", "GET", "/v1/vitals?lines=1", options);
  }

  /**
   * Returns the OpenAPI document of the server, with the limits of its settings.
   * @throws StrongroomError as every method
   * @example
   * ```ts
   * const { openapi } = await client.openapi(); // "3.1.1"
   * ```
   */
  openapi(options: CallOptions = {}): Promise<{ readonly [name: string]: unknown }> {
    return this.#connection.send("OpenApi", "GET", "/v1/openapi.json", options);
  }

  /**
   * Closes all connections and cancels running requests, which throw ABORTED; throws nothing. A closed client sends nothing
   * more.
   * @example
   * ```ts
   * await client.close();
   * ```
   */
  close(): Promise<void> {
    return this.#connection.close();
  }

  /**
   * Closes the client at the end of a block; throws nothing.
   * @example
   * ```ts
   * await using client = new StrongroomClient();
   * ```
   */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #use(use: TransitUse, name: string, input: TransitBatchInput, options: CallOptions): Promise<TransitResult> {
    const content = { fields: inputFields(input), readsOnly: true };
    return this.#connection.send(resultShapes[use], "POST", transitUrl(use, name), options, content);
  }
}
