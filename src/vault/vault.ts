/**
 * The vault: its states from init to close, and which operations may run at the same time. It never looks into a body
 * or a blob.
 */
import type { Bytes, Request, SharedBytes } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { StartError, takesNoFiles, VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { Reader, SecretStore, StoredDocument, StoredSnapshot } from "../storage/secret-store.js";
import type { BatchPermit } from "./batch-plan.js";
import { type Condition, type MaybeReply, type TaggedReply, type Tags, unconditional } from "./condition.js";
import { Entries } from "./entries.js";
import { type CurrentHeader, HeaderChanges } from "./header-changes.js";
import { KeyState, type KeyStateSettings } from "./key-state.js";
import type { ListPart, ListQuery } from "./lister.js";
import { type RotationProgress, RotationSweep } from "./rotation-sweep.js";
import { ReadWriteLock } from "./sync/read-write-lock.js";

export type VaultSettings = KeyStateSettings & {
  readonly scryptLogN: number;
  readonly cacheBytes: number;
  readonly maxBatchBytes: number;
};

/** What keeps records in the vault's documents. */
export interface RecordKeeper {
  /** The key worker holds the key: checks what was read without it. Undefined: there is nothing to check. */
  verify(): Promise<void> | undefined;
  /** The master key is being rotated: makes what the old one has signed anew, durably. */
  resign(): Promise<void>;
  /** A new vault without documents has replaced the one before. */
  vaultReplaced(): void;
  /** Writes what is left to write. */
  close(): Promise<void>;
}

export type VaultOptions = {
  readonly store: SecretStore;
  readonly settings: VaultSettings;
  readonly clock: Clock;
  readonly log: Log;
};

export type VaultStatus = {
  readonly initialized: boolean;
  readonly locked: boolean;
  readonly secretCount: number;
  readonly vaultPath: string;
  readonly idleTimeoutMs: number;
  readonly lastActivity: string;
  /** While the master key is being rotated. */
  readonly rotation?: RotationProgress;
};

/** What a change of the header is asked for with: a passphrase, or the text of a key, is in the body. */
type HeaderChange = Extract<Request, { readonly op: "changePassphrase" | "createKey" | "rotate" }>;

const changeEvents = { changePassphrase: "passphrase-changed", createKey: "key-created", rotate: "rotated" } as const;

/** Throws when a request must not go on, although its passphrase is right. */
type Permit = () => void;

export class Vault {
  readonly #store: SecretStore;
  readonly #header: CurrentHeader;
  readonly #settings: VaultSettings;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #lock: ReadWriteLock;
  readonly #keyState: KeyState;
  readonly #entries: Entries;
  #keeper: RecordKeeper | null = null;
  readonly #headerChanges: HeaderChanges;
  readonly #sweep: RotationSweep;
  #requests = 0;
  /** Number of vaults made since the start. */
  #vaults = 0;

  private constructor(
    { store, settings, clock, log }: VaultOptions,
    header: CurrentHeader,
    lock: ReadWriteLock,
    keyState: KeyState,
  ) {
    this.#store = store;
    this.#header = header;
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    this.#lock = lock;
    this.#keyState = keyState;
    this.#entries = new Entries({ ...settings, store, keyState, clock, log, keepsHistory: settings.keepVersions > 0 });
    const headerChanges = new HeaderChanges({ store, header, keyState, lock, log });
    const sweeping = { store, keyState, lock, entries: this.#entries, headerChanges, clock, log };
    this.#headerChanges = headerChanges;
    const resignRecords = async () => this.#keeper?.resign();
    this.#sweep = new RotationSweep({ ...sweeping, resignRecords, requests: () => this.#requests });
  }

  /** @throws StartError when the vault's header is invalid, or the key worker does not start. */
  static async open(options: VaultOptions): Promise<Vault> {
    const { store } = options;
    const lock = new ReadWriteLock();
    try {
      const header: CurrentHeader = { bytes: await store.header() };
      const keyState = await KeyState.begin({ ...options, header: () => header.bytes, lock });
      return new Vault(options, header, lock, keyState);
    } catch (error) {
      const reason =
        error instanceof VaultError
          ? `${error.message}: put its header.json back from a backup, or restore a backup into another home`
          : "the key worker does not start: reinstall strongroom";
      throw new StartError(`${store.vaultPath}: ${reason}, then start again`);
    }
  }

  /** Sets the keeper of the vault's records; before the first unlock. */
  setKeeper(keeper: RecordKeeper): void {
    this.#keeper = keeper;
  }

  async status(): Promise<VaultStatus> {
    this.#keyState.lockIfIdle();
    const secretCount = await this.#store.count();
    const rotation = this.#sweep.progress(secretCount);
    return {
      initialized: this.#header.bytes !== null,
      locked: !this.#keyState.unlocked,
      secretCount,
      vaultPath: this.#store.vaultPath,
      idleTimeoutMs: this.#settings.idleTimeoutMs,
      lastActivity: new Date(this.#keyState.lastActivity).toISOString(),
      ...(rotation && { rotation }),
    };
  }

  /**
   * Creates a new vault and unlocks it. `keptAt` is where the vault that it replaces is kept; `locked` is true when a
   * lock came in between.
   * @throws VaultError BAD_REQUEST, ALREADY_EXISTS, RATE_LIMITED, VAULT_LOCKED, UNAVAILABLE
   */
  async init(body: SharedBytes): Promise<{ readonly keptAt: string | null; readonly locked: boolean }> {
    const { scryptLogN: logN } = this.#settings;
    const derived = this.#keyState.derive({ op: "init", body, logN, now: this.#clock.now() });
    const { header } = await wipingAfter(body, derived);
    const keptAt = await this.#lock.exclusive(() => this.#startNewVault(header));
    this.#keyState.becomeUnlocked();
    this.#log.info({ event: "initialized" });
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
    const { reply, header } = await wipingAfter(body, derived);
    try {
      permit();
      const checks = this.#keeper?.verify();
      if (checks !== undefined) await checks; // DANGER: a lock meanwhile makes it throw, so `becomeUnlocked` may follow
    } catch (error) {
      if (header !== null) await this.#headerChanges.discard();
      if (!this.#keyState.unlocked) await this.#keyState.lock();
      throw error;
    }
    this.#keyState.becomeUnlocked();
    this.#log.info({ event: "unlocked" });
    if (header !== null) await this.#raiseScryptCost(header);
    this.#sweep.wake();
    return reply;
  }

  /**
   * Changes the passphrase, locked or unlocked; returns the reply. `permit`: as in `unlock`; when it throws, nothing is
   * changed.
   * @throws VaultError BAD_REQUEST, UNAUTHORIZED, RATE_LIMITED, VAULT_LOCKED, INTEGRITY, UNAVAILABLE
   */
  changePassphrase(body: SharedBytes, permit: Permit): Promise<Bytes> {
    const { scryptLogN: logN } = this.#settings;
    return this.#changeHeader({ op: "changePassphrase", body, logN, now: this.#clock.now() }, permit);
  }

  /** The reply holds the text of the new key: wipe it once it is sent. @throws VaultError ALREADY_EXISTS, … as above */
  createKey(body: SharedBytes, permit: Permit): Promise<Bytes> {
    return this.#changeHeader({ op: "createKey", body, now: this.#clock.now() }, permit);
  }

  /**
   * Makes a new master key, for the passphrase and the keys in the body; what the old one sealed is sealed anew in the
   * background. @throws VaultError ALREADY_EXISTS, … as above
   */
  async rotate(body: SharedBytes, permit: Permit): Promise<Bytes> {
    const { scryptLogN: logN } = this.#settings;
    const reply = await this.#changeHeader({ op: "rotate", body, logN }, permit);
    this.#sweep.wake();
    return reply;
  }

  /** Returns the reply with all keys, the passphrase among them; needs no key. @throws VaultError BAD_REQUEST */
  async keys(): Promise<Bytes> {
    return (await this.#keyState.ask({ op: "keys" })).reply;
  }

  /** @throws VaultError VAULT_LOCKED, BAD_REQUEST, NOT_FOUND, UNAVAILABLE */
  async deleteKey(id: string): Promise<Bytes> {
    const { header, reply } = await this.#keyState.derive({ op: "deleteKey", id });
    await this.#headerChanges.replace(header);
    this.#log.info({ event: "key-deleted" });
    return reply;
  }

  /** Resolves once the master key is wiped and all running operations have ended. */
  lock(): Promise<void> {
    return this.#keyState.lock();
  }

  /**
   * Counts as activity. Call it for every secret operation before any other check.
   * @throws VaultError VAULT_LOCKED, UNAVAILABLE
   */
  admit(): void {
    this.#keyState.lockIfIdle();
    this.#keyState.touch();
    this.#keyState.mustBeUnlocked();
  }

  /** @throws VaultError VAULT_LOCKED, BAD_REQUEST, PRECONDITION_FAILED, INTEGRITY, UNAVAILABLE */
  put(path: string, body: Bytes, condition = unconditional): Promise<TaggedReply> {
    return wipingAfter(
      body,
      this.#secretOperation(() => this.#entries.put(path, body, condition)),
    );
  }

  /**
   * The reply holds the value: wipe it once it is sent. It is null when the secret still has one of the tags.
   * @throws VaultError NOT_FOUND, … as put
   */
  get(path: string, unlessTagged: Tags | null = null): Promise<MaybeReply> {
    return this.#secretOperation(() => this.#entries.get(path, unlessTagged));
  }

  /** @throws VaultError VAULT_LOCKED, NOT_FOUND, PRECONDITION_FAILED, UNAVAILABLE */
  remove(path: string, condition = unconditional): Promise<void> {
    return this.#secretOperation(() => this.#entries.remove(path, condition));
  }

  /** Checks the body of a put that must not be carried out, without a look at storage. @throws VaultError BAD_REQUEST */
  judgePut(path: string, body: Bytes): Promise<void> {
    return wipingAfter(
      body,
      this.#secretOperation(() => this.#entries.judgePut(path, body)),
    );
  }

  /** As `judgePut`, of an undo. */
  judgeUndo(path: string, body: Bytes): Promise<void> {
    return wipingAfter(
      body,
      this.#secretOperation(() => this.#entries.judgeUndo(path, body)),
    );
  }

  /** Returns the reply with all versions of a secret, without values. @throws VaultError NOT_FOUND, … as put */
  history(path: string): Promise<Bytes> {
    return this.#secretOperation(() => this.#entries.history(path));
  }

  /** As `get`, of one version. */
  version(path: string, version: number): Promise<Bytes> {
    return this.#secretOperation(() => this.#entries.version(path, version));
  }

  /** Makes a version that is kept the newest. @throws VaultError NOT_FOUND, … as put */
  undo(path: string, body: Bytes, condition: Condition): Promise<TaggedReply> {
    return wipingAfter(
      body,
      this.#secretOperation(() => this.#entries.undo(path, body, condition)),
    );
  }

  /** Removes all earlier versions; returns how many. @throws VaultError NOT_FOUND, … as put */
  prune(path: string, condition: Condition): Promise<number> {
    return this.#secretOperation(() => this.#entries.prune(path, condition));
  }

  /**
   * Carries out a batch of operations: gets each for itself, or with changes all or nothing. The response
   * holds values: wipe it once it is sent.
   * @throws VaultError as put and get, with the index of the operation that is refused.
   */
  batch(body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    return wipingAfter(
      body,
      this.#secretOperation(() => this.#entries.batch(body, permit)),
    );
  }

  /**
   * Yields the reply in parts. Between two parts a lock or a forced init need not wait: it ends the list.
   * @throws VaultError VAULT_LOCKED, UNAVAILABLE
   */
  async *list(query: ListQuery): AsyncGenerator<ListPart, void, void> {
    const parts = this.#entries.list(query);
    const vault = this.#vaults;
    for (;;) {
      const { value } = await this.#secretOperation(() => {
        if (this.#vaults !== vault) throw new VaultError("UNAVAILABLE", "a new vault was made meanwhile: list again");
        return parts.next();
      });
      if (!value) return;
      yield value;
    }
  }

  /** @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  mustBeUnlocked(): void {
    this.#keyState.lockIfIdle();
    this.#keyState.mustBeUnlocked();
  }

  /** Runs work on documents while no other vault can take this one's place. */
  hold<T>(work: () => Promise<T>): Promise<T> {
    return this.#lock.shared(work);
  }

  /** See `SecretStore.readDocument`. */
  readDocument(name: string): Promise<StoredDocument | null> {
    return this.#store.readDocument(name);
  }

  /** See `SecretStore.writeDocument`. */
  writeDocument(name: string, bytes: Bytes, expected: string | null): Promise<string | null> {
    return this.#store.writeDocument(name, bytes, expected);
  }

  /** Returns a MAC of each text, which only this vault's key worker can make. @throws VaultError VAULT_LOCKED */
  async signRecords(texts: readonly string[]): Promise<readonly string[]> {
    return (await this.#keyState.ask({ op: "signRecords", texts })).macs;
  }

  /** Whether each text has the MAC that `signRecords` makes. @throws VaultError VAULT_LOCKED */
  async verifyRecords(texts: readonly string[], macs: readonly string[]): Promise<readonly boolean[]> {
    return (await this.#keyState.ask({ op: "verifyRecords", texts, macs })).valid;
  }

  /**
   * Copies all sealed secrets as they are at one moment, whether the vault is locked or not. It does not hold the
   * vault's lock, so a lock or a forced init need not wait for it. A disk that is full or read-only takes no copy: then
   * `reader`, if there is one, gets the frozen vault itself (`direct`).
   * @throws VaultError BAD_REQUEST before the first init, UNAVAILABLE
   */
  async snapshot(reader: Reader | null = null): Promise<StoredSnapshot & { readonly direct: boolean }> {
    if (this.#header.bytes === null) throw new VaultError("BAD_REQUEST", "the vault is not initialized: init it first");
    try {
      return { ...(await this.#store.snapshot()), direct: false };
    } catch (error) {
      if (reader === null || !takesNoFiles(error)) throw error;
      return this.#lock.exclusive(async () => ({ ...(await this.#store.freeze(reader)), direct: true }));
    }
  }

  /** Locks, waits for running operations, ends the key thread and releases the claim on the files. */
  async close(): Promise<void> {
    this.#sweep.close();
    try {
      await this.#keyState.close();
      await this.#keeper?.close();
    } finally {
      await this.#lock.exclusive(() => this.#store.close());
    }
  }

  #secretOperation<T>(work: () => Promise<T>): Promise<T> {
    this.#requests++;
    return this.#lock.shared(() => {
      this.#keyState.mustBeUnlocked();
      return work();
    });
  }

  async #changeHeader(request: HeaderChange, permit: Permit): Promise<Bytes> {
    const derived = this.#headerChanges.confirm().then(() => this.#keyState.derive(request));
    const { header, reply } = await wipingAfter(request.body, derived);
    try {
      try {
        permit();
      } catch (error) {
        await this.#headerChanges.discard();
        throw error;
      }
      await this.#headerChanges.replace(header);
      this.#log.info({ event: changeEvents[request.op] });
      return reply;
    } catch (error) {
      reply.fill(0);
      throw error;
    }
  }

  /** A disk that refuses leaves the old cost: the unlock stands. */
  async #raiseScryptCost(header: Bytes): Promise<void> {
    try {
      await this.#headerChanges.replace(header);
      this.#log.info({ event: "scrypt-cost-raised" });
    } catch (error) {
      this.#log.warn({ event: "scrypt-cost-not-raised", error });
    }
  }

  async #startNewVault(header: Bytes): Promise<string | null> {
    let keptAt: string | null;
    try {
      keptAt = await this.#store.startNewVault(header);
      this.#header.bytes = header;
    } catch (error) {
      await this.#keyState.ask({ op: "discard" }).catch(() => {}); // a thread that ended holds no candidate
      throw error;
    }
    this.#vaults++;
    this.#entries.forget();
    this.#keeper?.vaultReplaced();
    try {
      await this.#keyState.adopt();
      return keptAt;
    } catch (cause) {
      await this.#keyState.mount(); // the thread that knew the new key is gone; the new vault stands
      throw new VaultError("INTERNAL", "the key worker ended: the new vault exists and is locked, unlock it", {
        cause,
      });
    }
  }
}

/** Wipes a body that was shared with the key worker, or did not reach it; one that was moved has no bytes left here. */
async function wipingAfter<T>(body: Uint8Array, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } finally {
    if (body.byteLength > 0) body.fill(0);
  }
}
