/** Records in the vault's documents, such as client tokens, with MACs that only its key worker can make. */
import type { Bytes, CheckpointVerdict, SignedCheckpoint } from "../../workers/protocol.js";
import type { ReadWriteLock } from "../locks.js";
import type { DocumentChange, NamedDocument, SecretStore, StoredDocument } from "../storage/secret-store.js";
import type { Header } from "./header.js";
import type { LockState } from "./lock-state.js";

/** Store of records in the vault's documents. */
export interface RecordStore {
  /** The key worker holds the key: checks what was read without it. Undefined: there is nothing to check. */
  verify(): Promise<void> | undefined;
  /**
   * Returns the document for a rotation of the master key that has been proposed: genuine records also have MACs under the
   * new key. Null: there is none. No operation on the vault may run at the same time.
   * @throws VaultError VAULT_LOCKED, UNAVAILABLE
   */
  documentForRotation(): Promise<DocumentChange | null>;
  /** Removes the MACs under the old key, durably, at the end of a rotation. */
  resign(): Promise<void>;
  /** Returns the documents that a new vault begins with, which is about to replace this one. */
  documentsForNewVault(): readonly NamedDocument[];
  /** A new vault has replaced the previous one. */
  vaultReplaced(): void;
  /** Reads what another server has changed; undefined where no other server can. @throws VaultError UNAVAILABLE, INTEGRITY */
  refresh(): Promise<void> | undefined;
  /** Writes pending changes. */
  close(): Promise<void>;
}

export class VaultRecords {
  readonly #store: SecretStore;
  readonly #lockState: LockState;
  readonly #lock: ReadWriteLock;
  readonly #header: Header;

  constructor(store: SecretStore, lockState: LockState, lock: ReadWriteLock, header: Header) {
    this.#store = store;
    this.#lockState = lockState;
    this.#lock = lock;
    this.#header = header;
  }

  refresh(): Promise<void> {
    return this.#header.refresh();
  }

  /** Runs work on documents while no other vault can take this one's place. */
  hold<T>(work: () => Promise<T>): Promise<T> {
    return this.#lock.shared(work);
  }

  /** Whether other servers also change the documents. */
  get isShared(): boolean {
    return this.#store.shared !== undefined;
  }

  /** See `SharedStore.documentTags`; none for a store that is not shared. */
  async documentTags(names: readonly string[]): Promise<readonly (string | null)[]> {
    return (await this.#store.shared?.documentTags(names)) ?? [];
  }

  readDocument(name: string): Promise<StoredDocument | null> {
    return this.#store.readDocument(name);
  }

  writeDocument(name: string, bytes: Bytes, expected: string | null): Promise<string | null> {
    return this.#store.writeDocument(name, bytes, expected);
  }

  /** Returns a MAC of each text, which only this vault's key worker can make. @throws VaultError VAULT_LOCKED */
  async signRecords(texts: readonly string[]): Promise<readonly string[]> {
    return (await this.#lockState.ask({ op: "signRecords", texts })).macs;
  }

  /** Whether each text has the MAC that `signRecords` makes. @throws VaultError VAULT_LOCKED */
  async verifyRecords(texts: readonly string[], macs: readonly string[]): Promise<readonly boolean[]> {
    return (await this.#lockState.ask({ op: "verifyRecords", texts, macs })).valid;
  }

  /** Returns MACs under the proposed key; null for a text that the current one has not signed. @throws VaultError VAULT_LOCKED */
  async resignRecords(texts: readonly string[], macs: readonly string[]): Promise<readonly (string | null)[]> {
    return (await this.#lockState.ask({ op: "resignRecords", texts, macs })).macs;
  }

  /** Returns a MAC of the text for the audit log, and the name of its key. @throws VaultError VAULT_LOCKED */
  signCheckpoint(text: string): Promise<{ readonly key: string; readonly mac: string }> {
    return this.#lockState.ask({ op: "signCheckpoint", text });
  }

  /** Judges the MACs that `signCheckpoint` made. @throws VaultError VAULT_LOCKED */
  async verifyCheckpoints(checkpoints: readonly SignedCheckpoint[]): Promise<readonly CheckpointVerdict[]> {
    return (await this.#lockState.ask({ op: "verifyCheckpoints", checkpoints })).verdicts;
  }
}
