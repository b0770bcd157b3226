/**
 * Owns the vault: the order of what storage and the key worker do for one request. It never looks into a body or a blob.
 */
import type { Bytes, Head } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { StartError, VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { SecretStore, StoredSnapshot } from "../storage/secret-store.js";
import { CiphertextCache } from "./ciphertext-cache.js";
import { Custody, type CustodySettings } from "./custody.js";
import { Gate } from "./gate.js";
import { headOf, Lister, type ListQuery } from "./list.js";
import { Turns } from "./turns.js";

export type VaultSettings = CustodySettings & { readonly scryptLogN: number; readonly cacheBytes: number };

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
  readonly #gate: Gate;
  readonly #custody: Custody;
  readonly #paths = new Turns();
  /** Whole blobs. A get that finds its blob here needs no file: that took a quarter of the main thread's time. */
  readonly #blobs: CiphertextCache<Bytes>;
  /** The beginnings of blobs, up to the end of their sealed metadata, for lists and puts. */
  readonly #heads: CiphertextCache<Head>;
  /** List entries, many sealed as one: of 100,000, a list takes a quarter of the time when it finds them here. */
  readonly #pages: CiphertextCache<Bytes>;
  readonly #lister: Lister;

  private constructor(
    store: SecretStore,
    settings: VaultSettings,
    clock: Clock,
    log: Log,
    gate: Gate,
    custody: Custody,
  ) {
    this.#store = store;
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    this.#gate = gate;
    this.#custody = custody;
    this.#blobs = new CiphertextCache(settings.cacheBytes / 2);
    this.#heads = new CiphertextCache(settings.cacheBytes / 4);
    this.#pages = new CiphertextCache(settings.cacheBytes / 4);
    this.#lister = new Lister(store, custody, this.#heads, this.#pages);
  }

  /** @throws StartError when the vault's header cannot be understood. */
  static async open(store: SecretStore, settings: VaultSettings, clock: Clock, log: Log): Promise<Vault> {
    const gate = new Gate();
    try {
      const custody = await Custody.begin(() => store.header, gate, settings, clock, log);
      return new Vault(store, settings, clock, log, gate, custody);
    } catch (error) {
      const reason = error instanceof VaultError ? error.message : "the key worker does not start";
      throw new StartError(`${store.vaultPath}: ${reason}: restore the vault from a backup, then start again`);
    }
  }

  status(): VaultStatus {
    this.#custody.lockIfIdle();
    return {
      initialized: this.#store.header !== null,
      locked: !this.#custody.unlocked,
      secretCount: this.#store.count,
      vaultPath: this.#store.vaultPath,
      idleTimeoutMs: this.#settings.idleTimeoutMs,
      lastActivity: new Date(this.#custody.lastActivity).toISOString(),
    };
  }

  /**
   * Makes a new vault and unlocks it; answers where the one that it replaces is kept.
   * @throws VaultError BAD_REQUEST, ALREADY_EXISTS, RATE_LIMITED, VAULT_LOCKED, UNAVAILABLE
   */
  async init(body: Bytes): Promise<{ readonly keptAt: string | null; readonly locked: boolean }> {
    const request = { op: "init", body, logN: this.#settings.scryptLogN, now: this.#clock.now() } as const;
    const { header } = await wipingAfter(body, this.#custody.derive<"init">(request));
    const keptAt = await this.#gate.exclusive(() => this.#startNewVault(header));
    this.#custody.becomeUnlocked();
    this.#log.info({ event: "initialized" });
    return { keptAt, locked: !this.#custody.unlocked };
  }

  /**
   * `permit` is asked once the passphrase was found right; what it throws is thrown, and nothing is unlocked.
   * @throws VaultError BAD_REQUEST, UNAUTHORIZED, RATE_LIMITED, VAULT_LOCKED
   */
  async unlock(body: Bytes, permit: () => void): Promise<Bytes> {
    const { reply } = await wipingAfter(body, this.#custody.derive<"unlock">({ op: "unlock", body }));
    try {
      permit();
    } catch (error) {
      if (!this.#custody.unlocked) await this.#custody.lock();
      throw error;
    }
    this.#custody.becomeUnlocked();
    this.#log.info({ event: "unlocked" });
    return reply;
  }

  /** Resolves once the master key is wiped and everything that was under way has ended. */
  lock(): Promise<void> {
    return this.#custody.lock();
  }

  /** Counts as activity; to be called for every secret operation before anything else of it is looked at. */
  admit(): void {
    this.#custody.lockIfIdle();
    this.#custody.touch();
    this.#custody.mustBeUnlocked();
  }

  /** @throws VaultError VAULT_LOCKED, BAD_REQUEST, INTEGRITY, UNAVAILABLE */
  put(path: string, body: Bytes): Promise<Bytes> {
    const work = this.#secretOperation(() => this.#paths.take(path, () => this.#putInTurn(path, body)));
    return wipingAfter(body, work);
  }

  /** The reply's bytes hold the value: wipe them once they are sent. @throws VaultError NOT_FOUND, … as put */
  get(path: string): Promise<Bytes> {
    return this.#secretOperation(() => {
      const blob = this.#blobs.get(path);
      return blob === undefined ? this.#readAndOpen(path) : this.#open(path, blob);
    });
  }

  /** @throws VaultError VAULT_LOCKED, NOT_FOUND, UNAVAILABLE */
  remove(path: string): Promise<void> {
    return this.#secretOperation(() =>
      this.#paths.take(path, async () => {
        if (!(await this.#changing(path, () => this.#store.remove(path)))) throw notFound(path);
      }),
    );
  }

  /** @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  list(query: ListQuery): Promise<readonly Bytes[]> {
    return this.#secretOperation(() => this.#lister.list(query));
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
      await this.#custody.close();
    } finally {
      await this.#gate.exclusive(() => this.#store.close());
    }
  }

  #secretOperation<T>(work: () => Promise<T>): Promise<T> {
    return this.#gate.shared(() => {
      this.#custody.mustBeUnlocked();
      return work();
    });
  }

  async #putInTurn(path: string, body: Bytes): Promise<Bytes> {
    const previous = await this.#lister.head(path);
    const sealed = await this.#custody.ask<"seal">({ op: "seal", path, body, previous, now: this.#clock.now() });
    await this.#changing(path, () => this.#store.write(path, sealed.blob));
    this.#heads.keep(path, headOf(sealed.blob, sealed.headLength)); // no other change of the path has begun
    return sealed.reply;
  }

  /** A blob that does not open is not kept: once its file is mended, the next get finds it. */
  #readAndOpen(path: string): Promise<Bytes> {
    return this.#blobs.reading(async (keep) => {
      const blob = await this.#store.read(path);
      if (blob === null) throw notFound(path);
      const reply = await this.#open(path, blob);
      keep(path, blob);
      return reply;
    });
  }

  async #open(path: string, blob: Bytes): Promise<Bytes> {
    return (await this.#custody.ask<"open">({ op: "open", path, blob })).reply;
  }

  #changing<T>(path: string, change: () => Promise<T>): Promise<T> {
    return this.#heads.changing(path, () => this.#blobs.changing(path, change));
  }

  async #startNewVault(header: Bytes): Promise<string | null> {
    let keptAt: string | null;
    try {
      keptAt = await this.#store.startNewVault(header);
    } catch (error) {
      await this.#custody.ask<"discard">({ op: "discard" }).catch(() => {}); // a thread that ended holds no candidate
      throw error;
    }
    this.#blobs.clear();
    this.#heads.clear();
    this.#pages.clear();
    try {
      await this.#custody.ask<"adopt">({ op: "adopt" });
      return keptAt;
    } catch (cause) {
      await this.#custody.mount(); // the thread that knew the new key is gone; the new vault stands
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

function notFound(path: string): VaultError {
  return new VaultError("NOT_FOUND", `there is no secret at ${path}`);
}
