/**
 * Times at which secrets expire. They are sealed with the metadata, so they are read once after an unlock, kept current as
 * secrets change, and forgotten when the vault is locked. Only their counts are shown.
 *
 * Most vaults have no secret that expires. A document says so, and nothing is read: those who do not use it do not pay. It
 * is made after a look at all secrets, and taken back before the first secret that expires is stored. Who can change the
 * files can make the counts wrong by it, and nothing else.
 */
import type { Clock } from "../clock.js";
import { Mutex } from "../locks.js";
import type { Log } from "../log.js";
import type { SecretStore } from "../storage/secret-store.js";
import type { SecretChange } from "./cache.js";
import type { LastLock, LockState } from "./lock-state.js";
import type { VaultSecrets } from "./secrets.js";

/** Numbers of secrets. Those that have expired are not among those that will. */
export type Expiring = { readonly expired: number; readonly within7Days: number; readonly within30Days: number };

type ExpiryIndexOptions = {
  readonly secrets: VaultSecrets;
  readonly store: SecretStore;
  readonly lockState: LockState;
  readonly clock: Clock;
  readonly log: Log;
};

const dayMs = 86_400_000;

/** Delay after an unlock, in milliseconds: the requests that waited for it go first. */
const startMs = 1_000;

/** Changes are read together after this time. */
const collectMs = 500;

/** Other servers' changes of a shared store are seen after this time. */
const otherServersMs = 3_600_000;

/** Delay before it is tried again after a failure. */
const retryMs = 60_000;

/** Pause after each slice, so that a get hardly waits. */
const restMs = 5;

const sliceEntries = 64;
const pageEntries = 512;

export class ExpiryIndex {
  readonly #options: ExpiryIndexOptions;
  readonly #mark: NoExpiryMark | null;
  readonly #times = new Map<string, number>();
  /** Paths that have changed since they were read; null: nothing is known yet. */
  #changed: Set<string> | null = null;
  #isComplete = false;
  #isReading = false;
  #completeAt = 0;
  /** The last lock before it was woken. */
  #lastLock: LastLock | null = null;
  /** Counts the unlocks and locks: an update that began before the last one ends without effect. */
  #run = 0;
  #updating: Promise<void> = Promise.resolve();
  /** Cancels the next update; null: none is planned. */
  #cancel: (() => void) | null = null;

  constructor(options: ExpiryIndexOptions) {
    this.#options = options;
    this.#mark = options.store.shared === undefined ? new NoExpiryMark(options.store) : null;
    options.secrets.watch({
      expiring: async () => this.#mark?.remove(),
      ended: (changes) => this.#follow(changes),
    });
  }

  /** What a commit has written is known, except where it failed or a secret was moved as it was sealed. */
  #follow(changes: readonly SecretChange[]): void {
    if (this.#changed === null) return;
    for (const { path, expiresAt } of changes) {
      if (expiresAt === undefined || this.#isReading) this.#changed.add(path);
      else this.#setTime(path, expiresAt);
    }
    if (this.#isComplete && this.#changed.size > 0) this.#plan(collectMs);
  }

  /** Reads all times in the background; after an unlock. One of a vault that was not locked changes nothing. */
  wake(): void {
    const { lastLock } = this.#options.lockState;
    const isAwake = this.#changed !== null || this.#cancel !== null;
    if (isAwake && lastLock === this.#lastLock) return;
    this.#lastLock = lastLock;
    this.clear();
    this.#plan(startMs);
  }

  /** Forgets everything. */
  clear(): void {
    this.#run++;
    this.#cancel?.();
    this.#cancel = null;
    this.#times.clear();
    this.#changed = null;
    this.#isComplete = false;
  }

  /** Returns null while it is not known: the vault is locked, or was unlocked a moment ago. */
  count(): Expiring | null {
    const { lockState, clock } = this.#options;
    if (!lockState.unlocked) this.clear();
    if (!this.#isComplete) return null;
    const now = clock.now();
    let [expired, within7Days, within30Days] = [0, 0, 0];
    for (const time of this.#times.values()) {
      if (time <= now) expired++;
      if (time > now && time <= now + 7 * dayMs) within7Days++;
      if (time > now && time <= now + 30 * dayMs) within30Days++;
    }
    return { expired, within7Days, within30Days };
  }

  /** Plans an update after this time, unless one is planned. One runs at a time. */
  #plan(ms: number): void {
    const run = this.#run;
    this.#cancel ??= this.#options.clock.after(ms, () => {
      this.#cancel = null;
      this.#updating = this.#updating.then(() => this.#update(run));
    });
  }

  /** Never rejects. A failure, such as a lock, forgets everything; while the vault is unlocked, it is tried again. */
  async #update(run: number): Promise<void> {
    const { store, lockState, log } = this.#options;
    this.#isReading = true;
    try {
      await this.#read(run);
      if (run === this.#run && store.shared !== undefined) this.#plan(otherServersMs);
    } catch (error) {
      if (run !== this.#run) return;
      this.clear();
      if (!lockState.unlocked) return;
      log.warn({ event: "expiry-unknown", error });
      this.#plan(retryMs);
    } finally {
      this.#isReading = false;
    }
  }

  async #read(run: number): Promise<void> {
    const { clock, store } = this.#options;
    const isStale = store.shared !== undefined && clock.elapsed() - this.#completeAt >= otherServersMs;
    if (run === this.#run && (this.#changed === null || isStale)) await this.#readAll(run);
    while (run === this.#run && this.#changed !== null && this.#changed.size > 0) {
      const paths = [...this.#changed];
      this.#changed.clear();
      await this.#readTimes(run, paths, new Map());
    }
    if (run === this.#run) this.#isComplete = true;
  }

  async #readAll(run: number): Promise<void> {
    this.#changed = new Set();
    if (await this.#mark?.exists()) return;
    const seen = new Set<string>();
    for (let after = ""; run === this.#run; ) {
      const { paths, heads } = await this.#options.secrets.page(after, pageEntries);
      await this.#readTimes(run, paths, heads);
      for (const path of paths) seen.add(path);
      if (paths.length < pageEntries) break;
      after = paths.at(-1) ?? "";
    }
    if (run !== this.#run) return;
    for (const path of this.#times.keys()) if (!seen.has(path)) this.#times.delete(path);
    this.#completeAt = this.#options.clock.elapsed();
    if (this.#times.size === 0) await this.#mark?.write().catch(() => {}); // then all are read again after the next unlock
  }

  async #readTimes(run: number, paths: readonly string[], heads: Map<string, string>): Promise<void> {
    const { secrets, clock } = this.#options;
    for (let at = 0; at < paths.length && run === this.#run; at += sliceEntries) {
      if (at > 0) await new Promise<void>((resolve) => clock.after(restMs, resolve));
      const slice = paths.slice(at, at + sliceEntries);
      const times = await secrets.expiries(slice, heads);
      if (run !== this.#run) return;
      for (const [i, path] of slice.entries()) this.#setTime(path, times[i] ?? null);
    }
  }

  #setTime(path: string, time: number | null): void {
    if (time === null) this.#times.delete(path);
    else this.#times.set(path, time);
  }
}

const markName = "expiry";

/** Document that says that no secret of the vault expires. */
class NoExpiryMark {
  readonly #store: SecretStore;
  readonly #mutex = new Mutex();
  /** A secret that expires may have been stored since the start, so no mark is made. */
  #isRefuted = false;
  #isRemoved = false;

  constructor(store: SecretStore) {
    this.#store = store;
  }

  async exists(): Promise<boolean> {
    return !this.#isRefuted && textOf((await this.#store.readDocument(markName))?.bytes) === "none";
  }

  write(): Promise<void> {
    return this.#mutex.run(async () => {
      if (!this.#isRefuted) await this.#replace("none");
    });
  }

  /** @throws VaultError UNAVAILABLE */
  async remove(): Promise<void> {
    this.#isRefuted = true; // before the wait, so that a `write` that waits makes no mark
    if (this.#isRemoved) return;
    await this.#mutex.run(() => this.#replace("some"));
    this.#isRemoved = true;
  }

  async #replace(text: string): Promise<void> {
    const stored = await this.#store.readDocument(markName);
    if (textOf(stored?.bytes) === text || (stored === null && text === "some")) return;
    await this.#store.writeDocument(markName, Buffer.from(text), stored?.tag ?? null);
  }
}

function textOf(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? "" : Buffer.from(bytes).toString("latin1");
}
