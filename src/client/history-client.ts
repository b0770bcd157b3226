/** Client methods for the versions of a secret. */
import type { Deleted, SecretHistory, Secret as SecretResponse, Stored } from "./api-types.js";
import type { ChangeOptions } from "./method-options.js";
import type { CallOptions } from "./request.js";
import { Secret } from "./secret.js";
import { secretTarget, sendChange } from "./secret-requests.js";
import { VaultClient } from "./vault-client.js";

export class HistoryClient extends VaultClient {
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
    return sendChange(this.requester, ["POST", secretTarget(path, "versions")], options, { fields: { version } });
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
    return sendChange(this.requester, ["DELETE", secretTarget(path, "versions")], options);
  }
}
