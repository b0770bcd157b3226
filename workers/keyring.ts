/**
 * Keyring: the only holder of the master key, between init or unlock and lock. Everything that ends the key (lock, a new
 * vault, a new header) goes through it.
 */
import type { SealingKey } from "./crypto/blob.js";
import type { Header } from "./crypto/header.js";
import { XaesKey } from "./crypto/xaes.js";
import { wipe } from "./memory.js";
import type { Bytes } from "./protocol.js";

type Candidate = {
  readonly header: Header;
  readonly masterKey: Bytes;
  readonly lockings: number;
  readonly decided: () => void;
};

export class Keyring {
  #header: Header | null | undefined;
  #masterKey: XaesKey | null = null;
  #candidate: Candidate | null = null;
  #lockings = 0;

  /** Null: there is no vault yet. Undefined: not mounted. */
  get header(): Header | null | undefined {
    return this.#header;
  }

  /** How often the vault was locked: a derivation that began before the last lock must not unlock. */
  get lockings(): number {
    return this.#lockings;
  }

  get sealingKey(): SealingKey | null {
    if (this.#masterKey === null || !this.#header) return null;
    return { masterKey: this.#masterKey, vaultId: this.#header.vaultId };
  }

  /** Sets the header, and locks: a key that is held belongs to another header. */
  mount(header: Header | null): void {
    this.lock();
    this.#header = header;
  }

  /** Holds the mounted vault's master key from now on, and wipes the bytes. */
  unlock(masterKey: Bytes): void {
    const unlocked = new XaesKey(masterKey);
    this.#masterKey?.end();
    this.#masterKey = unlocked;
  }

  lock(): void {
    this.#lockings++;
    wipe(this.#candidate?.masterKey);
    this.#masterKey?.end();
    this.#masterKey = null;
  }

  /** Holds a new vault aside; resolves once it is adopted or discarded, so that nothing else derives meanwhile. */
  propose(header: Header, masterKey: Bytes): Promise<void> {
    return new Promise((decided) => {
      this.#candidate = { header, masterKey, lockings: this.#lockings, decided };
    });
  }

  /**
   * Replaces the old vault with the proposed one, which is on disk now; a lock since it was proposed leaves it locked.
   * Returns false when none was proposed to this thread.
   */
  adopt(): boolean {
    const candidate = this.#candidate;
    if (candidate === null) return false;
    this.#header = candidate.header;
    if (candidate.lockings !== this.#lockings) wipe(candidate.masterKey);
    else this.unlock(candidate.masterKey);
    this.#settle(candidate);
    return true;
  }

  discard(): void {
    const candidate = this.#candidate;
    if (candidate === null) return;
    wipe(candidate.masterKey);
    this.#settle(candidate);
  }

  #settle(candidate: Candidate): void {
    this.#candidate = null;
    candidate.decided();
  }
}
