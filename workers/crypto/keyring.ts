/**
 * Keyring: the only holder of the master key, between init or unlock and lock. Everything that ends the key (lock, a new
 * vault, a new header) goes through it.
 */

import { withScratch } from "../memory.js";
import type { Refusal, SentLocks } from "../protocol.js";
import { lockedMeanwhile, lockedNow } from "../refusals.js";
import type { SealingKey } from "./blob.js";
import type { Header } from "./header.js";
import { endKeys, type VaultKeys } from "./master-key.js";

/** `keys`: null when they stay as they are, or a lock has ended them. `unlocks`: whether the vault is unlocked with them. */
type Candidate = {
  readonly header: Header;
  keys: VaultKeys | null;
  readonly unlocks: boolean;
  readonly decided: () => void;
};

export class Keyring {
  #header: Header | null | undefined;
  #key: SealingKey | null = null;
  #candidate: Candidate | null = null;
  #lockings = 0;
  readonly #sentLocks: SentLocks;
  readonly #ended: () => void;
  #locksSeen = 0;

  /** `ended` is called whenever the key has ended, for what was made with it and must end too. */
  constructor(sentLocks: SentLocks, ended: () => void) {
    this.#sentLocks = sentLocks;
    this.#ended = ended;
  }

  /** Null: there is no vault yet. Undefined: none is loaded. */
  get header(): Header | null | undefined {
    return this.#header;
  }

  /** How often the vault was locked: a derivation that began before the last lock must not unlock. */
  get lockings(): number {
    return this.#lockings;
  }

  /** Null while the vault is locked. */
  get sealingKey(): SealingKey | null {
    return this.#key;
  }

  /**
   * Runs an operation with scratch memory and the key; refuses it while the vault is locked. Also when a lock was sent, and
   * waits behind it: the key is wiped as soon as the operation that runs has ended, however many wait.
   */
  withKey<T>(operation: (key: SealingKey) => T): T | Refusal {
    const isLockWaiting = Atomics.load(this.#sentLocks, 0) !== this.#locksSeen;
    return isLockWaiting ? lockedMeanwhile : this.withKeyUntilLock(operation);
  }

  /** Like `withKey`, also before a waiting lock: for the lock's own operations. */
  withKeyUntilLock<T>(operation: (key: SealingKey) => T): T | Refusal {
    const key = this.#key;
    return key === null ? lockedNow : withScratch(() => operation(key));
  }

  /** Sets the header, or with undefined none, and locks: keys and a proposal belong to another header. */
  load(header: Header | null | undefined): void {
    this.lock();
    this.discard();
    this.#header = header;
  }

  /** Holds the loaded vault's keys from now on. */
  unlock({ masterKey, oldKey }: VaultKeys): void {
    if (!this.#header) throw new Error("keys without a header");
    this.#end();
    this.#key = { masterKey, oldKey, vaultId: this.#header.vaultId };
  }

  lock(): void {
    this.#locksSeen = Atomics.load(this.#sentLocks, 0);
    this.#lockings++;
    this.#end();
    if (this.#candidate === null) return;
    endKeys(this.#candidate.keys);
    this.#candidate.keys = null;
  }

  /**
   * Holds a new header aside, with the keys of a new vault or of a rotation; resolves once it is adopted or discarded, so
   * that nothing else derives during that time.
   */
  propose(header: Header, keys: VaultKeys | null, unlocks = true): Promise<void> {
    return new Promise((decided) => {
      this.#candidate = { header, keys, unlocks, decided };
    });
  }

  /** Runs an operation with scratch memory and the keys of a proposed rotation. Refuses it after a lock, which ends them. */
  withProposedKeys<T>(operation: (keys: VaultKeys) => T): T | Refusal {
    const keys = this.#candidate?.keys ?? null;
    return keys === null ? lockedMeanwhile : withScratch(() => operation(keys));
  }

  /**
   * Replaces the old header with the proposed one, which is on disk now; a lock since it was proposed leaves it locked.
   * Returns false when none was proposed to this thread.
   */
  adopt(): boolean {
    const candidate = this.#candidate;
    if (candidate === null) return false;
    this.#header = candidate.header;
    if (candidate.keys !== null && candidate.unlocks) this.unlock(candidate.keys);
    else endKeys(candidate.keys);
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

  #end(): void {
    endKeys(this.#key);
    this.#key = null;
    this.#ended();
  }

  #endOldKey(): void {
    if (!this.#key?.oldKey) return;
    this.#key.oldKey.end();
    this.#key = { ...this.#key, oldKey: null };
  }

  #settle(candidate: Candidate): void {
    this.#candidate = null;
    candidate.decided();
  }
}
