/**
 * Owns whether the vault is locked: the key worker, what it was told, and every way in which it loses the key (lock, the
 * idle deadline, a crash, the end). The truth "unlocked" is "the key worker holds the key"; the flag here mirrors it.
 */
import type { Bytes, Request, RequestOf, WorkerSettings } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import { IdleDeadline } from "./idle.js";
import type { ReadWriteLock } from "./sync/read-write-lock.js";
import { KeyWorkerClient, type Success } from "./worker/key-worker-client.js";

export type KeyStateSettings = WorkerSettings & { readonly idleTimeoutMs: number };

export class KeyState {
  readonly #header: () => Bytes | null;
  readonly #gate: ReadWriteLock;
  readonly #log: Log;
  readonly #idle: IdleDeadline;
  readonly #worker: KeyWorkerClient;
  #unlocked = false;
  #closed = false;
  /** The present thread has seen a passphrase. */
  #derived = false;
  #locking: Promise<void> | null = null;
  /** How many vaults the thread has yet to say that it serves. */
  #mounting = 0;

  private constructor(
    header: () => Bytes | null,
    gate: ReadWriteLock,
    settings: KeyStateSettings,
    clock: Clock,
    log: Log,
  ) {
    const { idleTimeoutMs, maxValueBytes, minScryptLogN } = settings;
    const workerSettings = { maxValueBytes, ...(minScryptLogN && { minScryptLogN }) };
    this.#header = header;
    this.#gate = gate;
    this.#log = log;
    this.#idle = new IdleDeadline(clock, idleTimeoutMs);
    this.#worker = KeyWorkerClient.start(workerSettings, clock, () => this.#workerEnded());
  }

  /**
   * `header` tells the vault in force, `gate` is what all work on it passes.
   * @throws VaultError INTEGRITY when the key worker does not understand the header.
   */
  static async begin(
    header: () => Bytes | null,
    gate: ReadWriteLock,
    settings: KeyStateSettings,
    clock: Clock,
    log: Log,
  ): Promise<KeyState> {
    const keyState = new KeyState(header, gate, settings, clock, log);
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

  /** Milliseconds since 1970. */
  get lastActivity(): number {
    return this.#idle.lastActivity;
  }

  touch(): void {
    this.#idle.touch();
  }

  /** @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  mustBeUnlocked(): void {
    if (this.#closed) throw shuttingDown();
    if (!this.#unlocked) throw new VaultError("VAULT_LOCKED", "the vault is locked: unlock it first");
  }

  /** Asks the key worker. */
  async ask<R extends Request>(request: R): Promise<Success<R>> {
    try {
      return await this.#worker.call(request);
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== "VAULT_LOCKED") throw error;
      this.#unlocked = false;
      throw this.#closed ? shuttingDown() : error;
    }
  }

  /** Asks for a derivation, which a thread that is about to be replaced must not begin. */
  async derive<R extends RequestOf<"init" | "unlock">>(request: R): Promise<Success<R>> {
    this.lockIfIdle();
    while (this.#locking !== null) await this.#locking;
    // DANGER: nothing may be awaited between the look at #locking and the message.
    if (this.#closed) throw shuttingDown();
    this.#derived = true;
    return this.ask(request);
  }

  /** The key worker has said that it holds the key. A lock since then is not undone, nor is a mount, which locks, too. */
  becomeUnlocked(): void {
    this.#unlocked = this.#locking === null && this.#mounting === 0 && !this.#closed;
    if (!this.#unlocked) return;
    this.#idle.touch();
    this.#idle.watch(() => this.lockIfIdle());
  }

  /** Resolves once the master key is wiped and everything that was under way has ended. */
  lock(): Promise<void> {
    this.#unlocked = false;
    this.#locking ??= this.#wipeAndReplace().finally(() => {
      this.#locking = null;
    });
    return this.#locking;
  }

  lockIfIdle(): void {
    if (!this.#unlocked || !this.#idle.expired()) return;
    this.#log.info({ event: "idle-locked" });
    this.lock().catch((error: unknown) => this.#log.error({ event: "lock-failed", error }));
  }

  /** Tells the thread which vault it serves; whatever key it held is wiped. */
  async mount(): Promise<void> {
    this.#unlocked = false;
    this.#mounting++;
    try {
      const header = this.#header();
      await this.#worker.call({ op: "mount", header: header && new Uint8Array(header) });
    } finally {
      this.#mounting--;
    }
  }

  /** Locks for good. */
  async close(): Promise<void> {
    this.#closed = true;
    try {
      await this.lock();
    } finally {
      await this.#worker.stop();
    }
  }

  async #wipeAndReplace(): Promise<void> {
    this.#idle.stop();
    await this.#wipe();
    await this.#gate.exclusive(async () => {
      if (this.#closed || !this.#derived) return;
      this.#worker.replace();
      this.#derived = false;
      this.#remount();
    });
    this.#log.info({ event: "locked" });
  }

  /** A thread that has ended holds no key either. */
  async #wipe(): Promise<void> {
    try {
      await this.#worker.call({ op: "lock" });
    } catch (error) {
      this.#log.warn({ event: "key-worker-ended-in-lock", error });
    }
  }

  #workerEnded(): void {
    this.#unlocked = false;
    this.#derived = false;
    this.#idle.stop();
    this.#log.error({ event: "key-worker-ended", hint: "the vault is locked; a fresh thread has taken over" });
    this.#remount();
  }

  /** Not awaited: whatever is asked next stands behind it in the thread's queue. */
  #remount(): void {
    this.mount().catch((error: unknown) => this.#log.error({ event: "mount-failed", error }));
  }
}

function shuttingDown(): VaultError {
  return new VaultError("UNAVAILABLE", "the server is shutting down");
}
