/**
 * Sweep of a rotation: re-seals each secret under the new master key, in the turn of its path, and then removes the old
 * key from the header. After a lock it continues where it was; after a restart, also of a database, it begins again, and only
 * looks at what is re-sealed already.
 */
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import { readPages, type SecretStore, type Space } from "../storage/secret-store.js";
import type { Header } from "./header.js";
import type { LockState } from "./lock-state.js";
import type { SealedSpace } from "./space.js";

export type RotationProgress = { readonly done: number; readonly total: number };

type RotationSweepOptions = {
  readonly store: SecretStore;
  readonly lockState: LockState;
  readonly spaces: Readonly<Record<Space, SealedSpace>>;
  readonly header: Header;
  readonly clock: Clock;
  readonly log: Log;
  /** Signs the vault's records again. */
  readonly resignRecords: () => Promise<void>;
};

/** While requests come, the sweep rests so many times as long as it has worked, within these bounds in milliseconds. */
const restFactor = 6;
const shortestRestMs = 5;
const longestRestMs = 100;

const pathsAtOnce = 64;

/** How often a server asks whether another one has ended its sweep, in milliseconds. */
const otherSweepMs = 5_000;

/** Wait after a failure of the disk; doubles up to the longest. */
const retryMs = 1_000;
const longestRetryMs = 60_000;

/** Spaces that the master key seals, in the order of the sweep. */
const sweptSpaces = ["secrets", "trash", "keys"] as const;
type SweptSpace = (typeof sweptSpaces)[number];

/** `after`: all paths of the space up to it are done. `run`: of the store, see `SharedStore.currentRun`; null before the first step. */
type Sweep = {
  readonly rotation: string;
  run: string | null;
  space: SweptSpace;
  after: string;
  done: number;
  damaged: number;
  failures: number;
  running: boolean;
};

export class RotationSweep {
  readonly #options: RotationSweepOptions;
  #sweep: Sweep | null = null;
  #requestsSeen = 0;
  #closed = false;
  #wakeUp: () => void = () => {};

  constructor(options: RotationSweepOptions) {
    this.#options = options;
  }

  /** Begins, or continues, if the vault is unlocked and in a rotation. */
  wake(): void {
    const { rotation } = this.#options.header;
    if (rotation === null) return;
    if (this.#sweep?.rotation !== rotation) this.#sweep = newSweep(rotation);
    const sweep = this.#sweep;
    if (!sweep.running && this.#continues(sweep)) void this.#run(sweep);
  }

  /** Null outside of a rotation. `total`: the number of secrets. */
  progress(total: number): RotationProgress | null {
    const { rotation } = this.#options.header;
    if (rotation === null) return null;
    return { done: this.#sweep?.rotation === rotation ? Math.min(this.#sweep.done, total) : 0, total };
  }

  close(): void {
    this.#closed = true;
    this.#wakeUp();
  }

  #continues(sweep: Sweep): boolean {
    const { lockState, header } = this.#options;
    return !this.#closed && lockState.unlocked && header.rotation === sweep.rotation;
  }

  async #run(sweep: Sweep): Promise<void> {
    sweep.running = true;
    while (this.#continues(sweep)) {
      try {
        if (!(await this.#alone(() => this.#runAlone(sweep)))) await this.#sleep(otherSweepMs);
      } catch (error) {
        if (this.#continues(sweep)) await this.#waitAfter(error, sweep);
      }
    }
    sweep.running = false; // DANGER: nothing may be awaited after the loop's last check, or a `wake` in between is lost
  }

  /** Returns false while another server sweeps. */
  async #alone(work: () => Promise<void>): Promise<boolean> {
    const { shared } = this.#options.store;
    if (shared !== undefined) return shared.alone(work);
    await work();
    return true;
  }

  async #runAlone(sweep: Sweep): Promise<void> {
    const run = await this.#storeRun();
    if (sweep.run !== run) Object.assign(sweep, { ...newSweep(sweep.rotation), run, running: true });
    for (const space of sweptSpaces.slice(sweptSpaces.indexOf(sweep.space))) {
      if (space !== sweep.space) Object.assign(sweep, { space, after: "" });
      if (!(await this.#sweepSpace(sweep))) return;
    }
    if (this.#continues(sweep)) await this.#finish(sweep);
  }

  /** Returns whether all blobs of the space have been seen. */
  async #sweepSpace(sweep: Sweep): Promise<boolean> {
    const { store } = this.#options;
    const list = (after: string) => store.list("", after, pathsAtOnce, sweep.space);
    for await (const paths of readPages(list, pathsAtOnce, sweep.after)) {
      for (const path of paths) {
        if (!this.#continues(sweep)) return false;
        await this.#step(sweep, path);
      }
    }
    return true;
  }

  async #step(sweep: Sweep, path: string): Promise<void> {
    const { clock } = this.#options;
    const started = clock.elapsed();
    if (!(await this.#reseal(sweep.space, path))) sweep.damaged++;
    sweep.after = path;
    sweep.done++;
    sweep.failures = 0;
    await this.#rest(clock.elapsed() - started);
  }

  /** Returns false for a damaged secret or key: it is left as it is, and the sweep continues. */
  async #reseal(space: SweptSpace, path: string): Promise<boolean> {
    try {
      return await this.#options.spaces[space].reseal(path);
    } catch (error) {
      if (error instanceof VaultError && error.code === "INTEGRITY") return false;
      throw error;
    }
  }

  /** DANGER: every secret must have been seen. A blob that is still under the old key is lost from here on. */
  async #finish(sweep: Sweep): Promise<void> {
    const { rotation, damaged } = sweep;
    const { lockState, header, log, resignRecords } = this.#options;
    await resignRecords();
    const { header: proposed } = await lockState.derive({ op: "finishRotation", rotation });
    await header.replace(proposed, () => this.#mustBeInSameRun(sweep));
    if (damaged > 0) log.warn({ event: "rotation-left-damaged-secrets", count: damaged });
    log.info({ event: "rotation-finished" });
  }

  /** DANGER: in another run of the database, what was re-sealed may be under the old key again. */
  async #mustBeInSameRun({ run }: Sweep): Promise<null> {
    if ((await this.#storeRun()) === run) return null;
    throw new VaultError("UNAVAILABLE", "the database was restarted: the sweep begins again");
  }

  async #storeRun(): Promise<string> {
    return (await this.#options.store.shared?.currentRun()) ?? "";
  }

  /** Without requests it only lets others have their turn. */
  #rest(workedMs: number): Promise<void> {
    const requests = Object.values(this.#options.spaces).reduce((sum, space) => sum + space.requests, 0);
    const isBusy = requests !== this.#requestsSeen;
    this.#requestsSeen = requests;
    if (isBusy) return this.#sleep(Math.min(longestRestMs, Math.max(shortestRestMs, restFactor * workedMs)));
    return new Promise((resolve) => setImmediate(resolve));
  }

  async #waitAfter(error: unknown, sweep: Sweep): Promise<void> {
    if (sweep.failures === 0) this.#options.log.warn({ event: "rotation-waits", error });
    const wait = Math.min(longestRetryMs, retryMs * 2 ** sweep.failures);
    sweep.failures = Math.min(sweep.failures + 1, 10);
    await this.#sleep(wait);
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve);
      this.#wakeUp = () => {
        cancel();
        resolve();
      };
    });
  }
}

function newSweep(rotation: string): Sweep {
  return { rotation, run: null, space: "secrets", after: "", done: 0, damaged: 0, failures: 0, running: false };
}
