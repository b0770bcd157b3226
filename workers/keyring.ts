/**
 * Owns the master key: the one place that holds it, between init or unlock and lock. Everything that may end it
 * (lock, a new vault, a fresh thread) goes through here.
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

  /** Null: there is no vault yet. Undefined: this thread was not told. */
  get header(): Header | null | undefined {
    return this.#header;
  }

  /** How often the vault was locked: a derivation that began under another number has lost its right to unlock. */
  get lockings(): number {
    return this.#lockings;
  }

  get sealingKey(): SealingKey | null {
    if (this.#masterKey === null || !this.#header) return null;
    return { masterKey: this.#masterKey, vaultId: this.#header.vaultId };
  }

  /** A key that was held belongs to another header: it goes. */
  mount(header: Header | null): void {
    this.lock();
    this.#header = header;
  }

  /** Takes over the mounted vault's master key: the bytes are wiped. */
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

  /** Keeps a new vault aside; resolves once it was adopted or discarded, so that nothing else derives meanwhile. */
  propose(header: Header, masterKey: Bytes): Promise<void> {
    return new Promise((decided) => {
      this.#candidate = { header, masterKey, lockings: this.#lockings, decided };
    });
  }

  /**
   * The new vault is on disk: it takes the old one's place. A lock since it was proposed leaves it locked. False when
   * this thread knows of no such vault.
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
