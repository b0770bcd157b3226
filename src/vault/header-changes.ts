/**
 * Changes of the vault's header: the key worker proposes one, storage replaces the header durably, and the key worker
 * adopts it. After a crash at any step, the old or the new header opens the vault.
 */
import type { Bytes } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { SecretStore } from "../storage/secret-store.js";
import type { KeyState } from "./key-state.js";
import { type CurrentHeader, type OtherServers, setHeader } from "./shared/other-servers.js";
import type { ReadWriteLock } from "./sync/read-write-lock.js";

type HeaderChangesOptions = {
  readonly store: SecretStore;
  readonly header: CurrentHeader;
  readonly keyState: KeyState;
  readonly lock: ReadWriteLock;
  readonly log: Log;
  readonly others: OtherServers;
  /** A new vault has replaced the current one. No operation runs meanwhile. */
  readonly vaultReplaced: () => void;
};

export class HeaderChanges {
  readonly #store: SecretStore;
  readonly #header: CurrentHeader;
  readonly #keyState: KeyState;
  readonly #lock: ReadWriteLock;
  readonly #log: Log;
  readonly #others: OtherServers;
  readonly #vaultReplaced: () => void;
  #inDoubt = false;

  constructor({ store, header, keyState, lock, log, others, vaultReplaced }: HeaderChangesOptions) {
    this.#store = store;
    this.#header = header;
    this.#keyState = keyState;
    this.#lock = lock;
    this.#log = log;
    this.#others = others;
    this.#vaultReplaced = vaultReplaced;
  }

  /**
   * Starts a new vault with the header that the key worker has just proposed; returns where the old one is kept, or null.
   * @throws VaultError UNAVAILABLE, with the old vault untouched; INTERNAL, with the new one locked
   */
  startNew(proposed: Bytes): Promise<string | null> {
    return this.#lock.exclusive(() => this.#startNew(proposed));
  }

  /**
   * Replaces the header with the one that the key worker has just proposed. DANGER: call it, or `discard`, after every
   * proposal: the key worker derives nothing else before. When `permit` throws, nothing is changed.
   * @throws VaultError UNAVAILABLE; the header is then the old one, or the vault is locked under either
   */
  replace(proposed: Bytes, permit = async () => {}): Promise<void> {
    return this.#lock.exclusive(async () => {
      try {
        await permit();
      } catch (error) {
        await this.discard(proposed);
        throw error;
      }
      await this.#replace(proposed);
    });
  }

  /** As `replace`, but an unlock stands, under the old cost, when storage refuses. */
  async raiseScryptCost(proposed: Bytes): Promise<void> {
    try {
      await this.replace(proposed);
      this.#log.info({ event: "scrypt-cost-raised" });
    } catch (error) {
      this.#log.warn({ event: "scrypt-cost-not-raised", error });
    }
  }

  /** DANGER: after a mount, the thread no longer holds this proposal, but perhaps the next one. */
  async discard(proposed: Bytes): Promise<void> {
    if (this.#keyState.holds(proposed)) await this.#keyState.ask({ op: "discard" }).catch(() => {}); // or it has ended
  }

  /** See `OtherServers.refresh`. */
  refresh(): Promise<void> {
    return this.#others.refresh();
  }

  /**
   * As `refresh`, and writes the header again when a failed fsync left it uncertain which one is on disk.
   * DANGER: what a rotation seals is lost with its header, so nothing may be sealed before.
   * @throws VaultError UNAVAILABLE
   */
  async confirm(): Promise<void> {
    await this.#others.refresh();
    if (!this.#inDoubt) return;
    await this.#lock.exclusive(async () => {
      const { bytes } = this.#header;
      if (bytes !== null && !(await this.#store.replaceHeader(bytes, bytes))) await this.#others.mountStored();
      this.#inDoubt = false;
    });
  }

  async #startNew(header: Bytes): Promise<string | null> {
    this.#mustHold(header);
    let keptAt: string | null;
    try {
      keptAt = await this.#store.startNewVault(header);
      setHeader(this.#header, header, this.#store);
    } catch (error) {
      await this.discard(header);
      throw error;
    }
    this.#vaultReplaced();
    try {
      await this.#keyState.adopt(header);
      return keptAt;
    } catch (cause) {
      await this.#keyState.mount(); // the thread that knew the new key is gone; the new vault stands
      throw new VaultError("INTERNAL", "the key worker ended: the new vault exists and is locked, unlock it", {
        cause,
      });
    }
  }

  /** DANGER: a header that was proposed before the last mount would undo what was changed since. */
  #mustHold(proposed: Bytes): void {
    if (this.#keyState.holds(proposed)) return;
    throw new VaultError(
      "UNAVAILABLE",
      "the key worker or the header was replaced meanwhile: nothing was changed, try again",
    );
  }

  async #replace(proposed: Bytes): Promise<void> {
    this.#mustHold(proposed);
    const before = this.#header.bytes;
    if (before === null) throw new Error("a header was proposed before init");
    const replacing = this.#store.replaceHeader(proposed, before);
    if (await replacing.catch((error: unknown) => this.#goBack(before, proposed, error))) return this.#adopt(proposed);
    await this.discard(proposed);
    await this.#others.mountStored(); // another server's header, perhaps another key
    throw new VaultError("UNAVAILABLE", "the vault's header was changed meanwhile by another program: try again");
  }

  /**
   * Restores the old header. When the disk refuses that as well, either may survive a power cut: locks the vault. A shared
   * store's next answer shows which header it has, and locks the vault if that is the new one.
   */
  async #goBack(before: Bytes, proposed: Bytes, error: unknown): Promise<never> {
    await this.discard(proposed);
    if (this.#store.shared !== undefined) throw error;
    const current = await this.#store.header();
    if (current !== null && Buffer.compare(current, before) === 0) throw error;
    const isBack = await this.#store.replaceHeader(before, proposed).catch(() => false);
    if (isBack) throw error;
    this.#inDoubt = true;
    await this.#others.mountStored();
    throw error;
  }

  async #adopt(header: Bytes): Promise<void> {
    this.#header.bytes = header;
    try {
      await this.#keyState.adopt(header);
    } catch (error) {
      this.#log.warn({ event: "key-worker-ended-in-header-change", error });
      await this.#keyState.mount(); // the thread that knew the change is gone; the new header stands, locked
    }
  }
}
