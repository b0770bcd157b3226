/** Audit log of a server: an observer that writes a record of each request and event, with checkpoints of the vault's key. */
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { FileOperations } from "../files/durable.js";
import type { FinishedRequest, Observer, VaultEvent } from "../observer.js";
import type { LogHead } from "./audit-format.js";
import { type AuditMode, recordOfEvent, recordsOf } from "./audit-record.js";
import type { AuditWriter, Signer } from "./audit-writer.js";
import { type AuditRecord, readRecords } from "./log-reader.js";

export type AuditLogOptions = {
  readonly writer: AuditWriter;
  readonly mode: Exclude<AuditMode, "off">;
  /** Operations on secrets are refused while records cannot be written. */
  readonly denies: boolean;
  readonly files: FileOperations;
  readonly directory: string;
  readonly clock: Clock;
};

export class AuditLog implements Observer {
  readonly #writer: AuditWriter;
  readonly #options: AuditLogOptions;
  #signer: Signer = () => Promise.reject(new Error("the vault is not open yet"));
  /** Of the last record, as its number and as its text: most records of a millisecond share both. */
  #now = Number.NaN;
  #time = "";

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.#writer = options.writer;
  }

  /** `signer` is the key worker's, of the vault. */
  setSigner(signer: Signer): void {
    this.#signer = signer;
  }

  /**
   * Returns up to `limit` records that follow record `after`, up to the latest, and where the log ends; null while nothing is
   * written. @throws VaultError UNAVAILABLE
   */
  async read(
    after: number,
    limit: number,
  ): Promise<{ readonly records: readonly AuditRecord[]; readonly head: LogHead | null }> {
    await this.#writer.flush();
    const { head } = this.#writer;
    const { files, directory } = this.#options;
    try {
      return { records: await readRecords(files, directory, after, limit), head };
    } catch (cause) {
      throw new VaultError("UNAVAILABLE", "the audit log cannot be read: try again", { cause });
    }
  }

  /** See `AuditWriter.losses`. */
  get losses(): AuditWriter["losses"] {
    return this.#writer.losses;
  }

  /** @throws VaultError UNAVAILABLE when records are lost and the operation must not go unrecorded */
  mustAccept(): void {
    if (!this.#options.denies || !this.#writer.isFailing) return;
    throw new VaultError("UNAVAILABLE", "the audit log cannot be written: free space on the server's disk");
  }

  requestFinished(request: FinishedRequest): void {
    for (const text of recordsOf(request, this.#options.mode, this.#timeNow())) this.#writer.add(text);
    if (request.route === "/v1/rotate" && request.status === 200) this.#writer.checkpoint("key");
  }

  vaultEvent(event: VaultEvent): void {
    const text = recordOfEvent(event, this.#timeNow());
    if (text !== null) this.#writer.add(text);
    if (event.event === "unlock" || event.event === "init") this.#unlocked();
    if (event.event === "lock") this.#locked();
  }

  /** Writes what waits. */
  close(): Promise<void> {
    return this.#writer.close();
  }

  #unlocked(): void {
    this.#writer.setSigner(this.#signer);
    this.#writer.checkpoint("unlock");
  }

  /** The key worker gets the checkpoint's text before the message that makes it wipe its key. */
  #locked(): void {
    this.#writer.checkpoint("lock");
    this.#writer.setSigner(null);
  }

  #timeNow(): string {
    const now = this.#options.clock.now();
    if (now !== this.#now) [this.#now, this.#time] = [now, new Date(now).toISOString()];
    return this.#time;
  }
}
