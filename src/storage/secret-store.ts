/**
 * Interface between the vault and its storage engine, which sees names and opaque bytes only.
 *
 * Calls may run concurrently. The caller serialises the changes of each path, and runs `startNewVault` alone.
 */
import type { Bytes } from "../../workers/protocol.js";

export type StoredSnapshot = { readonly directory: string; readonly count: number };

export interface SecretStore {
  /** The absolute path of the whole vault, for people to read. */
  readonly vaultPath: string;
  /** The current vault's header; null before the first init. */
  readonly header: Bytes | null;
  /** Number of secrets; needs no key. */
  readonly count: number;

  /** Returns at most `limit` canonical paths that start with `prefix` and sort after `after`, ascending by UTF-8 bytes. */
  list(prefix: string, after: string, limit: number): readonly string[];

  /**
   * Returns the blob at a path, or its first bytes; null when there is none.
   * @throws VaultError INTEGRITY when it is not a plain file, UNAVAILABLE when it cannot be read.
   */
  read(path: string, first?: number): Promise<Bytes | null>;

  /**
   * Writes or replaces the blob; once resolved, it survives a power cut.
   * @throws VaultError UNAVAILABLE; the path then holds the old blob or the new one, whole.
   */
  write(path: string, blob: Bytes): Promise<void>;

  /**
   * Removes the blob and its empty parent directories; returns false when there is none.
   * @throws VaultError UNAVAILABLE; the blob may then still exist.
   */
  remove(path: string): Promise<boolean>;

  /**
   * Atomically switches to a new, empty vault; returns where the old one is kept, or null when there was none.
   * @throws VaultError UNAVAILABLE; the old vault is then untouched.
   */
  startNewVault(header: Bytes): Promise<string | null>;

  /**
   * Writes a point-in-time copy of the vault to a new directory (layout: see `Snapshot`) while writes continue; the
   * caller removes it.
   * @throws VaultError UNAVAILABLE; nothing of the snapshot is left then.
   */
  snapshot(): Promise<StoredSnapshot>;

  /** Releases the claim on the vault. */
  close(): Promise<void>;
}
