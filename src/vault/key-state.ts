/**
 * Lock state: the key worker, which vault it was told, and every way in which it loses the key (lock, idle deadline,
 * crash, close). The truth "unlocked" is "the key worker holds the key"; the flag here mirrors it.
 */
import type { Bytes, Request, RequestOf } from "../../workers/protocol.js";
import type { WorkerSettings } from "../../workers/worker-settings.js";
import { type Clock, inTime } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { LockReason, Observers } from "../observer.js";
import { IdleDeadline } from "./idle.js";
import type { ReadWriteLock } from "./sync/read-write-lock.js";
import { DerivationCounts, type DerivationFigures } from "./worker/derivation-counts.js";
import { KeyWorkerClient, type Success } from "./worker/key-worker-client.js";

export type KeyStateSettings = WorkerSettings & { readonly idleTimeoutMs: number };

export type KeyStateOptions = {
  /** Returns the current vault's header, or null before init. */
  readonly header: () => Bytes | null;
  /** Held by everything that works on the vault. */
  readonly lock: ReadWriteLock;
  readonly settings: KeyStateSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly observers: Observers;
};

/** Why and when the vault was locked last; `at`: milliseconds since 1970. */
export type LastLock = { readonly reason: LockReason; readonly at: number };

/** Operations that derive a key or change the header. */
type Deriving = "init" | "unlock" | "changePassphrase" | "createKey" | "deleteKey" | "rotate" | "finishRotation";

/**
 * How long a lock waits for a running derivation, in milliseconds. scrypt cannot be interrupted; the costliest takes 3 s of
 * a free processor. A slower one goes on in its thread, which is no longer used and ends with it: what the derivation
 * holds of the passphrase is wiped by OpenSSL then, and its result reaches no one.
 */
const longestDerivationMs = 3_500;

export class KeyState {
  readonly #header: () => Bytes | null;
  readonly #lock: ReadWriteLock;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #observers: Observers;
  readonly #idle: IdleDeadline;
  readonly #worker: KeyWorkerClient;
  #unlocked = false;
  #lastLock: LastLock;
  #closed = false;
  #rotation: string | null = null;
  /** Whether the current thread has seen a passphrase. */
  #derived = false;
  #locking: Promise<void> | null = null;
  /** Settles when a replaced thread that was still deriving is gone: one derivation at a time. */
  #orphan: Promise<void> | null = null;
  readonly #derivations: DerivationCounts;
  /** How many mounts the thread has not confirmed yet. */
  #mounting = 0;

  private constructor({ header, lock, settings, clock, log, observers }: KeyStateOptions) {
    const { idleTimeoutMs, maxValueBytes, keepVersions, keepVersionBytes, minScryptLogN } = settings;
    const history = { keepVersions, keepVersionBytes };
    const workerSettings = { maxValueBytes, ...history, ...(minScryptLogN && { minScryptLogN }) };
    this.#header = header;
    this.#lock = lock;
    this.#log = log;
    this.#clock = clock;
    this.#observers = observers;
    this.#lastLock = { reason: "start", at: clock.now() };
    this.#derivations = new DerivationCounts(clock, (ms) => observers.derivationEnded(ms));
    this.#idle = new IdleDeadline(clock, idleTimeoutMs);
    const replied = (ms: number) => observers.keyWorkerReplied(ms);
    this.#worker = KeyWorkerClient.start(workerSettings, clock, () => this.#workerEnded(), replied);
  }

  /** @throws VaultError INTEGRITY when the key worker finds the header invalid. */
  static async begin(options: KeyStateOptions): Promise<KeyState> {
    const keyState = new KeyState(options);
    try {
      await keyState.mount();
      return keyState;
    } catch (error) {
      await keyState.#worker.stop();
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

  /** Calls the key worker. @throws VaultError as KeyWorkerClient.call */
  async ask<R extends Request>(request: R): Promise<Success<R>> {
    try {
      return await this.#worker.call(request);
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== "VAULT_LOCKED") throw error;
      this.#becomeLocked("crash");
      throw this.#closed ? shuttingDown() : error;
    }
  }

  /** As `ask`, but waits for a running lock: a thread that is about to be replaced must not begin a derivation. */
  derive<R extends RequestOf<Deriving>>(request: R): Promise<Success<R>> {
    return this.#derivations.count(() => this.#derive(request));
  }

  async #derive<R extends RequestOf<Deriving>>(request: R): Promise<Success<R>> {
    this.lockIfIdle();
    while (this.#locking !== null || this.#orphan !== null) await (this.#locking ?? this.#orphan);
    // DANGER: nothing may be awaited between this check and the message.
    if (this.#closed) throw shuttingDown();
    this.#derived = true;
    return this.#derivations.countSent(this.ask(request));
  }

  /** The key worker has replied that it holds the key. A lock or a mount since then is not undone. */
  becomeUnlocked(): void {
    this.#unlocked = this.#locking === null && this.#mounting === 0 && !this.#closed;
    if (!this.#unlocked) return;
    this.#idle.touch();
    this.#idle.watch(() => this.lockIfIdle());
  }

  /** Resolves once the master key is wiped and all running operations have ended. */
  lock(reason: LockReason): Promise<void> {
    this.#becomeLocked(reason);
    this.#locking ??= this.#wipeAndReplace().finally(() => {
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

  /** Lets the key worker use the header that it has proposed, which is on disk now. @throws VaultError as `ask` */
  async adopt(): Promise<void> {
    this.#rotation = (await this.ask({ op: "adopt" })).rotation;
  }

  /** Passes the current header to the thread, which wipes any key that it held. */
  async mount(): Promise<void> {
    this.#becomeLocked("crash");
    this.#mounting++;
    try {
      const header = this.#header();
      const { rotation } = await this.#worker.call({ op: "mount", header: header && new Uint8Array(header) });
      this.#rotation = rotation;
    } finally {
      this.#mounting--;
    }
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

  #becomeLocked(reason: LockReason): void {
    if (!this.#unlocked) return;
    this.#unlocked = false;
    this.#lastLock = { reason, at: this.#clock.now() };
    this.#observers.vaultEvent({ event: "lock", ...this.#lastLock });
  }

  async #wipeAndReplace(): Promise<void> {
    this.#idle.stop();
    const isDeriving = await this.#wipe();
    await this.#lock.exclusive(async () => {
      if (this.#closed || !this.#derived) return;
      const ended = this.#worker.replace();
      if (isDeriving) this.#holdDerivations(ended);
      this.#derived = false;
      this.#remount();
    });
    this.#log.info({ event: "locked" });
  }

  /** Returns whether a derivation is still running. A thread that has ended holds no key either. */
  async #wipe(): Promise<boolean> {
    try {
      await this.#worker.call({ op: "lock" });
      return (await inTime(this.#clock, longestDerivationMs, this.#worker.call({ op: "drain" }))) === "late";
    } catch (error) {
      this.#log.warn({ event: "key-worker-ended-in-lock", error });
      return false;
    }
  }

  #holdDerivations(until: Promise<void>): void {
    this.#orphan = until.finally(() => {
      this.#orphan = null;
    });
  }

  #workerEnded(): void {
    this.#becomeLocked("crash");
    this.#derived = false;
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
