/**
 * Writer of the audit log. Records wait in a bounded queue for at most 50 ms, and are written together. Nothing here ever
 * delays or fails a request: on a disk that is full or slow the queue fills up, further records are lost, and once the disk
 * takes files again a `gap` record says how many.
 */
import { randomBytes } from "node:crypto";
import type { Clock } from "../clock.js";
import type { FileOperations } from "../files/durable.js";
import type { Log } from "../log.js";
import {
  base64url,
  checkpointMs,
  checkpointRecords,
  checkpointText,
  type LogHead,
  maxFileBytes,
} from "./audit-format.js";
import { textOfRecord } from "./audit-record.js";
import { type Group, GroupMaker } from "./group-maker.js";
import { findEnd } from "./log-end.js";
import { LogFiles } from "./log-files.js";

/** Makes the MAC of a checkpoint; rejects when the vault is locked. */
export type Signer = (text: string) => Promise<{ readonly key: string; readonly mac: string }>;

/** Why a checkpoint is made. */
export type CheckpointReason = "unlock" | "lock" | "time" | "records" | "file" | "key";

export type WriterOptions = {
  readonly directory: string;
  readonly files: FileOperations;
  readonly clock: Clock;
  readonly log: Log;
  /** Smaller in tests. */
  readonly limits?: Partial<WriterLimits>;
};

export type WriterLimits = { readonly maxFileBytes: number; readonly maxWaiting: number };

/** Records that wait for the disk at most: some 5 MiB. */
export const maxWaiting = 16_384;

const defaults: WriterLimits = { maxFileBytes, maxWaiting };

const groupMs = 50;
const retryMs = 1_000;

/** Bounds what a start reads at the log's end, see `findEnd`. */
const maxGroupCharacters = 128 * 1024;

type Gap = { count: number; readonly since: number };

export class AuditWriter {
  readonly #options: WriterOptions;
  readonly #limits: WriterLimits;
  readonly #files: LogFiles;
  #maker: GroupMaker | null = null;
  #signer: Signer | null = null;
  /** Records that are in no group yet. */
  #queue: string[] = [];
  /** Groups that are not written yet: the chain depends on them, so none is ever dropped. */
  readonly #groups: Group[] = [];
  #groupedRecords = 0;
  #gap: Gap | null = null;
  #gaps = 0;
  #lost = 0;
  #sinceCheckpoint = 0;
  /** Number of the checkpoint whose MAC is awaited; 0: of none. */
  #signing = 0;
  #signings = 0;
  #signed: Promise<void> = Promise.resolve();
  #failures = 0;
  #cancelTimer: (() => void) | null = null;
  #cancelCheckpoint: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #head: LogHead | null = null;
  #closed = false;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#limits = { ...defaults, ...options.limits };
    this.#files = new LogFiles(options.files, options.directory);
  }

  /** Records are being lost, or will be unless the disk recovers. */
  get isFailing(): boolean {
    return this.#failures > 0 || this.#gap !== null;
  }

  /** What is written; null before the first group. */
  get head(): LogHead | null {
    return this.#head;
  }

  /** Lost records since the last gap record. */
  get lost(): number {
    return this.#gap?.count ?? 0;
  }

  /** Since the start: how often records were lost, and how many. */
  get losses(): { readonly gaps: number; readonly records: number } {
    return { gaps: this.#gaps, records: this.#lost };
  }

  /** From now on checkpoints are made; with null, none is. */
  setSigner(signer: Signer | null): void {
    this.#signer = signer;
  }

  /** Adds a record: its text behind `seq`, with a line feed. */
  add(text: string): void {
    // DANGER: while there is a gap every record is lost, so that the one gap record stands where they are missing.
    const isFull = this.#queue.length + this.#groupedRecords >= this.#limits.maxWaiting;
    if (this.#gap !== null || isFull) {
      this.#lose();
      return;
    }
    this.#queue.push(text);
    this.#writeSoon(groupMs);
    this.#cancelCheckpoint ??= this.#options.clock.after(checkpointMs, () => this.checkpoint("time"));
  }

  /**
   * Makes a checkpoint of everything so far. The signer is called at once, so that a lock may follow: what the disk takes and
   * when does not matter to it.
   */
  checkpoint(reason: CheckpointReason): void {
    this.#stopCheckpointTimer();
    const [maker, signer] = [this.#maker, this.#signer];
    if (signer === null || this.#closed) return;
    if (maker === null) return void this.#runNow().then(() => this.#maker && this.checkpoint(reason));
    if (reason !== "file") this.#groupAll(maker);
    const number = ++this.#signings; // one that is awaited is dropped: it stands for less
    this.#signing = number;
    this.#sinceCheckpoint = 0;
    const { log, seq, chain } = maker.position;
    const time = this.#time();
    const add = ({ key, mac }: { key: string; mac: string }) => {
      if (number === this.#signing) this.#group(maker, [checkpointRecord(time, reason, key, mac)], reason);
    };
    this.#signed = signer(checkpointText({ log, seq, time, chain: base64url(chain) }))
      .then(add, () => {}) // the vault was locked meanwhile
      .then(() => {
        if (number !== this.#signing) return;
        this.#signing = 0;
        void this.#runNow();
      });
  }

  /** Writes what waits, if the disk takes it, and ends. */
  async close(): Promise<void> {
    await this.flush();
    this.#closed = true;
    this.#cancelTimer?.();
    this.#stopCheckpointTimer();
    const lost = this.lost + this.#queue.length + this.#groupedRecords;
    if (lost > 0) this.#options.log.error({ event: "audit-lost", count: lost, hint: "the disk did not take them" });
    await this.#files.close().catch((error: unknown) => this.#options.log.warn({ event: "audit-not-synced", error }));
  }

  /** Resolves once all that waits is written, or the disk has refused it. */
  async flush(): Promise<void> {
    await this.#runNow();
    while (this.#signing !== 0) await this.#signed;
    await this.#runNow();
  }

  #lose(): void {
    if (this.#gap === null) this.#gaps++;
    this.#gap ??= { count: 0, since: this.#options.clock.now() };
    this.#gap.count++;
    this.#lost++;
  }

  #writeSoon(ms: number): void {
    if (this.#closed) return;
    this.#cancelTimer ??= this.#options.clock.after(ms, () => void this.#runNow());
  }

  /** Writes now; a run that is going on is awaited first. */
  async #runNow(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    while (this.#running !== null) await this.#running;
    this.#running = this.#run().finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  async #run(): Promise<void> {
    try {
      this.#maker ??= await this.#open();
      for (let group = this.#next(); group !== undefined; group = this.#next()) {
        await this.#files.append(group);
        this.#groups.shift();
        this.#groupedRecords -= group.records;
        this.#head = { log: this.#maker.position.log, seq: group.seq, chain: group.chain };
        if (this.#failures > 0) this.#recovered();
      }
      if (this.#sinceCheckpoint >= checkpointRecords) this.checkpoint("records");
    } catch (error) {
      this.#failed(error);
    }
  }

  async #open(): Promise<GroupMaker> {
    const { directory, files, log } = this.#options;
    await this.#files.prepare();
    const { position, cut } = await findEnd(files, directory, base64url(randomBytes(16)));
    if (cut > 0) log.warn({ event: "audit-cut", count: cut, hint: "bytes of an unfinished group, which a crash left" });
    return new GroupMaker(position, this.#limits.maxFileBytes);
  }

  /** The first group that is not written; undefined when nothing waits, or a checkpoint has to come first. */
  #next(): Group | undefined {
    const maker = this.#maker;
    if (this.#groups.length > 0 || maker === null || this.#signing !== 0) return this.#groups[0];
    if (this.#queue.length === 0 && this.#gap !== null) this.#queue.push(this.#gapRecord(this.#gap));
    if (this.#queue.length === 0) return undefined;
    if (maker.isFull && this.#sinceCheckpoint > 0 && this.#signer !== null) {
      this.checkpoint("file");
      return this.#groups[0];
    }
    this.#groupSome(maker);
    return this.#groups[0];
  }

  #gapRecord({ count, since }: Gap): string {
    this.#gap = null;
    this.#options.log.warn({ event: "audit-gap", count, hint: "so many records are lost: the log has a gap record" });
    return textOfRecord(this.#time(), { event: "gap", count, since: new Date(since).toISOString() });
  }

  #groupAll(maker: GroupMaker): void {
    while (this.#queue.length > 0) this.#groupSome(maker);
  }

  #groupSome(maker: GroupMaker): void {
    let characters = 0;
    let count = 0;
    for (; count < this.#queue.length && count < checkpointRecords && characters < maxGroupCharacters; count++)
      characters += this.#queue[count]?.length ?? 0;
    const records = count === this.#queue.length ? this.#queue : this.#queue.slice(0, count);
    this.#queue = count === this.#queue.length ? [] : this.#queue.slice(count);
    this.#group(maker, records, null);
  }

  #group(maker: GroupMaker, records: readonly string[], checkpoint: CheckpointReason | null): void {
    const durable = checkpoint !== null && checkpoint !== "records";
    this.#groups.push(maker.make(records, { stays: checkpoint === "file", durable }));
    this.#groupedRecords += records.length;
    if (checkpoint === null) this.#sinceCheckpoint += records.length;
  }

  #failed(error: unknown): void {
    if (this.#failures === 0) {
      const hint = "requests go on, records wait, and are lost when there are too many: free space on the disk";
      this.#options.log.error({ event: "audit-failing", error, hint });
    }
    this.#failures++;
    this.#writeSoon(retryMs);
  }

  #recovered(): void {
    this.#failures = 0;
    this.#options.log.info({ event: "audit-recovered" });
  }

  #stopCheckpointTimer(): void {
    this.#cancelCheckpoint?.();
    this.#cancelCheckpoint = null;
  }

  #time(): string {
    return new Date(this.#options.clock.now()).toISOString();
  }
}

function checkpointRecord(time: string, reason: CheckpointReason, key: string, mac: string): string {
  return textOfRecord(time, { event: "checkpoint", reason, key, mac });
}
