/**
 * Current header of the vault, and every change of it. It is in three places: on disk (or in the database), here, and in the
 * key worker, which alone understands it.
 *
 *   load     disk → here → key worker, which wipes its keys: at the start, into a new thread, and when another server has
 *            replaced the header. The vault is locked from then on.
 *   propose  the key worker derives a new header and holds it aside, with its keys; nothing else derives during that time. Only the
 *            proposal knows the header that it was made from: after a load it is void.
 *   replace  proposal → disk, durably, where the old header still is
 *   adopt    the proposal becomes current in the key worker, with its keys
 *   discard  the key worker wipes the proposal
 *
 * After a crash at any step, the old or the new header opens the vault.
 */
import type { Bytes } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { ReadWriteLock } from "../locks.js";
import type { Log } from "../log.js";
import type { DocumentChange, NamedDocument, SecretStore } from "../storage/secret-store.js";
import type { LockState } from "./lock-state.js";

type HeaderOptions = {
  readonly store: SecretStore;
  readonly lockState: LockState;
  readonly lock: ReadWriteLock;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when another vault has replaced the loaded one. No operation runs at the same time. */
  readonly vaultReplaced: () => void;
};

/**
 * Interval, in milliseconds, at which an idle server queries the database: so it keeps a connection, by which maintenance
 * sees it, and soon notices another server's change. A token's open connections, such as at the broker, end then if
 * another server has revoked it.
 */
const heartbeatMs = 30_000;

export type ShownSlot = {
  readonly id: string;
  readonly kind: string;
  readonly label: string;
  readonly createdAt: string;
  readonly cost: string;
};

type ParsedSlot = Partial<Omit<ShownSlot, "cost">> & {
  readonly createdAt: string;
  readonly kdf?: { readonly logN: number };
};
type ParsedHeader = ParsedSlot & { readonly slots?: readonly ParsedSlot[] };

const noDocument = async () => null;

export class Header {
  readonly #store: SecretStore;
  readonly #lockState: LockState;
  readonly #lock: ReadWriteLock;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #vaultReplaced: () => void;
  /** Null before init. */
  #bytes: Bytes | null = null;
  /** Generation of the vault whose header it is: see `SharedStore`. */
  #generation: string | null = null;
  #rotation: string | null = null;
  /** Whether the key worker has the stored header. A damaged one is read again before each use: it works once it is repaired. */
  #state: "loading" | "loaded" | "failed" = "loading";
  /** A failed fsync left it uncertain which header is on disk. */
  #inDoubt = false;
  #loading: Promise<void> | null = null;
  #cancelHeartbeat: () => void = () => {};

  constructor({ store, lockState, lock, clock, log, vaultReplaced }: HeaderOptions) {
    this.#store = store;
    this.#lockState = lockState;
    this.#lock = lock;
    this.#clock = clock;
    this.#log = log;
    this.#vaultReplaced = vaultReplaced;
    lockState.onThreadReplaced(() => this.#pass());
    store.shared?.onReplaced(() => this.#lockAndLoad());
  }

  /** Whether there is a vault. */
  get exists(): boolean {
    return this.#bytes !== null;
  }

  /** The ways in, as the header on disk has them. `cost`: how a passphrase becomes a key. */
  slots(): readonly ShownSlot[] {
    if (this.#bytes === null || this.#state !== "loaded") return [];
    const header = JSON.parse(Buffer.from(this.#bytes).toString("utf8")) as ParsedHeader;
    return (header.slots ?? [header]).map(({ id, kind = "passphrase", label, createdAt, kdf }) => {
      const cost = kdf ? `scrypt, N = 2^${kdf.logN}` : "256 random bits";
      return { id: id ?? "passphrase", kind, label: label ?? "passphrase", createdAt, cost };
    });
  }

  /** Names the rotation of the master key that the vault is in; null when it is in none. */
  get rotation(): string | null {
    return this.#rotation;
  }

  /** Settles when the header that another server has made is loaded; null while none is being loaded. */
  get loading(): Promise<void> | null {
    return this.#loading;
  }

  /** Loads the stored header. No operation may run at the same time. @throws VaultError UNAVAILABLE, INTEGRITY */
  async load(): Promise<void> {
    const generation = this.#generation;
    this.#state = "loading";
    try {
      this.#set(await this.#store.header());
      if (generation !== this.#generation) this.#vaultReplaced();
      await this.#pass();
    } catch (error) {
      this.#state = "failed";
      throw error;
    }
  }

  /** Queries a shared store regularly, until `close`: by `refresh`, unless it returns undefined. */
  startHeartbeat(refresh: () => Promise<void> | undefined): void {
    const { shared } = this.#store;
    if (shared === undefined) return;
    this.#cancelHeartbeat = this.#clock.after(heartbeatMs, () => {
      (refresh() ?? shared.confirm()).catch(() => {}); // the next request finds the same
      this.startHeartbeat(refresh);
    });
  }

  close(): void {
    this.#cancelHeartbeat();
  }

  /** Checks that another server has not replaced the header, and loads the new one if it has. @throws VaultError UNAVAILABLE */
  async refresh(): Promise<void> {
    const { shared } = this.#store;
    if (shared === undefined) return;
    await this.#loading;
    await shared.confirm().catch((error: unknown) => {
      if (this.#loading === null) throw error;
      return this.#loading;
    });
    if (this.#state === "failed") await this.#lock.exclusive(() => this.#loadAgain());
  }

  /** @throws VaultError UNAVAILABLE */
  async #loadAgain(): Promise<void> {
    try {
      if (this.#state === "failed") await this.load();
    } catch (cause) {
      if (!(cause instanceof VaultError) || cause.code !== "INTEGRITY") throw cause;
      throw new VaultError("UNAVAILABLE", `${cause.message}: strongroom doctor shows where it is`, { cause });
    }
  }

  /**
   * Like `refresh`, and writes the header again when a failed fsync left it uncertain which one is on disk.
   * DANGER: what a rotation seals is lost with its header, so nothing may be sealed before.
   * @throws VaultError UNAVAILABLE
   */
  async confirm(): Promise<void> {
    await this.refresh();
    if (!this.#inDoubt) return;
    await this.#lock.exclusive(async () => {
      const bytes = this.#bytes;
      if (bytes !== null && !(await this.#store.replaceHeader(bytes, bytes))) await this.load();
      this.#inDoubt = false;
    });
  }

  /**
   * Starts a new vault with the header that the key worker has just proposed; returns where the old one is kept, or null.
   * @throws VaultError UNAVAILABLE, with the old vault untouched; INTERNAL, with the new one locked
   */
  startNewVault(proposed: Bytes, documents: () => readonly NamedDocument[]): Promise<string | null> {
    return this.#lock.exclusive(async () => {
      this.#mustHold(proposed);
      let keptAt: string | null;
      try {
        keptAt = await this.#store.startNewVault(proposed, documents());
        this.#set(proposed);
      } catch (error) {
        await this.discard(proposed);
        throw error;
      }
      this.#vaultReplaced();
      try {
        await this.#adopt(proposed);
        return keptAt;
      } catch (cause) {
        await this.#pass(); // the thread that knew the new key is gone; the new vault stands
        const problem = "the key worker ended: the new vault exists and is locked, unlock it";
        throw new VaultError("INTERNAL", problem, { cause });
      }
    });
  }

  /**
   * Replaces the header with the key worker's latest proposal. DANGER: call it, or `discard`, after every
   * proposal: the key worker derives nothing else before. `permit` returns a document to write with it, if there is one; when
   * it throws, nothing is changed.
   * @throws VaultError UNAVAILABLE; the header is then the old one, or the vault is locked under either
   */
  replace(proposed: Bytes, permit: () => Promise<DocumentChange | null> = noDocument): Promise<void> {
    return this.#lock.exclusive(async () => {
      let document: DocumentChange | null;
      try {
        document = await permit();
      } catch (error) {
        await this.discard(proposed);
        throw error;
      }
      await this.#replace(proposed, document);
    });
  }

  /** DANGER: after a load, the thread no longer holds this proposal, but perhaps the next one. */
  async discard(proposed: Bytes): Promise<void> {
    if (this.#lockState.holds(proposed)) await this.#lockState.ask({ op: "discard" }).catch(() => {}); // or it has ended
  }

  #set(bytes: Bytes | null): void {
    this.#bytes = bytes;
    this.#generation = this.#store.shared?.generation ?? null;
  }

  /** Passes the header to the key worker. */
  async #pass(): Promise<void> {
    this.#rotation = await this.#lockState.load(this.#bytes);
    this.#state = "loaded";
  }

  /** DANGER: a header that was proposed before the last load would undo what was changed since. */
  #mustHold(proposed: Bytes): void {
    if (this.#lockState.holds(proposed)) return;
    const problem = "the key worker or the header was replaced while this request ran";
    throw new VaultError("UNAVAILABLE", `${problem}: nothing was changed, try again`);
  }

  async #replace(proposed: Bytes, document: DocumentChange | null): Promise<void> {
    this.#mustHold(proposed);
    const before = this.#bytes;
    if (before === null) throw new Error("a header was proposed before init");
    const replacing = this.#store.replaceHeader(proposed, before, document);
    if (!(await replacing.catch((error: unknown) => this.#goBack(before, proposed, error)))) {
      await this.discard(proposed);
      await this.load(); // another server's header, perhaps another key
      throw new VaultError("UNAVAILABLE", "another program changed the vault's header: try again");
    }
    this.#bytes = proposed;
    try {
      await this.#adopt(proposed);
    } catch (error) {
      this.#log.warn({ event: "key-worker-ended-in-header-change", error });
      await this.#pass(); // the thread that knew the change is gone; the new header stands, locked
    }
  }

  /**
   * Restores the old header. When the disk refuses that as well, either may survive a power cut: locks the vault. A shared
   * store's next result shows which header it has, and locks the vault if that is the new one.
   */
  async #goBack(before: Bytes, proposed: Bytes, error: unknown): Promise<never> {
    await this.discard(proposed);
    if (this.#store.shared !== undefined) throw error;
    const current = await this.#store.header().catch(() => null); // a header that cannot be read is in doubt too
    if (current !== null && Buffer.compare(current, before) === 0) throw error;
    const isBack = await this.#store.replaceHeader(before, proposed).catch(() => false);
    if (isBack) throw error;
    this.#inDoubt = true;
    await this.load().catch(() => this.#pass());
    throw error;
  }

  /** Lets the key worker use the header that it has proposed, which is on disk now. */
  async #adopt(proposed: Bytes): Promise<void> {
    if (!this.#lockState.holds(proposed)) throw new Error("the key worker ended before it adopted the header");
    this.#rotation = (await this.#lockState.ask({ op: "adopt" })).rotation;
    this.#state = "loaded";
  }

  /** Another server has replaced the header. */
  #lockAndLoad(): void {
    if (this.#loading !== null) return;
    const locking = this.#lockState.lock("crash"); // before the log line: nothing may delay it
    const hint = "by another server, or its keys were changed: unlock the vault again";
    this.#log.warn({ event: "vault-replaced", hint });
    this.#loading = locking
      .catch(() => {}) // an ended thread holds no key either
      .then(() => this.#lock.exclusive(() => this.load()))
      .finally(() => {
        this.#loading = null;
      });
    // An unlock fails until another header is current.
    this.#loading.catch((error: unknown) => this.#log.error({ event: "load-failed", error }));
  }
}
