/** Owns the vault: its states from init to close, and who may work on it when. It never looks into a body or a blob. */
import type { Bytes } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { StartError, VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { SecretStore, StoredSnapshot } from "../storage/secret-store.js";
import { Entries } from "./entries.js";
import { KeyState, type KeyStateSettings } from "./key-state.js";
import type { ListQuery } from "./lister.js";
import { ReadWriteLock } from "./sync/read-write-lock.js";

export type VaultSettings = KeyStateSettings & { readonly scryptLogN: number; readonly cacheBytes: number };

export type VaultStatus = {
  readonly initialized: boolean;
  readonly locked: boolean;
  readonly secretCount: number;
  readonly vaultPath: string;
  readonly idleTimeoutMs: number;
  readonly lastActivity: string;
};

export class Vault {
  readonly #store: SecretStore;
  readonly #settings: VaultSettings;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #gate: ReadWriteLock;
  readonly #keyState: KeyState;
  readonly #entries: Entries;

  private constructor(
    store: SecretStore,
    settings: VaultSettings,
    clock: Clock,
    log: Log,
    gate: ReadWriteLock,
    keyState: KeyState,
  ) {
    this.#store = store;
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    this.#gate = gate;
    this.#keyState = keyState;
    this.#entries = new Entries(store, keyState, clock, settings.cacheBytes);
  }

  /** @throws StartError when the vault's header cannot be understood. */
  static async open(store: SecretStore, settings: VaultSettings, clock: Clock, log: Log): Promise<Vault> {
    const gate = new ReadWriteLock();
    try {
      const keyState = await KeyState.begin(() => store.header, gate, settings, clock, log);
      return new Vault(store, settings, clock, log, gate, keyState);
    } catch (error) {
      const reason =
        error instanceof VaultError
          ? `${error.message}: put its header.json back from a backup, or restore one into another home`
          : "the key worker does not start: install strongroom anew";
      throw new StartError(`${store.vaultPath}: ${reason}, then start again`);
    }
  }

  status(): VaultStatus {
    this.#keyState.lockIfIdle();
    return {
      initialized: this.#store.header !== null,
      locked: !this.#keyState.unlocked,
      secretCount: this.#store.count,
      vaultPath: this.#store.vaultPath,
      idleTimeoutMs: this.#settings.idleTimeoutMs,
      lastActivity: new Date(this.#keyState.lastActivity).toISOString(),
    };
  }

  /**
   * Makes a new vault and unlocks it; answers where the one that it replaces is kept.
   * @throws VaultError BAD_REQUEST, ALREADY_EXISTS, RATE_LIMITED, VAULT_LOCKED, UNAVAILABLE
   */
  async init(body: Bytes): Promise<{ readonly keptAt: string | null; readonly locked: boolean }> {
    const request = { op: "init", body, logN: this.#settings.scryptLogN, now: this.#clock.now() } as const;
    const { header } = await wipingAfter(body, this.#keyState.derive(request));
    const keptAt = await this.#gate.exclusive(() => this.#startNewVault(header));
    this.#keyState.becomeUnlocked();
    this.#log.info({ event: "initialized" });
    return { keptAt, locked: !this.#keyState.unlocked };
  }

  /**
   * `permit` is asked once the passphrase was found right; what it throws is thrown, and nothing is unlocked.
   * @throws VaultError BAD_REQUEST, UNAUTHORIZED, RATE_LIMITED, VAULT_LOCKED
   */
  async unlock(body: Bytes, permit: () => void): Promise<Bytes> {
    const { reply } = await wipingAfter(body, this.#keyState.derive({ op: "unlock", body }));
    try {
      permit();
    } catch (error) {
      if (!this.#keyState.unlocked) await this.#keyState.lock();
      throw error;
    }
    this.#keyState.becomeUnlocked();
    this.#log.info({ event: "unlocked" });
    return reply;
  }

  /** Resolves once the master key is wiped and everything that was under way has ended. */
  lock(): Promise<void> {
    return this.#keyState.lock();
  }

  /** Counts as activity; to be called for every secret operation before anything else of it is looked at. */
  admit(): void {
    this.#keyState.lockIfIdle();
    this.#keyState.touch();
    this.#keyState.mustBeUnlocked();
  }

  /** @throws VaultError VAULT_LOCKED, BAD_REQUEST, INTEGRITY, UNAVAILABLE */
  put(path: string, body: Bytes): Promise<Bytes> {
    return wipingAfter(
      body,
      this.#secretOperation(() => this.#entries.put(path, body)),
    );
  }

  /** The reply's bytes hold the value: wipe them once they are sent. @throws VaultError NOT_FOUND, … as put */
  get(path: string): Promise<Bytes> {
    return this.#secretOperation(() => this.#entries.get(path));
  }

  /** @throws VaultError VAULT_LOCKED, NOT_FOUND, UNAVAILABLE */
  remove(path: string): Promise<void> {
    return this.#secretOperation(() => this.#entries.remove(path));
  }

  /** @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  list(query: ListQuery): Promise<readonly Bytes[]> {
    return this.#secretOperation(() => this.#entries.list(query));
  }

  /**
   * Takes a picture of all sealed secrets at one moment, locked or not. It passes no gate: a lock or a forced init need
   * not wait for it.
   * @throws VaultError BAD_REQUEST before the first init, UNAVAILABLE
   */
  async snapshot(): Promise<StoredSnapshot> {
    if (this.#store.header === null) throw new VaultError("BAD_REQUEST", "the vault is not initialized: init it first");
    return this.#store.snapshot();
  }

  /** Locks, lets what is under way end, and gives the thread and the claim on the files back. */
  async close(): Promise<void> {
    try {
      await this.#keyState.close();
    } finally {
      await this.#gate.exclusive(() => this.#store.close());
    }
  }

  #secretOperation<T>(work: () => Promise<T>): Promise<T> {
    return this.#gate.shared(() => {
      this.#keyState.mustBeUnlocked();
      return work();
    });
  }

  async #startNewVault(header: Bytes): Promise<string | null> {
    let keptAt: string | null;
    try {
      keptAt = await this.#store.startNewVault(header);
    } catch (error) {
      await this.#keyState.ask({ op: "discard" }).catch(() => {}); // a thread that ended holds no candidate
      throw error;
    }
    this.#entries.forget();
    try {
      await this.#keyState.ask({ op: "adopt" });
      return keptAt;
    } catch (cause) {
      await this.#keyState.mount(); // the thread that knew the new key is gone; the new vault stands
      throw new VaultError("INTERNAL", "the key worker ended: the new vault is made and locked, unlock it", { cause });
    }
  }
}

/** Wipes a body that did not get as far as the key worker; one that was moved there has no bytes here any more. */
async function wipingAfter<T>(body: Bytes, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } finally {
    if (body.byteLength > 0) body.fill(0);
  }
}
