/**
 * The vault: its states from init to close, and which operations may run at the same time. It never looks into a body
 * or a blob.
 */
import type { Bytes, SharedBytes } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { StartError, takesNoFiles, VaultError } from "../errors.js";
import { ReadWriteLock } from "../locks.js";
import type { Log } from "../log.js";
import type { Observers } from "../observer.js";
import type { BackupProcess, SecretStore, StoredSnapshot } from "../storage/secret-store.js";
import { CachedStore } from "./cache.js";
import type { Permit } from "./conditions.js";
import { Header } from "./header.js";
import { wipingAfter } from "./key-worker.js";
import { KeySlots } from "./keys.js";
import { type LockSettings, LockState, type VaultAudit } from "./lock-state.js";
import { type RecordStore, VaultRecords } from "./records.js";
import { RotationSweep } from "./rotation.js";
import { VaultSecrets } from "./secrets.js";
import { VaultReport } from "./status.js";
import { VaultTransit } from "./transit.js";
import type { VaultTrash } from "./trash.js";
import { TrashSweep } from "./trash-sweep.js";
import { UseIndex } from "./uses.js";

type VaultSettings = LockSettings & {
  readonly scryptLogN: number;
  readonly cacheBytes: number;
  readonly maxBatchBytes: number;
  /** How long a secret stays in the trash; 0: for ever. */
  readonly keepTrashDays: number;
};

type VaultOptions = {
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
  readonly trash: VaultTrash;
  readonly transit: VaultTransit;
  readonly uses: UseIndex;
  readonly keys: KeySlots;
  readonly records: VaultRecords;
  readonly report: VaultReport;
  readonly #store: SecretStore;
  readonly #settings: VaultSettings;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #observers: Observers;
  readonly #audit: VaultAudit | null;
  readonly #lock: ReadWriteLock;
  readonly #lockState: LockState;
  readonly #header: Header;
  readonly #sweep: RotationSweep;
  readonly #trashSweep: TrashSweep;
  #recordStore: RecordStore | null = null;

  private constructor(options: VaultOptions) {
    const { store, settings, clock, log } = options;
    const { idleTimeoutMs, scryptLogN, keepVersions, cacheBytes } = settings;
    const lock = new ReadWriteLock();
    const lockState = new LockState({ ...options, lock });
    const parts = { store, lockState, lock, clock, log };
    const isRotating = () => header.rotation !== null;
    const cached = new CachedStore(store, cacheBytes);
    const spaceParts = { ...parts, cached, keepsHistory: keepVersions > 0 };
    const secrets = new VaultSecrets({ ...settings, ...spaceParts, isRotating });
    const transit = new VaultTransit(spaceParts);
    const vaultReplaced = () => {
      cached.vaultReplaced();
      this.uses.clear();
      this.#recordStore?.vaultReplaced();
    };
    const header = new Header({ ...parts, vaultReplaced });
    const spaces = { secrets: secrets.space, trash: secrets.trash.space, keys: transit.space };
    const resignRecords = async () => this.#recordStore?.resign();
    const sweep = new RotationSweep({ ...parts, header, spaces, resignRecords });
    this.#trashSweep = new TrashSweep({ ...settings, ...options, trash: secrets.trash });
    this.secrets = secrets;
    this.trash = secrets.trash;
    this.transit = transit;
    this.uses = new UseIndex(secrets, clock, store.shared !== undefined);
    const documentForRotation = async () => (await this.#recordStore?.documentForRotation()) ?? null;
    this.keys = new KeySlots({ ...parts, header, sweep, documentForRotation, scryptLogN });
    this.records = new VaultRecords(store, lockState, lock, header);
    this.report = new VaultReport({ ...parts, header, secrets, sweep, idleTimeoutMs });
    this.#store = store;
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    this.#observers = options.observers;
    this.#audit = options.audit;
    this.#lock = lock;
    this.#lockState = lockState;
    this.#header = header;
    this.#sweep = sweep;
  }

  /** @throws StartError when the vault's header is invalid, or the key worker does not start. */
  static async open(options: VaultOptions): Promise<Vault> {
    const vault = new Vault(options);
    try {
      await vault.#header.load();
      await vault.report.count(); // for a status while storage does not answer
      vault.#header.startHeartbeat(() => vault.#recordStore?.refresh());
      vault.#trashSweep.start();
      return vault;
    } catch (error) {
      await vault.#lockState.abandon();
      throw new StartError(`${options.store.vaultPath}: ${startProblem(error, options.store)}, then start again`);
    }
  }

  /** Sets what keeps records in the vault's documents; before the first unlock. */
  setRecordStore(store: RecordStore): void {
    this.#recordStore = store;
  }

  /**
   * Creates a new vault and unlocks it. `keptAt` is where the vault that it replaces is kept; `locked` is true when a
   * lock came in between. When `permit` throws, nothing is changed.
   * @throws VaultError BAD_REQUEST, ALREADY_EXISTS, RATE_LIMITED, VAULT_LOCKED, UNAVAILABLE
   */
  async init(body: SharedBytes, permit: Permit): Promise<{ readonly keptAt: string | null; readonly locked: boolean }> {
    const { scryptLogN: logN } = this.#settings;
    const init = () => this.#lockState.derive({ op: "init", body, logN, now: this.#clock.now() });
    const derived = this.#header.refresh().then(init);
    const { header } = await wipingAfter(body, derived);
    const keptAt = await this.#header.startNewVault(header, () => {
      permit();
      return this.#recordStore?.documentsForNewVault() ?? [];
    });
    this.#lockState.becomeUnlocked();
    this.#log.info({ event: "initialized" });
    if (this.#lockState.unlocked) this.#unlocked("init");
    return { keptAt, locked: !this.#lockState.unlocked };
  }

  /**
   * Unlocks the vault; returns the response. `permit` is called once the passphrase is known to be right: when it throws,
   * the vault is not unlocked and its error is rethrown. `forVault`: the body is that of a client of Vault.
   * @throws VaultError BAD_REQUEST, UNAUTHORIZED, RATE_LIMITED, VAULT_LOCKED, INTEGRITY
   */
  async unlock(body: SharedBytes, permit: Permit, forVault = false): Promise<Bytes> {
    const { scryptLogN: logN } = this.#settings;
    const request = { op: "unlock", body, logN, forVault } as const;
    const derived = this.#header.confirm().then(() => this.#lockState.derive(request));
    const { response, header } = await wipingAfter(body, derived).catch((error: unknown) => {
      if (error instanceof VaultError && error.code === "UNAUTHORIZED") this.#tell("unlock-failed");
      throw error;
    });
    try {
      permit();
      const checks = this.#recordStore?.verify();
      if (checks !== undefined) await checks; // DANGER: a lock at the same time makes it throw, so `becomeUnlocked` may follow
      permit(); // the token may have ended since
    } catch (error) {
      if (header !== null) await this.#header.discard(header);
      if (!this.#lockState.unlocked) await this.#lockState.lock("request");
      throw error;
    }
    this.#lockState.becomeUnlocked();
    if (this.#lockState.unlocked) {
      this.#log.info({ event: "unlocked" });
      this.#unlocked("unlock");
    }
    if (header !== null) await this.#upgradeHeader(header);
    this.#sweep.wake();
    return response;
  }

  /** Resolves once the master key is wiped and all running operations have ended. */
  lock(): Promise<void> {
    return this.#lockState.lock("request");
  }

  /** @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  mustBeUnlocked(): void {
    this.#lockState.lockIfIdle();
    this.#lockState.mustBeUnlocked();
  }

  /**
   * Copies all sealed secrets as they are at one moment, whether the vault is locked or not. It does not hold the
   * vault's lock, so a lock or a forced init need not wait for it. A disk that is full or read-only takes no copy: then
   * `reader`, if there is one, gets the frozen vault itself (`direct`).
   * @throws VaultError BAD_REQUEST before the first init, UNAVAILABLE
   */
  async snapshot(reader: BackupProcess | null = null): Promise<StoredSnapshot & { readonly direct: boolean }> {
    await this.#header.refresh();
    if (!this.#header.exists) throw new VaultError("BAD_REQUEST", "the vault is not initialized: init it first");
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
    this.#header.close();
    try {
      await this.#lockState.close();
      await this.#trashSweep.close();
      await this.#recordStore?.close();
    } finally {
      await last().finally(() => this.#lock.exclusive(() => this.#store.close()));
    }
  }

  /** Replaces a header of an earlier version or a lower cost; an unlock succeeds under the old one when storage refuses. */
  async #upgradeHeader(header: Bytes): Promise<void> {
    try {
      await this.#header.replace(header);
      this.#log.info({ event: "header-upgraded" });
    } catch (error) {
      this.#log.warn({ event: "header-not-upgraded", error });
    }
  }

  #unlocked(event: "init" | "unlock"): void {
    this.#tell(event);
    this.#audit?.vaultUnlocked(event);
  }

  #tell(event: "init" | "unlock" | "unlock-failed"): void {
    this.#observers.vaultEvent({ event, at: this.#clock.now() });
  }
}

function startProblem(error: unknown, { shared }: SecretStore): string {
  const responded = error instanceof VaultError && error.code !== "INTERNAL";
  if (!responded) return "the key worker does not start: install strongroom again";
  if (error.code !== "INTEGRITY") return error.message;
  const restore = "restore a backup into another";
  if (shared !== undefined) return `${error.message}: ${restore} database`;
  return `${error.message}: put its header.json back from a backup, or ${restore} home`;
}
