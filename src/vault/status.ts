/** Status of the vault for clients, and its figures for metrics. */
import { type Clock, withTimeout } from "../clock.js";
import { VaultError } from "../errors.js";
import type { LockReason } from "../observer.js";
import type { SecretStore } from "../storage/secret-store.js";
import type { Expiring, ExpiryIndex } from "./expiry.js";
import type { Header, ShownSlot } from "./header.js";
import type { DerivationStats, LockState } from "./lock-state.js";
import type { RotationProgress, RotationSweep } from "./rotation.js";
import type { VaultSecrets } from "./secrets.js";

export type VaultStatus = {
  readonly initialized: boolean;
  readonly locked: boolean;
  readonly secretCount: number;
  readonly vaultPath: string;
  readonly idleTimeoutMs: number;
  readonly lastActivity: string;
  /** While unlocked: the one before. */
  readonly lastLock: { readonly reason: LockReason; readonly at: string };
  /** Unless it is not known: while locked, and shortly after an unlock. */
  readonly expiry?: Pick<Expiring, "expired" | "within30Days">;
  /** While the master key is being rotated. */
  readonly rotation?: RotationProgress;
  /** False while storage does not answer: `secretCount` is then the last known number. */
  readonly storageAvailable?: boolean;
  /** With it: why, where that is known. */
  readonly storageProblem?: string;
};

/** For metrics; of this moment, or since the start. Times in milliseconds. */
export type VaultFigures = {
  readonly initialized: boolean;
  readonly unlocked: boolean;
  /** Null while storage does not answer. */
  readonly secrets: number | null;
  /** Null while it is not known. */
  readonly expiring: Expiring | null;
  /** Since the last activity. */
  readonly idleMs: number;
  readonly derivations: DerivationStats;
  /** Threads that replaced one that had crashed. */
  readonly keyWorkerCrashes: number;
  readonly caches: VaultSecrets["cacheStats"];
};

type VaultReportParts = {
  readonly store: SecretStore;
  readonly header: Header;
  readonly lockState: LockState;
  readonly secrets: VaultSecrets;
  readonly sweep: RotationSweep;
  readonly expiry: ExpiryIndex;
  readonly clock: Clock;
  readonly idleTimeoutMs: number;
};

/** `available`: false when storage does not answer; `count` is then the last known one. */
type KnownCount = { readonly count: number; readonly available: boolean };

/** Time limit for counting in a shared store, in milliseconds. */
const longestCountMs = 1_000;

export class VaultReport {
  readonly #parts: VaultReportParts;
  #lastCount = 0;
  /** Why the last count failed. */
  #problem: string | null = null;
  /** Whether a count that has taken too long is still running. */
  #isCounting = false;

  constructor(parts: VaultReportParts) {
    this.#parts = parts;
  }

  slots(): readonly ShownSlot[] {
    return this.#parts.header.slots();
  }

  derivations(): DerivationStats {
    return this.#parts.lockState.derivations;
  }

  state(): Pick<VaultStatus, "initialized" | "locked"> {
    const { header, lockState } = this.#parts;
    lockState.lockIfIdle();
    return { initialized: header.exists, locked: !lockState.unlocked };
  }

  async status(): Promise<VaultStatus> {
    const { store, lockState, sweep, expiry, idleTimeoutMs } = this.#parts;
    const state = this.state();
    const { count: secretCount, available } = await this.count();
    const rotation = sweep.progress(secretCount);
    const { reason, at } = lockState.lastLock;
    const expiring = expiry.count();
    return {
      ...state,
      secretCount,
      vaultPath: store.vaultPath,
      idleTimeoutMs,
      lastActivity: new Date(lockState.lastActivity).toISOString(),
      lastLock: { reason, at: new Date(at).toISOString() },
      ...(expiring && { expiry: { expired: expiring.expired, within30Days: expiring.within30Days } }),
      ...(rotation && { rotation }),
      ...(!available && { storageAvailable: false }),
      ...(!available && this.#problem !== null && { storageProblem: this.#problem }),
    };
  }

  async figures(): Promise<VaultFigures> {
    const { header, lockState, secrets, expiry, clock } = this.#parts;
    lockState.lockIfIdle();
    const counted = await this.count().catch(() => null); // metrics are printed all the same
    return {
      initialized: header.exists,
      unlocked: lockState.unlocked,
      secrets: counted?.available ? counted.count : null,
      expiring: expiry.count(),
      idleMs: Math.max(0, clock.now() - lockState.lastActivity),
      derivations: lockState.derivations,
      keyWorkerCrashes: lockState.crashes,
      caches: secrets.cacheStats,
    };
  }

  /** Returns the number of secrets; of a shared store, within the time limit. */
  async count(): Promise<KnownCount> {
    const { store } = this.#parts;
    if (store.shared === undefined) return { count: await store.count(), available: true };
    const count = this.#isCounting ? null : await this.#countInTime();
    this.#lastCount = count ?? this.#lastCount;
    return { count: this.#lastCount, available: count !== null };
  }

  /** Returns null when storage does not answer in time. */
  async #countInTime(): Promise<number | null> {
    const counting = this.#countOrNull();
    const count = await withTimeout(this.#parts.clock, longestCountMs, counting);
    if (count !== "late") return count;
    this.#isCounting = true;
    const ended = () => {
      this.#isCounting = false;
    };
    counting.then(ended, ended);
    return null;
  }

  async #countOrNull(): Promise<number | null> {
    try {
      const count = await this.#countOfCurrent();
      this.#problem = null;
      return count;
    } catch (error) {
      if (!(error instanceof VaultError)) throw error;
      this.#problem = error.message;
      return null;
    }
  }

  async #countOfCurrent(): Promise<number> {
    const { store, header } = this.#parts;
    try {
      return await store.count();
    } catch (error) {
      if (header.loading === null) throw error;
      await header.loading;
      return store.count();
    }
  }
}
