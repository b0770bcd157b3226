/**
 * Audit log of a server: records of requests and of what happens to the vault, with checkpoints under the vault's key. Each
 * method is called by name, as a step of what it records.
 */
import type { Clock } from "../clock.js";
import type { ServerRecord } from "../contract/audit-events.js";
import { VaultError } from "../errors.js";
import type { FileOperations } from "../files/durable.js";
import type { Log } from "../log.js";
import type { Credential, FinishedRequest, LockReason } from "../observer.js";
import { auditDirectory, type LogHead } from "./format.js";
import { type AuditRecord, readRecords } from "./reader.js";
import {
  type AuditedEvent,
  type AuditedMode,
  auditRecordText,
  type CheckpointReason,
  requestRecords,
} from "./record.js";
import { AuditWriter, type CheckpointVerifier, type LastCheckpoint, type Signer } from "./writer.js";

/** Time in which further lockouts are counted together, in milliseconds. */
const lockoutsMs = 60_000;

/** Makes and checks the MACs of checkpoints while the vault is unlocked. */
interface CheckpointKey {
  signCheckpoint(...args: Parameters<Signer>): ReturnType<Signer>;
  verifyCheckpoints(...args: Parameters<CheckpointVerifier>): ReturnType<CheckpointVerifier>;
}

type AuditLogOptions = {
  readonly writer: AuditWriter;
  readonly mode: AuditedMode;
  /** Operations on secrets are refused while records cannot be written. */
  readonly denies: boolean;
  readonly files: FileOperations;
  readonly directory: string;
  readonly clock: Clock;
};

export class AuditLog {
  readonly #options: AuditLogOptions;
  #key: CheckpointKey | null = null;
  /** Lockouts since the last record of one; a credential without any within a minute is missing. */
  readonly #lockouts = new Map<Credential, number>();
  /** Time of the last record, as a number and as text: most records of a millisecond share it. */
  #now = Number.NaN;
  #time = "";

  constructor(options: AuditLogOptions) {
    this.#options = options;
  }

  /** `key`: the vault's, in the key worker. */
  setKey(key: CheckpointKey): void {
    this.#key = key;
  }

  /**
   * Returns up to `limit` records that follow record `after`, and where the log ends: null while nothing is written.
   * @throws VaultError UNAVAILABLE
   */
  async read(
    after: number,
    limit: number,
  ): Promise<{ readonly records: readonly AuditRecord[]; readonly head: LogHead | null }> {
    const { writer, files, directory } = this.#options;
    await writer.flush();
    const { head } = writer;
    try {
      return { records: await readRecords(files, directory, after, limit), head };
    } catch (cause) {
      throw new VaultError("UNAVAILABLE", "the audit log cannot be read: try again", { cause });
    }
  }

  /** Resolves when the records so far are in the file, or lost. */
  flush(): Promise<void> {
    return this.#options.writer.flush();
  }

  get losses(): AuditWriter["losses"] {
    return this.#options.writer.losses;
  }

  /** @throws VaultError UNAVAILABLE when records are lost and the operation must not go unrecorded */
  mustAccept(): void {
    const { denies, writer } = this.#options;
    if (!denies || !writer.isFailing) return;
    throw new VaultError("UNAVAILABLE", "the audit log cannot be written: free space on the server's disk");
  }

  /** `audited`: the endpoint's event; null when it is not recorded. */
  requestFinished(audited: AuditedEvent | null, request: FinishedRequest): void {
    if (audited === null) return;
    const { writer, mode } = this.#options;
    for (const text of requestRecords(audited, request, mode, this.#timeNow)) writer.add(text);
  }

  record(members: ServerRecord): void {
    this.#options.writer.add(auditRecordText(this.#timeNow(), members));
  }

  /** Makes a checkpoint of everything so far, while the vault is unlocked. */
  checkpoint(reason: CheckpointReason): void {
    this.#options.writer.checkpoint(reason);
  }

  /** The first lockout gets a record immediately, the others one for each minute: their number is the attacker's choice. */
  lockedOut(credential: Credential, address: string): void {
    const others = this.#lockouts.get(credential);
    if (others !== undefined) {
      this.#lockouts.set(credential, others + 1);
      return;
    }
    this.record({ event: "lockout", credential, address });
    this.#countLockouts(credential);
  }

  #countLockouts(credential: Credential): void {
    this.#lockouts.set(credential, 0);
    this.#options.clock.after(lockoutsMs, () => {
      const count = this.#lockouts.get(credential) ?? 0;
      this.#lockouts.delete(credential);
      if (count === 0) return;
      this.record({ event: "lockout", credential, count });
      this.#countLockouts(credential);
    });
  }

  /** Makes a checkpoint under the vault's key, and further ones until the next lock. */
  vaultUnlocked(reason: "init" | "unlock"): void {
    const key = this.#key;
    if (key === null) throw new Error("the vault's key is not known to the audit log");
    this.#options.writer.setSigner(
      (text) => key.signCheckpoint(text),
      (checkpoints) => key.verifyCheckpoints(checkpoints),
    );
    this.checkpoint(reason);
  }

  /** Returns the last checkpoint, see `AuditWriter.lastCheckpoint`: the message that wipes the key carries it. */
  vaultLocked(reason: LockReason): LastCheckpoint | null {
    this.record({ event: "locked", reason });
    return this.#options.writer.lastCheckpoint();
  }

  /** Writes what waits, and ends. */
  close(): Promise<void> {
    for (const [credential, count] of this.#lockouts)
      if (count > 0) this.record({ event: "lockout", credential, count });
    this.#lockouts.clear();
    return this.#options.writer.close();
  }

  readonly #timeNow = (): string => {
    const now = this.#options.clock.now();
    if (now !== this.#now) [this.#now, this.#time] = [now, new Date(now).toISOString()];
    return this.#time;
  };
}

type AuditDependencies = { readonly files: FileOperations; readonly clock: Clock; readonly log: Log };

/** Nothing is read or written before the first record. `denies`: see `AuditLogOptions`. */
export function openAudit(home: string, mode: AuditedMode, denies: boolean, around: AuditDependencies): AuditLog {
  const place = { ...around, directory: auditDirectory(home) };
  return new AuditLog({ ...place, writer: new AuditWriter(place), mode, denies });
}
