/** Audit log's part in the vault's changes of state: steps that the vault calls by name. */
import type { LockReason } from "../observer.js";
import type { LastCheckpoint } from "./worker/key-thread.js";

export interface VaultAudit {
  /** After an init or unlock: the key worker signs checkpoints from now on. */
  vaultUnlocked(): void;
  /**
   * Records the lock. Returns the log's last checkpoint, which the key worker signs as part of the message that makes it wipe
   * its keys; null when there is none to sign.
   */
  vaultLocked(reason: LockReason): LastCheckpoint | null;
}
