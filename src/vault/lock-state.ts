/**
 * Lock state: locked or unlocked, and every way in which the key worker loses the key (lock, idle deadline, crash, close).
 * The truth "unlocked" is "the key worker holds the key"; the flag here mirrors it.
 */
import type { Bytes, Request, WorkerSettings } from "../../workers/protocol.js";
import { type Clock, withTimeout } from "../clock.js";
import { VaultError } from "../errors.js";
import type { ReadWriteLock } from "../locks.js";
import type { Log } from "../log.js";
import type { LockReason, Observers } from "../observer.js";
import { type DerivingRequest, KeyWorker, type LastCheckpoint, type Success } from "./key-worker.js";

export type LockSettings = WorkerSettings & { readonly idleTimeoutMs: number };

/** Audit log's part in the vault's changes of state: steps that the vault calls by name. */
export interface VaultAudit {
  /** After an init or unlock: the key worker signs checkpoints from now on. */
  vaultUnlocked(reason: "init" | "unlock"): void;
  /**
   * Records the lock. Returns the log's last checkpoint, which the key worker signs as part of the message that makes it wipe
   * its keys; null when there is none to sign.
   */
  vaultLocked(reason: LockReason): LastCheckpoint | null;
  /** Records that a secret was destroyed because it had been in the trash for long enough. */
  record(swept: { readonly event: "destroy"; readonly path: string; readonly reason: "age" }): void;
}

/**
 * How long a lock waits for a running derivation, in milliseconds: enough for the costliest on a free processor, since
 * scrypt cannot be interrupted. A slower one continues in its thread, which is retired and ends with it: what the derivation
 * holds of the passphrase is wiped by OpenSSL then, and its result reaches no one.
 */
const longestDerivationMs = 3_500;

type LockStateOptions = {
  /** Held by everything that works on the vault. */
  readonly lock: ReadWriteLock;
  readonly settings: LockSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly observers: Observers;
  readonly audit: VaultAudit | null;
};

/** Why and when the vault was locked last; `at`: milliseconds since 1970. */
type LastLock = { readonly reason: LockReason; readonly at: number };

export type DerivationStats = { readonly running: number; readonly waiting: number };

export class LockState {
  readonly #lock: ReadWriteLock;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #observers: Observers;
  readonly #audit: VaultAudit | null;
  readonly #idle: IdleDeadline;
  readonly #worker: KeyWorker;
  /** Derivations that wait here or in the key worker, and the running one. */
  #derivations = 0;
  #unlocked = false;
  #lastLock: LastLock;
  #closed = false;
  #locking: Promise<void> | null = null;
  #threadReplaced: () => Promise<void> = () => Promise.resolve();

  constructor({ lock, settings, clock, log, observers, audit }: LockStateOptions) {
    this.#lock = lock;
    this.#log = log;
    this.#clock = clock;
    this.#observers = observers;
    this.#audit = audit;
    this.#lastLock = { reason: "start", at: clock.now() };
    this.#idle = new IdleDeadline(clock, settings.idleTimeoutMs);
    const crashed = () => this.#threadCrashed();
    const responded = (ms: number) => observers.keyWorkerResponded(ms);
    this.#worker = KeyWorker.start({ settings, clock, crashed, responded });
  }

  /** Sets what loads the header into a thread that has replaced another. */
  onThreadReplaced(loadHeader: () => Promise<void>): void {
    this.#threadReplaced = loadHeader;
  }

  get unlocked(): boolean {
    return this.#unlocked;
  }

  get lastLock(): LastLock {
    return this.#lastLock;
  }

  /** Milliseconds since 1970. */
  get lastActivity(): number {
    return this.#idle.lastActivity;
  }

  get derivations(): DerivationStats {
    const running = Math.min(1, this.#worker.deriving); // the key worker runs one at a time
    return { running, waiting: this.#derivations - running };
  }

  /** How often the key worker's thread has crashed. */
  get crashes(): number {
    return this.#worker.crashes;
  }

  touch(): void {
    this.#idle.touch();
  }

  /** @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  mustBeUnlocked(): void {
    if (this.#closed) throw shuttingDown();
    if (!this.#unlocked) throw new VaultError("VAULT_LOCKED", "the vault is locked: unlock it first");
  }

  /** Calls the key worker. @throws VaultError as KeyWorker.call */
  async ask<R extends Request>(request: R): Promise<Success<R>> {
    try {
      return await this.#worker.call(request);
    } catch (error) {
      throw this.#noticingLock(error);
    }
  }

  /** Like `ask`, but waits for a running lock: a thread that is about to be replaced must not begin a derivation. */
  async derive<R extends DerivingRequest>(request: R): Promise<Success<R>> {
    const began = this.#clock.elapsed();
    this.#derivations++;
    try {
      this.lockIfIdle();
      while (this.#locking !== null || this.#worker.retiring !== null) await (this.#locking ?? this.#worker.retiring);
      // DANGER: nothing may be awaited between this check and the message.
      if (this.#closed) throw shuttingDown();
      return await this.#worker.derive(request);
    } catch (error) {
      throw this.#noticingLock(error);
    } finally {
      this.#derivations--;
      this.#observers.derivationEnded(this.#clock.elapsed() - began);
    }
  }

  /** The key worker has said that it holds the key. A lock or a load since then is not undone. */
  becomeUnlocked(): void {
    this.#unlocked = this.#locking === null && !this.#worker.isLoading && !this.#closed;
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

  /** Whether the key worker still holds the header that it proposed: see `KeyWorker.holds`. */
  holds(proposed: Bytes): boolean {
    return this.#worker.holds(proposed);
  }

  /** Passes a header to the key worker, which wipes any key that it held. Returns the rotation that the header is in. */
  async load(header: Bytes | null): Promise<string | null> {
    const last = this.#becomeLocked("crash");
    if (last !== null) this.#worker.signAndWipe(last).catch(() => {}); // a thread that has ended loads nothing either
    return this.#worker.load(header);
  }

  /** Locks for good. */
  async close(): Promise<void> {
    this.#closed = true;
    try {
      await this.lock("shutdown");
    } finally {
      await this.#worker.stop();
    }
  }

  /** Ends the key worker of a vault that could not be opened: nothing was unlocked, and no lock is reported. */
  async abandon(): Promise<void> {
    this.#closed = true;
    await this.#worker.stop();
  }

  /** Returns the audit log's last checkpoint, which must go to the key worker with the message that wipes its keys. */
  #becomeLocked(reason: LockReason): LastCheckpoint | null {
    if (!this.#unlocked) return null;
    this.#unlocked = false;
    this.#lastLock = { reason, at: this.#clock.now() };
    this.#observers.vaultEvent({ event: "lock", ...this.#lastLock });
    return this.#audit?.vaultLocked(reason) ?? null;
  }

  /** Returns the error to throw. A response that the vault is locked means that the thread has lost the key. */
  #noticingLock(error: unknown): unknown {
    if (!(error instanceof VaultError) || error.code !== "VAULT_LOCKED") return error;
    this.#becomeLocked("crash")?.end(null);
    return this.#closed ? shuttingDown() : error;
  }

  async #wipeAndReplace(last: LastCheckpoint | null): Promise<void> {
    this.#idle.stop();
    const isDeriving = await this.#wipe(last);
    await this.#lock.exclusive(async () => {
      const replaced = this.#closed ? null : this.#worker.replaceIfDerived(isDeriving);
      if (replaced === null) return;
      this.#loadHeader();
      await replaced.wiped;
    });
    this.#log.info({ event: "locked" });
  }

  /** Returns whether a derivation is still running. A thread that has ended holds no key either. */
  async #wipe(last: LastCheckpoint | null): Promise<boolean> {
    try {
      await this.#worker.signAndWipe(last);
      return (await withTimeout(this.#clock, longestDerivationMs, this.#worker.call({ op: "drain" }))) === "late";
    } catch (error) {
      this.#log.warn({ event: "key-worker-ended-in-lock", error });
      return false;
    }
  }

  #threadCrashed(): void {
    this.#becomeLocked("crash")?.end(null);
    this.#idle.stop();
    this.#log.error({
      event: "key-worker-ended",
      hint: "the vault is locked: unlock it again; a new thread has started",
    });
    this.#loadHeader();
  }

  /** Not awaited: the thread handles requests in order, so the next one finds the header loaded. */
  #loadHeader(): void {
    this.#threadReplaced().catch((error: unknown) => this.#log.error({ event: "load-failed", error }));
  }
}

function shuttingDown(): VaultError {
  return new VaultError("UNAVAILABLE", "the server is shutting down");
}

/** The longest time, in milliseconds, until the timer checks the wall clock again. */
const recheckMs = 5000;

/**
 * Idle deadline by the wall clock, so that it holds across the machine's sleep. A timer stands still while the machine
 * sleeps, so each request also checks `expired`.
 */
class IdleDeadline {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #last: number;
  #cancel: () => void = () => {};

  /** Starts now. `timeoutMs` 0: never. */
  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#last = clock.now();
  }

  /** Milliseconds since 1970 of the last activity, or of the start. */
  get lastActivity(): number {
    return this.#last;
  }

  touch(): void {
    this.#last = this.#clock.now();
  }

  expired(): boolean {
    const now = this.#clock.now();
    if (now < this.#last) this.#last = now; // the clock was set back, which must not extend the deadline
    return this.#timeoutMs > 0 && now - this.#last >= this.#timeoutMs;
  }

  /** Calls `lapsed` once when the deadline has passed. */
  watch(lapsed: () => void): void {
    this.stop();
    if (this.#timeoutMs === 0) return;
    const left = this.#last + this.#timeoutMs - this.#clock.now();
    this.#cancel = this.#clock.after(Math.min(Math.max(left, 1), recheckMs), () => {
      if (this.expired()) lapsed();
      else this.watch(lapsed);
    });
  }

  stop(): void {
    this.#cancel();
    this.#cancel = () => {};
  }
}
