/**
 * Owns the vault: its state, and the order of what storage and the key worker do for one request. It never looks into a
 * body or a blob. The truth "unlocked" is "the key worker holds the key"; the flag here mirrors it.
 */
import type { Bytes, Operation, RequestOf } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { StartError, VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { SecretStore } from "../storage/secret-store.js";
import { Gate } from "./gate.js";
import { IdleDeadline } from "./idle.js";
import { KeyWorker } from "./key-worker.js";
import { listReply } from "./list.js";
import { Turns } from "./turns.js";

export type VaultSettings = {
  readonly scryptLogN: number;
  readonly maxValueBytes: number;
  readonly idleTimeoutMs: number;
};

export type VaultStatus = {
  readonly initialized: boolean;
  readonly locked: boolean;
  readonly secretCount: number;
  readonly vaultPath: string;
  readonly idleTimeoutMs: number;
  readonly lastActivity: string;
};

/** What a list asks for; see `SecretStore.list`. `limit` null: all. */
export type ListQuery = { readonly prefix: string; readonly after: string; readonly limit: number | null };

/** The beginning of a blob that holds all of its sealed metadata, with room to spare. */
const headBytes = 32 * 1024;

export class Vault {
  readonly #store: SecretStore;
  readonly #settings: VaultSettings;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #worker: KeyWorker;
  readonly #idle: IdleDeadline;
  readonly #gate = new Gate();
  readonly #paths = new Turns();
  #unlocked = false;
  #closed = false;
  /** The present thread has seen a passphrase. */
  #derived = false;
  #locking: Promise<void> | null = null;

  private constructor(store: SecretStore, settings: VaultSettings, clock: Clock, log: Log) {
    this.#store = store;
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    this.#idle = new IdleDeadline(clock, settings.idleTimeoutMs);
    this.#worker = KeyWorker.start({ maxValueBytes: settings.maxValueBytes }, () => this.#workerEnded());
  }

  /** @throws StartError when the vault's header cannot be understood. */
  static async open(store: SecretStore, settings: VaultSettings, clock: Clock, log: Log): Promise<Vault> {
    const vault = new Vault(store, settings, clock, log);
    try {
      await vault.#mount();
    } catch (error) {
      await vault.#worker.stop();
      const reason = error instanceof VaultError ? error.message : "the key worker does not start";
      throw new StartError(`${store.vaultPath}: ${reason}: restore the vault from a backup, then start again`);
    }
    return vault;
  }

  status(): VaultStatus {
    this.#lockIfIdle();
    return {
      initialized: this.#store.header !== null,
      locked: !this.#unlocked,
      secretCount: this.#store.count,
      vaultPath: this.#store.vaultPath,
      idleTimeoutMs: this.#settings.idleTimeoutMs,
      lastActivity: new Date(this.#idle.lastActivity).toISOString(),
    };
  }

  /**
   * Makes a new vault and unlocks it; answers where the one that it replaces is kept.
   * @throws VaultError BAD_REQUEST, ALREADY_EXISTS, RATE_LIMITED, VAULT_LOCKED, UNAVAILABLE
   */
  async init(body: Bytes): Promise<{ readonly keptAt: string | null }> {
    await this.#settled();
    const { scryptLogN: logN } = this.#settings;
    const { header } = await this.#ask<"init">({ op: "init", body, logN, now: this.#clock.now() });
    const keptAt = await this.#gate.exclusive(() => this.#startNewVault(header));
    this.#becomeUnlocked();
    this.#log.info({ event: "initialized" });
    return { keptAt };
  }

  /** @throws VaultError BAD_REQUEST, UNAUTHORIZED, RATE_LIMITED, VAULT_LOCKED */
  async unlock(body: Bytes): Promise<Bytes> {
    await this.#settled();
    const { reply } = await this.#ask<"unlock">({ op: "unlock", body });
    this.#becomeUnlocked();
    this.#log.info({ event: "unlocked" });
    return reply;
  }

  /** Resolves once the master key is wiped and everything that was under way has ended. */
  lock(): Promise<void> {
    this.#unlocked = false;
    this.#locking ??= this.#wipeAndReplace().finally(() => {
      this.#locking = null;
    });
    return this.#locking;
  }

  /** Counts as activity; to be called for every secret operation before anything else of it is looked at. */
  admit(): void {
    this.#lockIfIdle();
    this.#idle.touch();
    if (!this.#unlocked) throw new VaultError("VAULT_LOCKED", "the vault is locked: unlock it first");
  }

  /** @throws VaultError VAULT_LOCKED, BAD_REQUEST, INTEGRITY, UNAVAILABLE */
  put(path: string, body: Bytes): Promise<Bytes> {
    return this.#secretOperation(() =>
      this.#paths.take(path, async () => {
        const previous = await this.#store.read(path, headBytes);
        const sealed = await this.#ask<"seal">({ op: "seal", path, body, previous, now: this.#clock.now() });
        await this.#store.write(path, sealed.blob);
        return sealed.reply;
      }),
    );
  }

  /** The reply's bytes hold the value: wipe them once they are sent. @throws VaultError NOT_FOUND, … as put */
  get(path: string): Promise<Bytes> {
    return this.#secretOperation(async () => {
      const blob = await this.#store.read(path);
      if (blob === null) throw notFound(path);
      const { reply } = await this.#ask<"open">({ op: "open", path, blob });
      return reply;
    });
  }

  /** @throws VaultError VAULT_LOCKED, NOT_FOUND, UNAVAILABLE */
  remove(path: string): Promise<void> {
    return this.#secretOperation(() =>
      this.#paths.take(path, async () => {
        if (!(await this.#store.remove(path))) throw notFound(path);
      }),
    );
  }

  /** @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  list(query: ListQuery): Promise<readonly Bytes[]> {
    const describe = (request: RequestOf<"describe">) => this.#ask<"describe">(request);
    return this.#secretOperation(() => listReply(this.#store, describe, query, headBytes));
  }

  /** Locks, lets what is under way end, and gives the thread and the claim on the files back. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.lock();
    await this.#worker.stop();
    await this.#store.close();
  }

  #secretOperation<T>(work: () => Promise<T>): Promise<T> {
    return this.#gate.shared(async () => {
      if (!this.#unlocked) throw new VaultError("VAULT_LOCKED", "the vault is locked: unlock it first");
      return work();
    });
  }

  async #ask<O extends Operation>(request: RequestOf<O>) {
    try {
      return await this.#worker.call<O>(request);
    } catch (error) {
      if (error instanceof VaultError && error.code === "VAULT_LOCKED") this.#unlocked = false;
      throw error;
    }
  }

  async #startNewVault(header: Bytes): Promise<string | null> {
    let keptAt: string | null;
    try {
      keptAt = await this.#store.startNewVault(header);
    } catch (error) {
      await this.#worker.call<"discard">({ op: "discard" });
      throw error;
    }
    try {
      await this.#worker.call<"adopt">({ op: "adopt" });
      return keptAt;
    } catch (cause) {
      await this.#mount(); // the thread that knew the new key is gone; the new vault stands
      throw new VaultError("INTERNAL", "the key worker ended: the new vault is made and locked, unlock it", { cause });
    }
  }

  /** Before a derivation: a thread that is about to be replaced must not begin one. */
  async #settled(): Promise<void> {
    this.#lockIfIdle();
    while (this.#locking !== null) await this.#locking;
    this.#derived = true;
  }

  #becomeUnlocked(): void {
    this.#unlocked = this.#locking === null;
    this.#idle.touch();
    this.#idle.watch(() => this.#lockIfIdle());
  }

  #lockIfIdle(): void {
    if (!this.#unlocked || !this.#idle.expired()) return;
    this.#log.info({ event: "idle-locked" });
    this.lock().catch((error: unknown) => this.#log.error({ event: "lock-failed", error }));
  }

  async #wipeAndReplace(): Promise<void> {
    this.#idle.stop();
    await this.#worker.call<"lock">({ op: "lock" });
    await this.#gate.exclusive(async () => {
      if (this.#closed || !this.#derived) return;
      this.#worker.replace();
      this.#derived = false;
      this.#remount();
    });
    this.#log.info({ event: "locked" });
  }

  /** Tells a fresh thread which vault it serves; first in its queue, so that everything after finds it told. */
  async #mount(): Promise<void> {
    const header = this.#store.header;
    await this.#worker.call<"mount">({ op: "mount", header: header && new Uint8Array(header) });
  }

  #workerEnded(): void {
    this.#unlocked = false;
    this.#idle.stop();
    this.#log.error({ event: "key-worker-ended", hint: "the vault is locked; a fresh thread has taken over" });
    this.#remount();
  }

  /** Not awaited: whatever is asked next stands behind it in the thread's queue. */
  #remount(): void {
    this.#mount().catch((error: unknown) => this.#log.error({ event: "mount-failed", error }));
  }
}

function notFound(path: string): VaultError {
  return new VaultError("NOT_FOUND", `there is no secret at ${path}`);
}
