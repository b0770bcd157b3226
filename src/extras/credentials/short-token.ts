/** Client with a token that can read some secrets, is valid for an hour, and is renewed with the root token. */
import { makeNarrowToken } from "../../cli/kit/agents/narrow-token.js";
import { clientEnvironment } from "../../cli/kit/args/start-settings.js";
import { type ConnectionFlags, withClient } from "../../cli/kit/connection/server.js";
import type { Io } from "../../cli/kit/io.js";
import { StrongroomClient } from "../../client/client.js";

const ttlMs = 3_600_000;

export class ShortToken {
  readonly #io: Io;
  readonly #flags: ConnectionFlags;
  readonly #paths: readonly string[];
  #client: StrongroomClient | null = null;
  /** Null: the token that this command was given, which is used as it is. */
  #name: string | null = null;
  #renewAt = 0;

  constructor(io: Io, flags: ConnectionFlags, paths: readonly string[]) {
    this.#io = io;
    this.#flags = { ...flags, nonInteractive: true };
    this.#paths = paths;
  }

  /** Returns a client whose token is valid for half an hour at least. @throws CommandFailure, also while the vault is locked */
  async client(): Promise<StrongroomClient> {
    const now = this.#io.clock.now();
    if (this.#client === null || (this.#name !== null && now >= this.#renewAt)) {
      const before = this.#name;
      await this.#make(now + ttlMs / 2);
      if (before !== null) await this.#revoke(before);
    }
    if (this.#client === null) throw new Error("a token was made without a client");
    return this.#client;
  }

  /** Revokes the token, where this class made it. */
  async end(): Promise<void> {
    await this.#client?.close();
    if (this.#name !== null) await this.#revoke(this.#name);
  }

  async #make(renewAt: number): Promise<void> {
    const { home, address, cacert: certificateFile, timeout: timeoutMs, tokenFile } = this.#flags;
    const environment = await clientEnvironment(this.#io.env, home);
    const place = { home, address, certificateFile, timeoutMs, environment };
    await withClient(this.#io, this.#flags, async (given) => {
      const rights = { can: ["get"], paths: [...this.#paths], ttlSeconds: ttlMs / 1000 } as const;
      const made = await makeNarrowToken(given, "credentials", rights);
      await this.#client?.close();
      this.#client = new StrongroomClient({ ...place, ...(made === null ? { tokenFile } : { token: made.token }) });
      this.#name = made?.name ?? null;
      this.#renewAt = renewAt;
    });
  }

  async #revoke(name: string): Promise<void> {
    await withClient(this.#io, this.#flags, (root) => root.revokeToken(name)).catch(() => {}); // it ends by itself
  }
}
