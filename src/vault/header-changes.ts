/**
 * Changes of the vault's header: the key worker proposes one, storage replaces the header durably, and the key worker
 * adopts the new one. At every crash the one or the other opens the vault.
 */
import type { Bytes } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { SecretStore } from "../storage/secret-store.js";
import type { KeyState } from "./key-state.js";
import type { ReadWriteLock } from "./sync/read-write-lock.js";

/** Of the vault that the key worker was told; null before init. */
export type CurrentHeader = { bytes: Bytes | null };

export type HeaderChangesOptions = {
  readonly store: SecretStore;
  readonly header: CurrentHeader;
  readonly keyState: KeyState;
  readonly lock: ReadWriteLock;
  readonly log: Log;
};

export class HeaderChanges {
  readonly #store: SecretStore;
  readonly #header: CurrentHeader;
  readonly #keyState: KeyState;
  readonly #lock: ReadWriteLock;
  readonly #log: Log;

  constructor({ store, header, keyState, lock, log }: HeaderChangesOptions) {
    this.#store = store;
    this.#header = header;
    this.#keyState = keyState;
    this.#lock = lock;
    this.#log = log;
  }

  /**
   * Replaces the header with the one that the key worker has just proposed. DANGER: call it, or `discard`, after every
   * proposal: the key worker derives nothing else before.
   * @throws VaultError UNAVAILABLE; the header is then the old one or the new one
   */
  replace(proposed: Bytes): Promise<void> {
    return this.#lock.exclusive(() => this.#replace(proposed));
  }

  /** A thread that ended holds no proposal. */
  async discard(): Promise<void> {
    await this.#keyState.ask({ op: "discard" }).catch(() => {});
  }

  async #replace(proposed: Bytes): Promise<void> {
    const before = this.#header.bytes;
    const replaced =
      before !== null &&
      (await this.#store
        .replaceHeader(proposed, before)
        .catch((error: unknown) => this.#afterFailure(proposed, error)));
    if (replaced) return this.#adopt(proposed);
    await this.discard();
    this.#header.bytes = await this.#store.header();
    await this.#keyState.mount(); // another server's header, perhaps another key
    throw new VaultError("UNAVAILABLE", "the vault's header was changed meanwhile by another program: try again");
  }

  /** What storage returns from now on, the next start may find, too. */
  async #afterFailure(proposed: Bytes, error: unknown): Promise<never> {
    const current = await this.#store.header().catch(() => null);
    if (current !== null && Buffer.compare(current, proposed) === 0) await this.#adopt(proposed);
    else await this.discard();
    throw error;
  }

  async #adopt(header: Bytes): Promise<void> {
    this.#header.bytes = header;
    try {
      await this.#keyState.ask({ op: "adopt" });
    } catch (error) {
      this.#log.warn({ event: "key-worker-ended-in-header-change", error });
      await this.#keyState.mount(); // the thread that knew the change is gone; the new header stands, locked
    }
  }
}
