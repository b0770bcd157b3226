/** Operations on the secrets of an unlocked vault: none runs beside a lock or a forced init, or while the vault is locked. */
import type { Bytes, SharedBytes } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import type { BatchPermit } from "./batch/batch-plan.js";
import { type Condition, type MaybeReply, type TaggedReply, type Tags, unconditional } from "./condition.js";
import type { Entries } from "./entries.js";
import type { KeyState } from "./key-state.js";
import type { ListPart, ListQuery } from "./lister.js";
import type { ReadWriteLock } from "./sync/read-write-lock.js";
import { wipingAfter } from "./wiping.js";

export class VaultSecrets {
  readonly #entries: Entries;
  readonly #keyState: KeyState;
  readonly #lock: ReadWriteLock;
  #requests = 0;
  /** Number of vaults made since the start. */
  #vaults = 0;

  constructor(entries: Entries, keyState: KeyState, lock: ReadWriteLock) {
    this.#entries = entries;
    this.#keyState = keyState;
    this.#lock = lock;
  }

  /** How many operations there have been. */
  get requests(): number {
    return this.#requests;
  }

  get cacheFigures(): Entries["cacheFigures"] {
    return this.#entries.cacheFigures;
  }

  /** A new, empty vault has replaced the one before. No operation may run meanwhile. */
  vaultReplaced(): void {
    this.#vaults++;
    this.#entries.forget();
  }

  /**
   * Counts as activity. Call it for every secret operation before any other check.
   * @throws VaultError VAULT_LOCKED, UNAVAILABLE
   */
  admit(): void {
    this.#keyState.lockIfIdle();
    this.#keyState.touch();
    this.#keyState.mustBeUnlocked();
  }

  /** @throws VaultError VAULT_LOCKED, BAD_REQUEST, PRECONDITION_FAILED, INTEGRITY, UNAVAILABLE */
  put(path: string, body: Bytes, condition = unconditional): Promise<TaggedReply> {
    return wipingAfter(
      body,
      this.#whileUnlocked(() => this.#entries.put(path, body, condition)),
    );
  }

  /**
   * The reply holds the value: wipe it once it is sent. It is null when the secret still has one of the tags.
   * @throws VaultError NOT_FOUND, … as put
   */
  get(path: string, unlessTagged: Tags | null = null): Promise<MaybeReply> {
    return this.#whileUnlocked(() => this.#entries.get(path, unlessTagged));
  }

  /** @throws VaultError VAULT_LOCKED, NOT_FOUND, PRECONDITION_FAILED, UNAVAILABLE */
  remove(path: string, condition = unconditional): Promise<void> {
    return this.#whileUnlocked(() => this.#entries.remove(path, condition));
  }

  /** Checks the body of a put that must not be carried out, without a look at storage. @throws VaultError BAD_REQUEST */
  judgePut(path: string, body: Bytes): Promise<void> {
    return wipingAfter(
      body,
      this.#whileUnlocked(() => this.#entries.judgePut(path, body)),
    );
  }

  /** As `judgePut`, of an undo. */
  judgeUndo(path: string, body: Bytes): Promise<void> {
    return wipingAfter(
      body,
      this.#whileUnlocked(() => this.#entries.judgeUndo(path, body)),
    );
  }

  /** Returns the reply with all versions of a secret, without values. @throws VaultError NOT_FOUND, … as put */
  history(path: string): Promise<Bytes> {
    return this.#whileUnlocked(() => this.#entries.history(path));
  }

  /** As `get`, of one version. */
  version(path: string, version: number): Promise<Bytes> {
    return this.#whileUnlocked(() => this.#entries.version(path, version));
  }

  /** Makes a version that is kept the newest. @throws VaultError NOT_FOUND, … as put */
  undo(path: string, body: Bytes, condition: Condition): Promise<TaggedReply> {
    return wipingAfter(
      body,
      this.#whileUnlocked(() => this.#entries.undo(path, body, condition)),
    );
  }

  /** Removes all earlier versions; returns how many. @throws VaultError NOT_FOUND, … as put */
  prune(path: string, condition: Condition): Promise<number> {
    return this.#whileUnlocked(() => this.#entries.prune(path, condition));
  }

  /**
   * Carries out a batch of operations: gets each for itself, or with changes all or nothing. The response
   * holds values: wipe it once it is sent.
   * @throws VaultError as put and get, with the index of the operation that is refused.
   */
  batch(body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    return wipingAfter(
      body,
      this.#whileUnlocked(() => this.#entries.batch(body, permit)),
    );
  }

  /**
   * Yields the reply in parts. Between two parts a lock or a forced init need not wait: it ends the list.
   * @throws VaultError VAULT_LOCKED, UNAVAILABLE
   */
  async *list(query: ListQuery): AsyncGenerator<ListPart, void, void> {
    const parts = this.#entries.list(query);
    const vaults = this.#vaults;
    for (;;) {
      const { value } = await this.#whileUnlocked(() => {
        if (this.#vaults !== vaults) throw new VaultError("UNAVAILABLE", "a new vault was made meanwhile: list again");
        return parts.next();
      });
      if (!value) return;
      yield value;
    }
  }

  #whileUnlocked<T>(work: () => Promise<T>): Promise<T> {
    this.#requests++;
    return this.#lock.shared(() => {
      this.#keyState.mustBeUnlocked();
      return work();
    });
  }
}
