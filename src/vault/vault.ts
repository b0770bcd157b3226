/**
 * The vault: its states from init to close, and which operations may run at the same time. It never looks into a body
 * or a blob.
 */
import type { Bytes, SharedBytes } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { StartError, takesNoFiles, VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { Observers } from "../observer.js";
import type { Reader, SecretStore, StoredSnapshot } from "../storage/secret-store.js";
import { Entries } from "./entries.js";
import { HeaderChanges } from "./header-changes.js";
import { KeySlots, type Permit } from "./key-slots.js";
import { KeyState, type KeyStateSettings } from "./key-state.js";
import { RotationSweep } from "./rotation-sweep.js";
import { type CurrentHeader, OtherServers, setHeader } from "./shared/other-servers.js";
import { ReadWriteLock } from "./sync/read-write-lock.js";
import type { VaultAudit } from "./vault-audit.js";
import { type RecordKeeper, VaultRecords } from "./vault-records.js";
import { VaultReport } from "./vault-report.js";
import { VaultSecrets } from "./vault-secrets.js";
import { wipingAfter } from "./wiping.js";

export type VaultSettings = KeyStateSettings & {
  readonly scryptLogN: number;
  readonly cacheBytes: number;
  readonly maxBatchBytes: number;
};

export type VaultOptions = {
  readonly store: SecretStore;
  readonly settings: VaultSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly observers: Observers;
  /** Null: there is none. */
  readonly audit: VaultAudit | null;
};

export class Vault {
  readonly secrets: VaultSecrets;
  readonly keys: KeySlots;
  readonly records: VaultRecords;
  readonly report: VaultReport;
  readonly #store: SecretStore;
  readonly #header: CurrentHeader;
  readonly #settings: VaultSettings;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #observers: Observers;
  readonly #audit: VaultAudit | null;
  readonly #lock: ReadWriteLock;
  readonly #keyState: KeyState;
  #keeper: RecordKeeper | null = null;
  readonly #others: OtherServers;
  readonly #headerChanges: HeaderChanges;
  readonly #sweep: RotationSweep;

  private constructor(
    { store, settings, clock, log, observers, audit }: VaultOptions,
    header: CurrentHeader,
    lock: ReadWriteLock,
    keyState: KeyState,
  ) {
    this.#store = store;
    this.#header = header;
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    this.#observers = observers;
    this.#audit = audit;
    this.#lock = lock;
    this.#keyState = keyState;
    const entries = new Entries({ ...settings, store, keyState, clock, log, keepsHistory: settings.keepVersions > 0 });
    const secrets = new VaultSecrets(entries, keyState, lock);
    const vaultReplaced = () => this.#vaultReplaced();
    const others = new OtherServers({ store, header, keyState, lock, clock, log, vaultReplaced });
    const headerChanges = new HeaderChanges({ store, header, keyState, lock, log, others, vaultReplaced });
    const parts = { store, keyState, lock, entries, headerChanges, clock, log };
    const resignRecords = async () => this.#keeper?.resign();
    const sweep = new RotationSweep({ ...parts, resignRecords, requests: () => secrets.requests });
    this.secrets = secrets;
    this.records = new VaultRecords(store, keyState, lock, others);
    this.#others = others;
    this.#headerChanges = headerChanges;
    this.#sweep = sweep;
    const { idleTimeoutMs, scryptLogN } = settings;
    this.report = new VaultReport({ store, header, keyState, secrets, sweep, others, clock, idleTimeoutMs });
    this.keys = new KeySlots({ ...parts, sweep, scryptLogN });
  }

  /** @throws StartError when the vault's header is invalid, or the key worker does not start. */
  static async open(options: VaultOptions): Promise<Vault> {
    const { store } = options;
    const lock = new ReadWriteLock();
    try {
      const header: CurrentHeader = { bytes: null, generation: null };
      setHeader(header, await store.header(), store);
      const keyState = await KeyState.begin({ ...options, header: () => header.bytes, lock });
      const vault = new Vault(options, header, lock, keyState);
      await vault.#others.count(); // for a status while storage does not answer
      vault.#others.keepPresent();
      return vault;
    } catch (error) {
      throw new StartError(`${store.vaultPath}: ${problemOf(error, store)}, then start again`);
    }
  }

  /** Sets the keeper of the vault's records; before the first unlock. */
  setKeeper(keeper: RecordKeeper): void {
    this.#keeper = keeper;
  }

  /**
   * Creates a new vault and unlocks it. `keptAt` is where the vault that it replaces is kept; `locked` is true when a
   * lock came in between.
   * @throws VaultError BAD_REQUEST, ALREADY_EXISTS, RATE_LIMITED, VAULT_LOCKED, UNAVAILABLE
   */
  async init(body: SharedBytes): Promise<{ readonly keptAt: string | null; readonly locked: boolean }> {
    const { scryptLogN: logN } = this.#settings;
    const init = () => this.#keyState.derive({ op: "init", body, logN, now: this.#clock.now() });
    const derived = this.#others.refresh().then(init);
    const { header } = await wipingAfter(body, derived);
    const keptAt = await this.#headerChanges.startNew(header);
    this.#keyState.becomeUnlocked();
    this.#log.info({ event: "initialized" });
    if (this.#keyState.unlocked) this.#unlocked("init");
    return { keptAt, locked: !this.#keyState.unlocked };
  }

  /**
   * Unlocks the vault; returns the reply. `permit` is called once the passphrase is known to be right: when it throws,
   * the vault is not unlocked and its error is rethrown.
   * @throws VaultError BAD_REQUEST, UNAUTHORIZED, RATE_LIMITED, VAULT_LOCKED, INTEGRITY
   */
  async unlock(body: SharedBytes, permit: Permit): Promise<Bytes> {
    const { scryptLogN: logN } = this.#settings;
    const derived = this.#headerChanges.confirm().then(() => this.#keyState.derive({ op: "unlock", body, logN }));
    const { reply, header } = await wipingAfter(body, derived).catch((error: unknown) => {
      if (error instanceof VaultError && error.code === "UNAUTHORIZED") this.#tell("unlock-failed");
      throw error;
    });
    try {
      permit();
      const checks = this.#keeper?.verify();
      if (checks !== undefined) await checks; // DANGER: a lock meanwhile makes it throw, so `becomeUnlocked` may follow
    } catch (error) {
      if (header !== null) await this.#headerChanges.discard(header);
      if (!this.#keyState.unlocked) await this.#keyState.lock("request");
      throw error;
    }
    this.#keyState.becomeUnlocked();
    if (this.#keyState.unlocked) {
      this.#log.info({ event: "unlocked" });
      this.#unlocked("unlock");
    }
    if (header !== null) await this.#headerChanges.raiseScryptCost(header);
    this.#sweep.wake();
    return reply;
  }

  /** Resolves once the master key is wiped and all running operations have ended. */
  lock(): Promise<void> {
    return this.#keyState.lock("request");
  }

  /** @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  mustBeUnlocked(): void {
    this.#keyState.lockIfIdle();
    this.#keyState.mustBeUnlocked();
  }

  /**
   * Copies all sealed secrets as they are at one moment, whether the vault is locked or not. It does not hold the
   * vault's lock, so a lock or a forced init need not wait for it. A disk that is full or read-only takes no copy: then
   * `reader`, if there is one, gets the frozen vault itself (`direct`).
   * @throws VaultError BAD_REQUEST before the first init, UNAVAILABLE
   */
  async snapshot(reader: Reader | null = null): Promise<StoredSnapshot & { readonly direct: boolean }> {
    await this.#others.refresh();
    if (this.#header.bytes === null) throw new VaultError("BAD_REQUEST", "the vault is not initialized: init it first");
    try {
      return { ...(await this.#store.snapshot()), direct: false };
    } catch (error) {
      if (reader === null || !takesNoFiles(error)) throw error;
      return this.#lock.exclusive(async () => ({ ...(await this.#store.freeze(reader)), direct: true }));
    }
  }

  /** Locks, waits for running operations, ends the key thread, and after `last` releases the claim on the files. */
  async close(last: () => Promise<unknown> = async () => {}): Promise<void> {
    this.#sweep.close();
    this.#others.close();
    try {
      await this.#keyState.close();
      await this.#keeper?.close();
    } finally {
      await last().finally(() => this.#lock.exclusive(() => this.#store.close()));
    }
  }

  #vaultReplaced(): void {
    this.secrets.vaultReplaced();
    this.#keeper?.vaultReplaced();
  }

  #unlocked(event: "init" | "unlock"): void {
    this.#tell(event);
    this.#audit?.vaultUnlocked();
  }

  #tell(event: "init" | "unlock" | "unlock-failed"): void {
    this.#observers.vaultEvent({ event, at: this.#clock.now() });
  }
}

function problemOf(error: unknown, { shared }: SecretStore): string {
  if (!(error instanceof VaultError)) return "the key worker does not start: reinstall strongroom";
  if (error.code !== "INTEGRITY") return error.message;
  const restore = "restore a backup into another";
  if (shared !== undefined) return `${error.message}: ${restore} database`;
  return `${error.message}: put its header.json back from a backup, or ${restore} home`;
}
