/** Status of the vault for clients, and its figures for metrics. */
import { type Clock, withTimeout } from "../clock.js";
import { VaultError } from "../errors.js";
import type { LockReason } from "../observer.js";
import type { SecretStore, Space } from "../storage/secret-store.js";
import type { CacheStats } from "./cache.js";
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
  /** See `CachedStore.changes`; missing where that is null. */
  readonly changes?: number;
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
  /** Secrets in the trash; null as above. */
  readonly trashed: number | null;
  /** Since the last activity. */
  readonly idleMs: number;
  readonly derivations: DerivationStats;
  /** Threads that replaced a crashed thread. */
  readonly keyWorkerCrashes: number;
  readonly cache: CacheStats;
};

type VaultReportParts = {
  readonly store: SecretStore;
  readonly header: Header;
  readonly lockState: LockState;
  readonly secrets: VaultSecrets;
  readonly sweep: RotationSweep;
  readonly clock: Clock;
  readonly idleTimeoutMs: number;
};

export class VaultReport {
  readonly #parts: VaultReportParts;
  readonly #secrets: BlobCount;
  readonly #trash: BlobCount;

  constructor(parts: VaultReportParts) {
    this.#parts = parts;
    this.#secrets = new BlobCount(parts, "secrets");
    this.#trash = new BlobCount(parts, "trash");
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
    const { store, lockState, secrets, sweep, idleTimeoutMs } = this.#parts;
    const { changes } = secrets;
    const state = this.state();
    const { count: secretCount, available } = await this.count();
    const { problem } = this.#secrets;
    const rotation = sweep.progress(secretCount);
    const { reason, at } = lockState.lastLock;
    return {
      ...state,
      secretCount,
      vaultPath: store.vaultPath,
      idleTimeoutMs,
      lastActivity: new Date(lockState.lastActivity).toISOString(),
      lastLock: { reason, at: new Date(at).toISOString() },
      ...(changes !== null && { changes }),
      ...(rotation && { rotation }),
      ...(!available && { storageAvailable: false }),
      ...(!available && problem !== null && { storageProblem: problem }),
    };
  }

  async figures(): Promise<VaultFigures> {
    const { header, lockState, secrets, clock } = this.#parts;
    lockState.lockIfIdle();
    const counts = [this.#secrets.count(), this.#trash.count()].map((count) => count.catch(() => null)); // printed all the same
    const [secretCount, trashed] = (await Promise.all(counts)).map((one) => (one?.available ? one.count : null));
    return {
      initialized: header.exists,
      unlocked: lockState.unlocked,
      secrets: secretCount ?? null,
      trashed: trashed ?? null,
      idleMs: Math.max(0, clock.now() - lockState.lastActivity),
      derivations: lockState.derivations,
      keyWorkerCrashes: lockState.crashes,
      cache: secrets.cacheStats,
    };
  }

  /** Returns the number of secrets; of a shared store, within the time limit. */
  count(): Promise<KnownCount> {
    return this.#secrets.count();
  }
}

/** `available`: false when storage does not answer; `count` is then the last known one. */
type KnownCount = { readonly count: number; readonly available: boolean };

/** Time limit for counting in a shared store, in milliseconds. */
const longestCountMs = 1_000;

/** The number of blobs in a space; of a shared store, the last known one while that does not answer in time. */
class BlobCount {
  readonly #parts: Pick<VaultReportParts, "store" | "header" | "clock">;
  readonly #space: Space;
  #last = 0;
  /** Why the last count failed. */
  problem: string | null = null;
  /** Whether a count that has taken too long is still running. */
  #isCounting = false;

  constructor(parts: Pick<VaultReportParts, "store" | "header" | "clock">, space: Space) {
    this.#parts = parts;
    this.#space = space;
  }

  async count(): Promise<KnownCount> {
    const { store } = this.#parts;
    if (store.shared === undefined) return { count: await store.count(this.#space), available: true };
    const count = this.#isCounting ? null : await this.#countWithTimeout();
    this.#last = count ?? this.#last;
    return { count: this.#last, available: count !== null };
  }

  /** Returns null when storage does not answer in time. */
  async #countWithTimeout(): Promise<number | null> {
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
      this.problem = null;
      return count;
    } catch (error) {
      if (!(error instanceof VaultError)) throw error;
      this.problem = error.message;
      return null;
    }
  }

  async #countOfCurrent(): Promise<number> {
    const { store, header } = this.#parts;
    try {
      return await store.count(this.#space);
    } catch (error) {
      if (header.loading === null) throw error;
      await header.loading;
      return store.count(this.#space);
    }
  }
}
