/** Status of the vault for clients, and figures for metrics. */
import type { Clock } from "../clock.js";
import type { LockReason } from "../observer.js";
import type { SecretStore } from "../storage/secret-store.js";
import type { KeyState } from "./key-state.js";
import type { RotationProgress, RotationSweep } from "./rotation-sweep.js";
import type { CurrentHeader, OtherServers } from "./shared/other-servers.js";
import type { VaultSecrets } from "./vault-secrets.js";
import type { DerivationFigures } from "./worker/derivation-counts.js";

export type VaultStatus = {
  readonly initialized: boolean;
  readonly locked: boolean;
  readonly secretCount: number;
  readonly vaultPath: string;
  readonly idleTimeoutMs: number;
  readonly lastActivity: string;
  /** While unlocked: the one before. */
  readonly lastLock: { readonly reason: LockReason; readonly at: string };
  /** While the master key is being rotated. */
  readonly rotation?: RotationProgress;
  /** False while storage does not answer: `secretCount` is then the last known number. */
  readonly storageAvailable?: boolean;
};

/** For metrics; of this moment, or since the start. Times in milliseconds. */
export type VaultFigures = {
  readonly initialized: boolean;
  readonly unlocked: boolean;
  /** Null while storage does not answer. */
  readonly secrets: number | null;
  /** Since the last activity. */
  readonly idleMs: number;
  readonly derivations: DerivationFigures;
  /** Threads that replaced one that had crashed. */
  readonly keyWorkerCrashes: number;
  readonly caches: VaultSecrets["cacheFigures"];
};

type VaultReportParts = {
  readonly store: SecretStore;
  readonly header: CurrentHeader;
  readonly keyState: KeyState;
  readonly secrets: VaultSecrets;
  readonly sweep: RotationSweep;
  readonly others: OtherServers;
  readonly clock: Clock;
  readonly idleTimeoutMs: number;
};

export class VaultReport {
  readonly #parts: VaultReportParts;

  constructor(parts: VaultReportParts) {
    this.#parts = parts;
  }

  async status(): Promise<VaultStatus> {
    const { store, header, keyState, sweep, others, idleTimeoutMs } = this.#parts;
    keyState.lockIfIdle();
    const { count: secretCount, available } = await others.count();
    const rotation = sweep.progress(secretCount);
    const { reason, at } = keyState.lastLock;
    return {
      initialized: header.bytes !== null,
      locked: !keyState.unlocked,
      secretCount,
      vaultPath: store.vaultPath,
      idleTimeoutMs,
      lastActivity: new Date(keyState.lastActivity).toISOString(),
      lastLock: { reason, at: new Date(at).toISOString() },
      ...(rotation && { rotation }),
      ...(!available && { storageAvailable: false }),
    };
  }

  async figures(): Promise<VaultFigures> {
    const { header, keyState, secrets, others, clock } = this.#parts;
    keyState.lockIfIdle();
    const counted = await others.count().catch(() => null); // metrics are printed all the same
    return {
      initialized: header.bytes !== null,
      unlocked: keyState.unlocked,
      secrets: counted?.available ? counted.count : null,
      idleMs: Math.max(0, clock.now() - keyState.lastActivity),
      derivations: keyState.derivations,
      keyWorkerCrashes: keyState.crashes,
      caches: secrets.cacheFigures,
    };
  }
}
