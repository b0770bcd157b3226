/**
 * Keyring: the only holder of the master key, between init or unlock and lock. Everything that ends the key (lock, a new
 * vault, a new header) goes through it.
 */
import type { SealingKey } from "./crypto/blob.js";
import type { Header } from "./crypto/header-members.js";
import { endKeys, type VaultKeys } from "./crypto/master-key.js";
import { withScratch } from "./memory.js";
import { lockedMeanwhile, lockedNow } from "./refusals.js";
import type { Refusal } from "./replies.js";
import type { SentLocks } from "./worker-settings.js";

/** `keys`: null when they stay as they are, or a lock has ended them. */
type Candidate = { readonly header: Header; keys: VaultKeys | null; readonly decided: () => void };

export class Keyring {
  #header: Header | null | undefined;
  #keys: VaultKeys | null = null;
  #candidate: Candidate | null = null;
  #lockings = 0;
  readonly #sentLocks: SentLocks;
  #locksSeen = 0;

  constructor(sentLocks: SentLocks) {
    this.#sentLocks = sentLocks;
  }

  /** Null: there is no vault yet. Undefined: not mounted. */
  get header(): Header | null | undefined {
    return this.#header;
  }

  /** How often the vault was locked: a derivation that began before the last lock must not unlock. */
  get lockings(): number {
    return this.#lockings;
  }

  get sealingKey(): SealingKey | null {
    if (this.#keys === null || !this.#header) return null;
    return { ...this.#keys, vaultId: this.#header.vaultId };
  }

  /**
   * Runs an operation with scratch memory and the key; refuses it while the vault is locked. Also when a lock was sent, and
   * waits behind it: the key is wiped as soon as the operation that runs has ended, however many wait.
   */
  withKey<T>(operation: (key: SealingKey) => T): T | Refusal {
    const isLockWaiting = Atomics.load(this.#sentLocks, 0) !== this.#locksSeen;
    return isLockWaiting ? lockedMeanwhile : this.withKeyUntilLock(operation);
  }

  /** As `withKey`, also before a lock that waits: for what the lock itself needs. */
  withKeyUntilLock<T>(operation: (key: SealingKey) => T): T | Refusal {
    const key = this.sealingKey;
    return key === null ? lockedNow : withScratch(() => operation(key));
  }

  /** Sets the header, or with undefined none, and locks: keys and a proposal belong to another header. */
  mount(header: Header | null | undefined): void {
    this.lock();
    this.discard();
    this.#header = header;
  }

  /** Holds the mounted vault's keys from now on. */
  unlock(keys: VaultKeys): void {
    endKeys(this.#keys);
    this.#keys = keys;
  }

  lock(): void {
    this.#locksSeen = Atomics.load(this.#sentLocks, 0);
    this.#lockings++;
    endKeys(this.#keys);
    this.#keys = null;
    if (this.#candidate === null) return;
    endKeys(this.#candidate.keys);
    this.#candidate.keys = null;
  }

  /**
   * Holds a new header aside, with the keys of a new vault or of a rotation; resolves once it is adopted or discarded, so
   * that nothing else derives meanwhile.
   */
  propose(header: Header, keys: VaultKeys | null): Promise<void> {
    return new Promise((decided) => {
      this.#candidate = { header, keys, decided };
    });
  }

  /**
   * Replaces the old header with the proposed one, which is on disk now; a lock since it was proposed leaves it locked.
   * Returns false when none was proposed to this thread.
   */
  adopt(): boolean {
    const candidate = this.#candidate;
    if (candidate === null) return false;
    this.#header = candidate.header;
    if (candidate.keys !== null) this.unlock(candidate.keys);
    if (candidate.header.oldKey === null) this.#endOldKey();
    this.#settle(candidate);
    return true;
  }

  discard(): void {
    const candidate = this.#candidate;
    if (candidate === null) return;
    endKeys(candidate.keys);
    this.#settle(candidate);
  }

  #endOldKey(): void {
    if (!this.#keys?.oldKey) return;
    this.#keys.oldKey.end();
    this.#keys = { ...this.#keys, oldKey: null };
  }

  #settle(candidate: Candidate): void {
    this.#candidate = null;
    candidate.decided();
  }
}
