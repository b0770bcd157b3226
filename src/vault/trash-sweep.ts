/**
 * Sweep of the trash: destroys what has been there for longer than it is kept, soon after the start and then hourly, whether the
 * vault is locked or not.
 */
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { VaultAudit } from "./lock-state.js";
import type { VaultTrash } from "./trash.js";

type TrashSweepOptions = {
  readonly trash: VaultTrash;
  readonly clock: Clock;
  readonly log: Log;
  /** 0: for ever. */
  readonly keepTrashDays: number;
  readonly audit: Pick<VaultAudit, "record"> | null;
};

/** In milliseconds. */
const firstAfterMs = 2_000;
const everyMs = 3_600_000;
const dayMs = 24 * 3_600_000;

export class TrashSweep {
  readonly #options: TrashSweepOptions;
  /** When the next secret has been there long enough, in milliseconds since 1970; what is trashed since comes later. */
  #nextAt = 0;
  #running: Promise<void> | null = null;
  #closed = false;
  #cancel: () => void = () => {};

  constructor(options: TrashSweepOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#options.keepTrashDays > 0) this.#schedule(firstAfterMs);
  }

  /** Resolves once nothing is being destroyed. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#running;
  }

  #schedule(ms: number): void {
    this.#cancel = this.#options.clock.after(ms, () => {
      this.#schedule(everyMs);
      this.#running ??= this.#sweep().finally(() => {
        this.#running = null;
      });
    });
  }

  async #sweep(): Promise<void> {
    const { trash, clock, log, audit, keepTrashDays } = this.#options;
    const now = clock.now();
    if (now < this.#nextAt) return;
    const keptMs = keepTrashDays * dayMs;
    let [oldest, count] = [now, 0];
    try {
      await trash.sweep(now - keptMs, {
        destroyed: (path) => {
          count++;
          audit?.record({ event: "destroy", path, reason: "age" });
        },
        kept: (deletedAt) => {
          oldest = Math.min(oldest, deletedAt);
        },
        continues: () => !this.#closed,
      });
      this.#nextAt = oldest + keptMs;
    } catch (error) {
      this.#failed(error);
    }
    if (count > 0) log.info({ event: "trash-swept", count });
  }

  /** Where servers share a database, one may meet a vault that another has replaced: the next sweep is soon enough. */
  #failed(error: unknown): void {
    const isReplaced = error instanceof VaultError && error.code === "VAULT_LOCKED";
    if (!isReplaced) this.#options.log.warn({ event: "trash-sweep-failed", error });
  }
}
