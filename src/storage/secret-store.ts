/**
 * Owns the one interface between the vault and whatever keeps its bytes. A store knows names and opaque bytes only.
 *
 * Any number of calls may be under way. Of those that change one path, one at a time is the caller's duty, and that
 * `startNewVault` runs alone.
 */
import type { Bytes } from "../../workers/protocol.js";

export type StoredSnapshot = { readonly directory: string; readonly count: number };

export interface SecretStore {
  /** The absolute path of the whole vault, for people to read. */
  readonly vaultPath: string;
  /** The current vault's header; null before the first init. */
  readonly header: Bytes | null;
  /** How many secrets there are; known without the key. */
  readonly count: number;

  /** Canonical paths that start with `prefix` and stand after `after`, ascending by UTF-8 bytes, at most `limit`. */
  list(prefix: string, after: string, limit: number): readonly string[];

  /**
   * The blob at a path, or its first bytes; null when there is none.
   * @throws VaultError INTEGRITY when something else than a blob stands there, UNAVAILABLE when it cannot be read.
   */
  read(path: string, first?: number): Promise<Bytes | null>;

  /**
   * Writes or replaces the blob; when this resolves it survives a power cut.
   * @throws VaultError UNAVAILABLE; then the old blob stands, or the new one does, whole.
   */
  write(path: string, blob: Bytes): Promise<void>;

  /**
   * Removes the blob and the directories that it leaves empty; false when there is none.
   * @throws VaultError UNAVAILABLE; the blob may then still be there.
   */
  remove(path: string): Promise<boolean>;

  /**
   * Switches to a new, empty vault in one step; answers where the old one is kept, null when there was none.
   * @throws VaultError UNAVAILABLE; the old vault is then untouched.
   */
  startNewVault(header: Bytes): Promise<string | null>;

  /**
   * Puts a picture of all that is stored at one moment into a new directory, in the layout of an archive (see
   * `Snapshot`), while writes go on; the caller removes it.
   * @throws VaultError UNAVAILABLE; nothing of the snapshot is left then.
   */
  snapshot(): Promise<StoredSnapshot>;

  /** Gives the claim on the vault back. */
  close(): Promise<void>;
}
