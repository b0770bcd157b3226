/**
 * Lock state: which vault the key worker was told, and every way in which it loses the key (lock, idle deadline, crash,
 * close). The truth "unlocked" is "the key worker holds the key"; the flag here mirrors it.
 */
import type { Bytes, Request, WorkerSettings } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { LockReason, Observers } from "../observer.js";
import { IdleDeadline } from "./idle.js";
import type { ReadWriteLock } from "./sync/read-write-lock.js";
import type { VaultAudit } from "./vault-audit.js";
import { DerivationCounts, type DerivationFigures } from "./worker/derivation-counts.js";
import { type DerivingRequest, KeyThread, type LastCheckpoint } from "./worker/key-thread.js";
import type { Success } from "./worker/key-worker-client.js";

export type KeyStateSettings = WorkerSettings & { readonly idleTimeoutMs: number };

type KeyStateOptions = {
  /** Returns the current vault's header, or null before init. */
  readonly header: () => Bytes | null;
  /** Held by everything that works on the vault. */
  readonly lock: ReadWriteLock;
  readonly settings: KeyStateSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly observers: Observers;
  readonly audit: VaultAudit | null;
};

/** Why and when the vault was locked last; `at`: milliseconds since 1970. */
type LastLock = { readonly reason: LockReason; readonly at: number };

export class KeyState {
  readonly #header: () => Bytes | null;
  readonly #lock: ReadWriteLock;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #observers: Observers;
  readonly #audit: VaultAudit | null;
  readonly #idle: IdleDeadline;
  readonly #thread: KeyThread;
  readonly #derivations: DerivationCounts;
  #unlocked = false;
  #lastLock: LastLock;
  #closed = false;
  #rotation: string | null = null;
  #mounts = 0;
  /** Proposed headers, and how many mounts there had been when they were asked for. */
  readonly #proposals = new WeakMap<Bytes, number>();
  #locking: Promise<void> | null = null;

  private constructor({ header, lock, settings, clock, log, observers, audit }: KeyStateOptions) {
    this.#header = header;
    this.#lock = lock;
    this.#log = log;
    this.#clock = clock;
    this.#observers = observers;
    this.#audit = audit;
    this.#lastLock = { reason: "start", at: clock.now() };
    this.#idle = new IdleDeadline(clock, settings.idleTimeoutMs);
    this.#derivations = new DerivationCounts(clock, (ms) => observers.derivationEnded(ms));
    this.#thread = new KeyThread(settings, clock, log, observers, () => this.#threadEnded());
  }

  /** @throws VaultError INTEGRITY when the key worker finds the header invalid. */
  static async begin(options: KeyStateOptions): Promise<KeyState> {
    const keyState = new KeyState(options);
    try {
      await keyState.mount();
      return keyState;
    } catch (error) {
      await keyState.#thread.stop();
      throw error;
    }
  }

  get unlocked(): boolean {
    return this.#unlocked;
  }

  get lastLock(): LastLock {
    return this.#lastLock;
  }

  /** Names the rotation of the master key that the vault is in; null when it is in none. */
  get rotation(): string | null {
    return this.#rotation;
  }

  /** Milliseconds since 1970. */
  get lastActivity(): number {
    return this.#idle.lastActivity;
  }

  get derivations(): DerivationFigures {
    return this.#derivations.figures;
  }

  /** How often the key worker's thread has crashed. */
  get crashes(): number {
    return this.#thread.crashes;
  }

  touch(): void {
    this.#idle.touch();
  }

  /** @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  mustBeUnlocked(): void {
    if (this.#closed) throw shuttingDown();
    if (!this.#unlocked) throw new VaultError("VAULT_LOCKED", "the vault is locked: unlock it first");
  }

  /** Calls the key worker. @throws VaultError as KeyWorkerClient.call */
  ask<R extends Request>(request: R): Promise<Success<R>> {
    return this.#noticingLock(this.#thread.call(request));
  }

  /** As `ask`, but waits for a running lock: a thread that is about to be replaced must not begin a derivation. */
  derive<R extends DerivingRequest>(request: R): Promise<Success<R>> {
    return this.#derivations.count(() => this.#derive(request));
  }

  /** The key worker has replied that it holds the key. A lock or a mount since then is not undone. */
  becomeUnlocked(): void {
    this.#unlocked = this.#locking === null && !this.#thread.isMounting && !this.#closed;
    if (!this.#unlocked) return;
    this.#idle.touch();
    this.#idle.watch(() => this.lockIfIdle());
  }

  /** Resolves once the master key is wiped and all running operations have ended. */
  lock(reason: LockReason): Promise<void> {
    const last = this.#becomeLocked(reason);
    this.#locking ??= this.#wipeAndReplace(last).finally(() => {
      this.#locking = null;
    });
    return this.#locking;
  }

  lockIfIdle(): void {
    if (!this.#unlocked || !this.#idle.expired()) return;
    const locking = this.lock("idle"); // before the log line: nothing may delay it
    this.#log.info({ event: "idle-locked" });
    locking.catch((error: unknown) => this.#log.error({ event: "lock-failed", error }));
  }

  /**
   * Whether the thread still holds aside the header that it proposed: not after a crash, nor once another was mounted, which
   * the proposal does not know.
   */
  holds(proposed: Bytes): boolean {
    return this.#proposals.get(proposed) === this.#mounts;
  }

  /** Lets the key worker use the header that it has proposed, which is on disk now. @throws VaultError as `ask` */
  async adopt(proposed: Bytes): Promise<void> {
    if (!this.holds(proposed)) throw new VaultError("INTERNAL", "the key worker ended before it adopted the header");
    this.#rotation = (await this.ask({ op: "adopt" })).rotation;
  }

  /** Passes the current header to the thread, which wipes any key that it held. */
  async mount(): Promise<void> {
    const last = this.#becomeLocked("crash");
    this.#mounts++;
    if (last !== null) this.#thread.signAndWipe(last).catch(() => {}); // a thread that has ended mounts nothing either
    this.#rotation = await this.#thread.mount(this.#header());
  }

  /** Locks for good. */
  async close(): Promise<void> {
    this.#closed = true;
    try {
      await this.lock("shutdown");
    } finally {
      await this.#thread.stop();
    }
  }

  /** Returns the audit log's last checkpoint, which must go to the key worker with the message that wipes its keys. */
  #becomeLocked(reason: LockReason): LastCheckpoint | null {
    if (!this.#unlocked) return null;
    this.#unlocked = false;
    this.#lastLock = { reason, at: this.#clock.now() };
    this.#observers.vaultEvent({ event: "lock", ...this.#lastLock });
    return this.#audit?.vaultLocked(reason) ?? null;
  }

  async #derive<R extends DerivingRequest>(request: R): Promise<Success<R>> {
    this.lockIfIdle();
    while (this.#locking !== null || this.#thread.orphan !== null) await (this.#locking ?? this.#thread.orphan);
    // DANGER: nothing may be awaited between this check and the message.
    if (this.#closed) throw shuttingDown();
    const mounts = this.#mounts;
    const reply = await this.#noticingLock(this.#derivations.countSent(this.#thread.derive(request)));
    if (reply.header !== null) this.#proposals.set(reply.header, mounts);
    return reply;
  }

  /** A reply that the vault is locked means that the thread has lost the key. */
  async #noticingLock<T>(reply: Promise<T>): Promise<T> {
    try {
      return await reply;
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== "VAULT_LOCKED") throw error;
      this.#becomeLocked("crash")?.end(null);
      throw this.#closed ? shuttingDown() : error;
    }
  }

  async #wipeAndReplace(last: LastCheckpoint | null): Promise<void> {
    this.#idle.stop();
    const isDeriving = await this.#thread.wipe(last);
    await this.#lock.exclusive(async () => {
      if (!this.#closed && this.#thread.replaceIfDerived(isDeriving)) this.#remount();
    });
    this.#log.info({ event: "locked" });
  }

  #threadEnded(): void {
    this.#becomeLocked("crash")?.end(null);
    this.#idle.stop();
    this.#log.error({
      event: "key-worker-ended",
      hint: "the vault is locked: unlock it again; a new thread has started",
    });
    this.#remount();
  }

  /** Not awaited: the thread handles requests in order, so the next one finds it mounted. */
  #remount(): void {
    this.mount().catch((error: unknown) => this.#log.error({ event: "mount-failed", error }));
  }
}

function shuttingDown(): VaultError {
  return new VaultError("UNAVAILABLE", "the server is shutting down");
}
