/** Client methods for the vault and the server; those for secrets are in the class that extends this one. */

import { Audit } from "./access/audit-client.js";
import { Tokens } from "./access/tokens.js";
import type { Acknowledgement, CreatedKey, Initialized, KeyList, Rotated, Snapshot, VaultStatus } from "./api-types.js";
import type { ClientOptions, Text } from "./method-options.js";
import { type CallOptions, encoded, queryOf } from "./request.js";
import { Requester } from "./requester.js";

export class VaultClient implements AsyncDisposable {
  protected readonly requester: Requester;
  /** Client tokens, and the token of this client. */
  readonly tokens: Tokens;
  /** The audit log. */
  readonly audit: Audit;

  /**
   * Reads no file and opens no connection before the first request; throws nothing.
   * @example
   * ```ts
   * const client = new StrongroomClient({ timeoutMs: 5_000 });
   * ```
   */
  constructor(options: ClientOptions = {}) {
    this.requester = new Requester(options);
    this.tokens = new Tokens(this.requester);
    this.audit = new Audit(this.requester);
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
    return this.requester.send("POST", "/v1/init", options, { fields: { passphrase, force: options.force } });
  }

  /**
   * Unlocks the vault, and checks the passphrase even when it is unlocked. The text of a key will do, too.
   * @throws StrongroomError UNAUTHORIZED with `credential` "passphrase"; RATE_LIMITED with `retryAfter` in seconds;
   * VAULT_LOCKED while a lock is running; INTEGRITY for a header that was changed; INTERNAL; BAD_REQUEST, also before init
   * @example
   * ```ts
   * await client.unlock(passphrase);
   * ```
   */
  unlock(passphrase: Text, options: CallOptions = {}): Promise<Acknowledgement> {
    return this.requester.send("POST", "/v1/unlock", options, { fields: { passphrase } });
  }

  /**
   * Changes the passphrase; the vault stays locked or unlocked. `passphrase` may be the text of a key.
   * @throws StrongroomError UNAUTHORIZED with `credential` "passphrase"; RATE_LIMITED; VAULT_LOCKED while a lock is running;
   * INTEGRITY; INTERNAL; BAD_REQUEST, also before init
   * @example
   * ```ts
   * await client.changePassphrase(passphrase, newPassphrase);
   * ```
   */
  changePassphrase(passphrase: Text, newPassphrase: Text, options: CallOptions = {}): Promise<Acknowledgement> {
    return this.requester.send("POST", "/v1/passphrase", options, { fields: { passphrase, newPassphrase } });
  }

  /**
   * Returns the ways into the vault: the passphrase and the keys, without their texts.
   * @throws StrongroomError INTERNAL; BAD_REQUEST before init
   * @example
   * ```ts
   * const { keys } = await client.keys();
   * ```
   */
  keys(options: CallOptions = {}): Promise<KeyList> {
    return this.requester.send("GET", "/v1/keys", options);
  }

  /**
   * Creates a key, which opens the vault as the passphrase does. Its text is returned once and stored nowhere.
   * @throws StrongroomError ALREADY_EXISTS for a label twice; UNAUTHORIZED with `credential` "passphrase"; RATE_LIMITED;
   * VAULT_LOCKED while a lock is running; INTEGRITY; INTERNAL; BAD_REQUEST, also before init
   * @example
   * ```ts
   * const { key } = await client.createKey(passphrase, "recovery");
   * ```
   */
  createKey(passphrase: Text, label: string, options: CallOptions = {}): Promise<CreatedKey> {
    return this.requester.send("POST", "/v1/keys", options, { fields: { passphrase, label } });
  }

  /**
   * Deletes a key, which opens nothing any more.
   * @throws StrongroomError VAULT_LOCKED; NOT_FOUND; INTERNAL; BAD_REQUEST for the last way into the vault
   * @example
   * ```ts
   * const { keys } = await client.keys();
   * for (const { id, label } of keys) if (label === "laptop") await client.deleteKey(id);
   * ```
   */
  async deleteKey(id: string, options: CallOptions = {}): Promise<Acknowledgement> {
    return this.requester.send("DELETE", `/v1/keys/${encoded(id)}`, options);
  }

  /**
   * Makes a new master key, wrapped for the passphrase and for the keys whose texts are given; `removed` in the response
   * names the other keys, which open nothing any more. What the old one sealed is sealed anew in the background: see
   * `rotation` in the status.
   * @throws StrongroomError UNAUTHORIZED with `credential` "passphrase"; RATE_LIMITED; VAULT_LOCKED while a lock is running;
   * ALREADY_EXISTS while a rotation is running; INTEGRITY; INTERNAL; BAD_REQUEST, also before init
   * @example
   * ```ts
   * const { removed } = await client.rotate(passphrase, [recoveryKey]);
   * ```
   */
  rotate(passphrase: Text, keys: readonly Text[] = [], options: CallOptions = {}): Promise<Rotated> {
    return this.requester.send("POST", "/v1/rotate", options, { fields: { passphrase, keys } });
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
    return this.requester.send("POST", "/v1/lock", options);
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
    return this.requester.request({ method: "GET", path: "/v1/status" }, options, false);
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
    return this.requester.send("POST", "/v1/shutdown", options);
  }

  /**
   * Copies all sealed secrets, as of one moment, to a new directory on the server's machine; the caller removes it. With
   * `reader` (see the contract), a full or read-only disk gives the vault's own directory instead: see `direct`.
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
    return this.requester.send("POST", `/v1/snapshot${queryOf({ reader })}`, options);
  }

  /**
   * Returns the server's metrics in Prometheus' text format. Needs the root token, or one that can `metrics`.
   * @throws StrongroomError FORBIDDEN
   * @example
   * ```ts
   * const text = await client.metrics();
   * ```
   */
  metrics(options: CallOptions = {}): Promise<string> {
    return this.requester.text("/v1/metrics", options);
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
    return this.requester.send("GET", "/v1/openapi.json", options);
  }

  /**
   * Closes all connections and cancels running requests, which throw ABORTED; nothing is sent afterwards. A closed client
   * stays closed; throws nothing.
   * @example
   * ```ts
   * await client.close();
   * ```
   */
  close(): Promise<void> {
    return this.requester.close();
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
}
