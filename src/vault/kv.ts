/** Secrets as Vault's KV engine, version 2, has them: each operation of a client, by the key worker. */
import type { Bytes, SharedBytes, VersionChange } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { type Permit, unconditional } from "./conditions.js";
import type { VaultSecrets } from "./secrets.js";

/** `status` 404: the version is deleted or destroyed, and the response has only its metadata. */
export type KvReply = { readonly status: 200 | 404; readonly response: Bytes };

export class VaultKv {
  readonly #secrets: VaultSecrets;

  constructor(secrets: VaultSecrets) {
    this.#secrets = secrets;
  }

  /** The response holds the value: wipe it once it is sent. @throws VaultError NOT_FOUND, INTEGRITY, VAULT_LOCKED, UNAVAILABLE */
  async read(path: string): Promise<KvReply> {
    try {
      return { status: 200, response: await this.#secrets.getForVault(path) };
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== "NOT_FOUND") throw error;
      return this.readVersion(path, null);
    }
  }

  /** As `read`. `version` null: the current one. `subkeys`: the depth to which keys are shown without values. */
  readVersion(path: string, version: number | null, subkeys: number | null = null): Promise<KvReply> {
    return this.#secrets.askAbout(path, (blob) => ({ op: "kvRead", path, blob, version, subkeys }));
  }

  /** Returns what is said of the new version. @throws VaultError BAD_REQUEST, NOT_FOUND for a patch, … as read */
  async write(path: string, body: SharedBytes, isPatch: boolean, permit: Permit): Promise<Bytes> {
    return (await this.#secrets.write(path, { kind: "kvWrite", body, isPatch }, unconditional, permit)).response;
  }

  /** @throws VaultError NOT_FOUND, … as read */
  async metadata(path: string): Promise<Bytes> {
    return (await this.#secrets.askAbout(path, (blob) => ({ op: "kvMetadata", path, blob }))).response;
  }

  /** @throws VaultError BAD_REQUEST, NOT_FOUND for a patch, … as read */
  async configure(path: string, body: SharedBytes, isPatch: boolean, permit: Permit): Promise<void> {
    await this.#secrets.write(path, { kind: "kvConfigure", body, isPatch }, unconditional, permit);
  }

  /** `body` null: the current version. What is missing stays so. @throws VaultError BAD_REQUEST, … as read */
  async changeVersions(path: string, body: SharedBytes | null, change: VersionChange, permit: Permit): Promise<void> {
    const versions = body === null ? "current" : await this.#secrets.versionsIn(body);
    try {
      await this.#secrets.changeVersions(path, versions, change, { permit, mayDestroyCurrent: true });
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== "NOT_FOUND") throw error;
    }
  }
}
