/**
 * Other servers of the same vault: when one has replaced the vault or its header, this server locks at once and mounts the
 * current one. Does nothing for a store that only this server uses.
 */
import type { Bytes } from "../../../workers/protocol.js";
import { type Clock, inTime } from "../../clock.js";
import { VaultError } from "../../errors.js";
import type { Log } from "../../log.js";
import type { SecretStore } from "../../storage/secret-store.js";
import type { KeyState } from "../key-state.js";
import type { ReadWriteLock } from "../sync/read-write-lock.js";

/**
 * Header of the vault that the key worker has mounted; null before init. `generation`: see `SharedStore`. `mounts`: how often
 * a header was mounted that storage had, rather than one that the key worker proposed.
 */
export type CurrentHeader = { bytes: Bytes | null; generation: string | null; mounts: number };

/** Sets the header that is mounted now, of the vault that the store has. */
export function setHeader(header: CurrentHeader, bytes: Bytes | null, { shared }: SecretStore): void {
  header.bytes = bytes;
  header.generation = shared?.generation ?? null;
}

type OtherServersOptions = {
  readonly store: SecretStore;
  readonly header: CurrentHeader;
  readonly keyState: KeyState;
  readonly lock: ReadWriteLock;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when another vault has replaced the mounted one. No operation runs meanwhile. */
  readonly vaultReplaced: () => void;
};

/** `available`: false when storage does not answer; `count` is then the last known one. */
type KnownCount = { readonly count: number; readonly available: boolean };

/**
 * Interval, in milliseconds, at which an idle server queries the database: so it keeps a connection, by which maintenance
 * sees it, and soon notices another server's change.
 */
const presenceMs = 30_000;

/** Time limit of a status for counting in a shared store, in milliseconds. */
const longestCountMs = 1_000;

export class OtherServers {
  readonly #options: OtherServersOptions;
  #mounting: Promise<void> | null = null;
  #lastCount = 0;
  /** Whether a count that has taken too long is still running. */
  #isCounting = false;
  #cancelPresence: (() => void) | null = null;

  constructor(options: OtherServersOptions) {
    this.#options = options;
    options.store.shared?.onReplaced(() => this.#lockAndMount());
  }

  /** Queries the database now and then, until `close`. */
  keepPresent(): void {
    const { store, clock } = this.#options;
    if (store.shared === undefined) return;
    this.#cancelPresence = clock.after(presenceMs, () => {
      store.shared?.confirm().catch(() => {}); // the next request finds the same
      this.keepPresent();
    });
  }

  close(): void {
    this.#cancelPresence?.();
  }

  /** Checks that the mounted header is current, and mounts the current one if it is not. @throws VaultError UNAVAILABLE */
  async refresh(): Promise<void> {
    const { shared } = this.#options.store;
    if (shared === undefined) return;
    await this.#mounting;
    await shared.confirm().catch((error: unknown) => {
      if (this.#mounting === null) throw error;
      return this.#mounting;
    });
  }

  /** Mounts the header that is stored. No operation may run meanwhile. @throws VaultError UNAVAILABLE, INTEGRITY */
  async mountStored(): Promise<void> {
    const { store, header, keyState, vaultReplaced } = this.#options;
    const { generation } = header;
    const bytes = await store.header();
    setHeader(header, bytes, store);
    header.mounts++;
    if (generation !== header.generation) vaultReplaced();
    await keyState.mount();
  }

  /** Returns the number of secrets, within the time limit. */
  async count(): Promise<KnownCount> {
    const { store } = this.#options;
    if (store.shared === undefined) return { count: await store.count(), available: true };
    const count = this.#isCounting ? null : await this.#countInTime();
    this.#lastCount = count ?? this.#lastCount;
    return { count: this.#lastCount, available: count !== null };
  }

  /** Returns null when storage does not answer in time. */
  async #countInTime(): Promise<number | null> {
    const counting = this.#countOrNull();
    const count = await inTime(this.#options.clock, longestCountMs, counting);
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
      return await this.#countOfCurrent();
    } catch (error) {
      if (error instanceof VaultError) return null;
      throw error;
    }
  }

  async #countOfCurrent(): Promise<number> {
    try {
      return await this.#options.store.count();
    } catch (error) {
      if (this.#mounting === null) throw error;
      await this.#mounting;
      return this.#options.store.count();
    }
  }

  #lockAndMount(): void {
    if (this.#mounting !== null) return;
    const { keyState, log } = this.#options;
    const locking = keyState.lock("crash"); // before the log line: nothing may delay it
    log.warn({ event: "vault-replaced", hint: "by another server, or its keys were changed: unlock the vault again" });
    this.#mounting = this.#mountAfter(locking).finally(() => {
      this.#mounting = null;
    });
    // An unlock fails until another header is current.
    this.#mounting.catch((error: unknown) => log.error({ event: "mount-failed", error }));
  }

  async #mountAfter(locking: Promise<void>): Promise<void> {
    await locking.catch(() => {}); // an ended thread holds no key either
    await this.#options.lock.exclusive(() => this.mountStored());
  }
}
