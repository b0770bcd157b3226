/** Transit keys as an ssh-agent offers them: public keys from the server, signatures made there. */

import { printable } from "../../cli/kit/output.js";
import { signingFor, sshPublicKey, sshSignature } from "../../cli/kit/ssh/ssh-public-key.js";
import { type StrongroomClient, StrongroomError, type TransitKeyEntry } from "../../client/client.js";
import type { AgentKey, AgentKeys } from "./agent.js";

type Offered = AgentKey & { readonly type: string; readonly version: number };

const signingTypes: ReadonlySet<string> = new Set(["ed25519", "ecdsa-p256", "rsa-2048", "rsa-4096"]);

export class VaultKeys implements AgentKeys {
  readonly #client: StrongroomClient;
  readonly #approve: ((question: string) => Promise<boolean>) | null;
  readonly #failed: (error: unknown) => void;
  /** One question at a time: two concurrent ones would take each other's answers from the terminal. */
  #question: Promise<unknown> = Promise.resolve();
  /** Offered keys by name. */
  #offered = new Map<string, Offered>();

  /** `approve`: asks before each signature; null: nothing asks. */
  constructor(
    client: StrongroomClient,
    approve: ((question: string) => Promise<boolean>) | null,
    failed: (error: unknown) => void,
  ) {
    this.#client = client;
    this.#approve = approve;
    this.#failed = failed;
  }

  /** While the vault is locked, the keys as they were before. */
  async list(): Promise<readonly AgentKey[]> {
    try {
      const { keys } = await this.#client.listTransitKeys();
      const signing = keys.filter(({ type }) => signingTypes.has(type));
      const offered = await Promise.all(signing.map((entry) => this.#offer(entry)));
      this.#offered = new Map(offered.flatMap((key) => (key === null ? [] : [[key.name, key]])));
    } catch (error) {
      const isLocked = error instanceof StrongroomError && error.code === "VAULT_LOCKED";
      if (!isLocked || this.#offered.size === 0) throw error;
    }
    return [...this.#offered.values()];
  }

  async sign(blob: Buffer, data: Buffer, flags: number): Promise<Buffer | null> {
    const key = this.#find(blob) ?? (await this.list().then(() => this.#find(blob)));
    const signing = key && signingFor(key.type, flags);
    if (!key || !signing) return null;
    if (!(await this.#mayUse(key.name))) return null;
    const signature = await this.#client.sign(key.name, data, signing.how);
    return sshSignature(signing.algorithm, signature);
  }

  failed(error: unknown): void {
    this.#failed(error);
  }

  #mayUse(name: string): Promise<boolean> {
    const ask = async () => this.#approve?.(`Allow a signature with the key ${printable(name)}?`) ?? true;
    const reply = this.#question.then(ask, ask);
    this.#question = reply.catch(() => {});
    return reply;
  }

  #find(blob: Buffer): Offered | undefined {
    return [...this.#offered.values()].find((key) => key.blob.equals(blob));
  }

  /** The public key of the newest version, which signs. */
  async #offer({ name, type, latestVersion: version }: TransitKeyEntry): Promise<Offered | null> {
    const known = this.#offered.get(name);
    if (known?.version === version) return known;
    const { versions } = await this.#client.showTransitKey(name);
    const blob = sshPublicKey(versions[String(version)]?.publicKey ?? "");
    return blob && { name, type, version, blob };
  }
}
