/**
 * Writer of the audit log. Records wait in a bounded queue for at most 50 ms, and are written together. Nothing here ever
 * delays or fails a request: on a disk that is full or slow the queue fills up, further records are lost, and once the disk
 * takes files again a `gap` record says how many.
 */
import { randomBytes } from "node:crypto";
import type { CheckpointSignature, CheckpointVerdict, SignedCheckpoint } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import type { FileOperations } from "../files/durable.js";
import type { Log } from "../log.js";
import { findEnd, findLatestCheckpoint } from "./end.js";
import { type Group, GroupMaker, LogFiles, type LogPosition } from "./files.js";
import {
  base64url,
  type CheckpointClaim,
  checkpointMs,
  checkpointRecords,
  checkpointText,
  type LogHead,
  maxFileBytes,
  signedCheckpoint,
} from "./format.js";
import { auditRecordText, type CheckpointReason, type Mismatch } from "./record.js";

export type WriterOptions = {
  readonly directory: string;
  readonly files: FileOperations;
  readonly clock: Clock;
  readonly log: Log;
  /** Smaller in tests. */
  readonly limits?: { readonly maxFileBytes?: number; readonly maxWaiting?: number };
};

/** Records that wait for the disk at most: some 5 MiB. */
export const maxWaiting = 16_384;

/** Mismatches in the log of an earlier server: the record's reason, and the text for the server's log. */
const mismatches: Readonly<Record<Mismatch, string>> = {
  chain: "records behind the newest checkpoint were changed, added or removed while no server ran",
  wrong: "the newest checkpoint does not fit the records before it: they were changed while no server ran",
  unknown:
    "the newest checkpoint is under a key that this vault does not have: another server has changed the key, or the log " +
    "was changed while no server ran",
};

const groupMs = 50;
const retryMs = 1_000;

/** Bounds what a start reads at the log's end, see `findEnd`. */
const maxGroupCharacters = 128 * 1024;

/** Claim of a checkpoint that this server makes. */
type CheckpointToSign = Required<CheckpointClaim> & { readonly reason: CheckpointReason };

export class AuditWriter {
  readonly #options: WriterOptions;
  readonly #limits: { readonly maxFileBytes: number; readonly maxWaiting: number };
  readonly #files: LogFiles;
  readonly #queue = new RecordQueue();
  readonly #signing = new CheckpointSigning();
  #maker: GroupMaker | null = null;
  /** Position at which this server continued the log. */
  #opened: LogPosition | null = null;
  /** Whether the log that an earlier server left is checked: no checkpoint is made before. */
  #isChecked = false;
  #checking: Promise<void> | null = null;
  #verify: CheckpointVerifier = () => Promise.reject(new Error("no key is known yet"));
  /** Name of the key of the newest checkpoint that is this server's, or was found to be genuine. */
  #key: string | null = null;
  /** The newest checkpoints are under another key than the ones before: the next must be a bridge. */
  #needsBridge = false;
  /** Groups that are not written yet: the chain depends on them, so none is ever dropped. */
  readonly #groups: Group[] = [];
  #groupedRecords = 0;
  #sinceCheckpoint = 0;
  #isRetrying = false;
  #cancelTimer: (() => void) | null = null;
  #cancelCheckpoint: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #head: LogHead | null = null;
  #closed = false;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#limits = { maxFileBytes, maxWaiting, ...options.limits };
    this.#files = new LogFiles(options.files, options.directory);
  }

  /** Records are being lost, or will be unless the disk recovers. */
  get isFailing(): boolean {
    return this.#isRetrying || this.#queue.gap !== null;
  }

  /** The end of what is written; null before the first group. */
  get head(): LogHead | null {
    return this.#head;
  }

  get losses(): RecordQueue["losses"] {
    return this.#queue.losses;
  }

  /** Starts making checkpoints, or stops with null. `verify` checks the checkpoints of an earlier server. */
  setSigner(signer: Signer | null, verify = this.#verify): void {
    this.#signing.signer = signer;
    this.#verify = verify;
  }

  /** Adds a record: its text behind `seq`, with a line feed. */
  add(text: string): void {
    if (this.#closed) this.#reportLost(1);
    // DANGER: while there is a gap every record is lost, so that the one gap record stands where they are missing.
    else if (this.#queue.gap !== null || this.#waiting >= this.#limits.maxWaiting) this.#queue.lose(this.#now());
    else {
      this.#queue.add(text);
      this.#writeSoon(groupMs);
      this.#cancelCheckpoint ??= this.#options.clock.after(checkpointMs, () => this.checkpoint("time"));
    }
  }

  /**
   * Makes a checkpoint of everything so far. The signer is called at once, so that a lock may follow: what the disk takes and
   * when does not matter to it.
   */
  checkpoint(reason: CheckpointReason): void {
    this.#stopCheckpointTimer();
    const maker = this.#maker;
    if (this.#signing.signer === null || this.#closed) return;
    if (maker === null) return void this.#runNow().then(() => this.#maker && this.checkpoint(reason));
    if (!this.#isChecked) return void this.#checkFirst(reason);
    while (reason !== "file" && this.#queue.length > 0) this.#groupSome(maker);
    this.#sinceCheckpoint = 0;
    const signed = this.#signedReason(reason);
    this.#signing.begin(this.#claim(maker.position, signed), (record, key) => {
      if (record !== null) this.#group(maker, [record], reason);
      this.#signedBy(key, signed);
      void this.#runNow();
    });
  }

  #claim({ log, seq, chain }: LogPosition, reason: CheckpointReason): CheckpointToSign {
    return { log, seq, time: this.#time(), chain: base64url(chain), from: this.#opened?.seq ?? 1, reason };
  }

  /** A new vault's checkpoint also vouches for what this server has signed, or checked, under the key of the one before. */
  #signedReason(reason: CheckpointReason): CheckpointReason {
    if (reason === "key") this.#needsBridge = true;
    const isBridge = this.#needsBridge || (reason === "init" && this.#key !== null);
    return isBridge ? "key" : reason;
  }

  #signedBy(key: string | null, reason: CheckpointReason): void {
    if (key === null) return;
    const isBridge = reason === "key" || reason === "init";
    this.#needsBridge = !isBridge && (this.#needsBridge || (this.#key !== null && key !== this.#key));
    this.#key = key;
    if (this.#needsBridge) this.checkpoint("key"); // another server has changed the key
  }

  /** Checks the log that an earlier server has left, then makes the checkpoint. A mismatch becomes a record. */
  #checkFirst(reason: CheckpointReason): void {
    const check = async () => {
      const found = await this.#problemOfEarlier(reason === "init");
      this.#isChecked = true;
      if (found !== null) {
        this.#options.log.error({ event: "audit-mismatch", hint: mismatches[found] });
        this.add(auditRecordText(this.#time(), { event: "mismatch", reason: found }));
      }
      this.checkpoint(reason);
    };
    this.#checking ??= check()
      .catch((error: unknown) => {
        const hint = "the log of an earlier server cannot be checked: the next checkpoint tries again";
        if (this.#signing.signer !== null) this.#options.log.warn({ event: "audit-unchecked", error, hint });
      })
      .finally(() => {
        this.#checking = null;
      });
  }

  /** `isNew`: the vault was just made, so that the checkpoints of the one before cannot be checked. */
  async #problemOfEarlier(isNew: boolean): Promise<Mismatch | null> {
    const { files, directory } = this.#options;
    if (this.#opened === null) return null;
    const { checkpoint, isIntact } = await findLatestCheckpoint(files, directory, this.#opened);
    if (!isIntact) return "chain";
    if (checkpoint === null) return null;
    const [verdict] = await this.#verify([signedCheckpoint(checkpoint)]);
    if (verdict === "valid") this.#key = checkpoint.key;
    if (verdict === "unknown" && isNew) return null;
    return verdict === "valid" ? null : (verdict ?? "unknown");
  }

  /**
   * Returns the text of the last checkpoint before a lock, with a function that takes its signature, which must be called.
   * Null: there is nothing to sign. No checkpoint is made from now on.
   */
  lastCheckpoint(): LastCheckpoint | null {
    let last: LastCheckpoint | null = null;
    if (this.#signing.signer !== null && this.#maker !== null && this.#isChecked) {
      this.setSigner(
        (text) =>
          new Promise((resolve, reject) => {
            const end = (signed: CheckpointSignature | null) =>
              signed === null ? reject(new Error("not signed")) : resolve(signed);
            last = { text, end };
          }),
      );
      this.checkpoint("lock");
    }
    this.setSigner(null);
    return last;
  }

  /** Writes what waits, if the disk takes it, and ends. */
  async close(): Promise<void> {
    await this.flush();
    this.#closed = true;
    this.#stopTimer();
    this.#stopCheckpointTimer();
    const lost = this.#waiting + (this.#queue.gap?.count ?? 0);
    if (lost > 0) this.#reportLost(lost);
    await this.#files.close().catch((error: unknown) => this.#options.log.warn({ event: "audit-not-synced", error }));
  }

  /** Resolves once all that waits is written, or the disk has refused it. */
  async flush(): Promise<void> {
    await this.#runNow();
    await this.#checking;
    await this.#signing.ended();
    await this.#runNow();
  }

  /** Records that are not written yet. */
  get #waiting(): number {
    return this.#queue.length + this.#groupedRecords;
  }

  #reportLost(count: number): void {
    this.#options.log.error({ event: "audit-lost", count, hint: "the server stopped before they could be written" });
  }

  #writeSoon(ms: number): void {
    if (this.#closed) return;
    this.#cancelTimer ??= this.#options.clock.after(ms, () => void this.#runNow());
  }

  /** Writes now, after the run in progress if there is one. */
  async #runNow(): Promise<void> {
    this.#stopTimer();
    while (this.#running !== null) await this.#running;
    if (this.#closed) return;
    this.#running = this.#run().finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  /** Writes what waits now; what is added during the run is for the next one, or a run would never end under load. */
  async #run(): Promise<void> {
    try {
      const maker = this.#maker ?? (await this.#open());
      this.#maker = maker;
      for (let left = this.#waiting; left > 0 || this.#queue.gap !== null; ) {
        const group = this.#next(maker);
        if (group === undefined) break;
        await this.#write(group, maker);
        left -= group.records;
      }
      if (this.#sinceCheckpoint >= checkpointRecords) this.checkpoint("records");
      if (this.#waiting > 0) this.#writeSoon(groupMs);
    } catch (error) {
      this.#retry(error);
    }
  }

  async #open(): Promise<GroupMaker> {
    const { directory, files, log } = this.#options;
    await this.#files.prepare();
    const { position, cut } = await findEnd(files, directory, base64url(randomBytes(16)));
    if (cut > 0) log.warn({ event: "audit-cut", count: cut, hint: "bytes of an unfinished group, which a crash left" });
    this.#opened = position;
    this.#isChecked = position.seq === 1;
    return new GroupMaker(position, this.#limits.maxFileBytes);
  }

  /** The first group that is not written; undefined when nothing waits, or a checkpoint has to come first. */
  #next(maker: GroupMaker): Group | undefined {
    if (this.#groups.length > 0 || this.#signing.isPending) return this.#groups[0];
    if (this.#queue.length === 0) this.#addGapRecord();
    if (this.#queue.length === 0) return undefined;
    if (maker.isFull && this.#sinceCheckpoint > 0 && this.#signing.signer !== null) this.checkpoint("file");
    else this.#groupSome(maker);
    return this.#groups[0];
  }

  #addGapRecord(): void {
    const gap = this.#queue.takeGap();
    if (gap === null) return;
    const { count, since } = gap;
    this.#options.log.warn({ event: "audit-gap", count, hint: "so many records are lost: the log has a gap record" });
    this.#queue.add(auditRecordText(this.#time(), { event: "gap", count, since: new Date(since).toISOString() }));
  }

  #groupSome(maker: GroupMaker): void {
    this.#group(maker, this.#queue.take(checkpointRecords, maxGroupCharacters), null);
  }

  #group(maker: GroupMaker, records: readonly string[], checkpoint: CheckpointReason | null): void {
    const durable = checkpoint !== null && checkpoint !== "records";
    this.#groups.push(maker.make(records, { stays: checkpoint === "file", durable }));
    this.#groupedRecords += records.length;
    if (checkpoint === null) this.#sinceCheckpoint += records.length;
  }

  async #write(group: Group, maker: GroupMaker): Promise<void> {
    await this.#files.append(group);
    this.#groups.shift();
    this.#groupedRecords -= group.records;
    this.#head = { log: maker.position.log, seq: group.seq, chain: group.chain };
    if (this.#isRetrying) this.#options.log.info({ event: "audit-recovered" });
    this.#isRetrying = false;
  }

  #retry(error: unknown): void {
    const hint = "requests continue, records wait, and are lost when there are too many: free space on the disk";
    if (!this.#isRetrying) this.#options.log.error({ event: "audit-failing", error, hint });
    this.#isRetrying = true;
    this.#stopTimer(); // a record that came in between would start a retry immediately
    this.#writeSoon(retryMs);
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  #stopCheckpointTimer(): void {
    this.#cancelCheckpoint?.();
    this.#cancelCheckpoint = null;
  }

  #now(): number {
    return this.#options.clock.now();
  }

  #time(): string {
    return new Date(this.#now()).toISOString();
  }
}

type Gap = { readonly count: number; readonly since: number };

class RecordQueue {
  #records: string[] = [];
  #gap: Gap | null = null;
  #gaps = 0;
  #lost = 0;

  get length(): number {
    return this.#records.length;
  }

  /** The records that were lost since the last gap record; null when none was. */
  get gap(): Gap | null {
    return this.#gap;
  }

  /** Since the start: how often records were lost, and how many. */
  get losses(): { readonly gaps: number; readonly records: number } {
    return { gaps: this.#gaps, records: this.#lost };
  }

  add(text: string): void {
    this.#records.push(text);
  }

  /** Counts a record that has no room. `now`: milliseconds since 1970. */
  lose(now: number): void {
    if (this.#gap === null) this.#gaps++;
    const { count, since } = this.#gap ?? { count: 0, since: now };
    this.#gap = { count: count + 1, since };
    this.#lost++;
  }

  /** Ends the gap, for a record that tells of it. */
  takeGap(): Gap | null {
    const gap = this.#gap;
    this.#gap = null;
    return gap;
  }

  /** Removes and returns the first records: at most `most`, and the first that reaches `maxCharacters` is the last. */
  take(most: number, maxCharacters: number): readonly string[] {
    let [count, characters] = [0, 0];
    for (; count < this.#records.length && count < most && characters < maxCharacters; count++)
      characters += this.#records[count]?.length ?? 0;
    const isAll = count === this.#records.length;
    const taken = isAll ? this.#records : this.#records.slice(0, count);
    this.#records = isAll ? [] : this.#records.slice(count);
    return taken;
  }
}

/** Makes the MAC of a checkpoint; rejects when the vault is locked. */
export type Signer = (text: string) => Promise<CheckpointSignature>;

/** Checks the MACs of checkpoints; rejects when the vault is locked. */
export type CheckpointVerifier = (checkpoints: readonly SignedCheckpoint[]) => Promise<readonly CheckpointVerdict[]>;

/** The checkpoint of a lock; `end` takes its signature, or null when there is none. */
export type LastCheckpoint = { readonly text: string; readonly end: (signed: CheckpointSignature | null) => void };

class CheckpointSigning {
  /** No checkpoint is made without one. */
  signer: Signer | null = null;
  #latest: Promise<void> | null = null;

  /** A MAC is awaited. */
  get isPending(): boolean {
    return this.#latest !== null;
  }

  /** Resolves once none is awaited. */
  async ended(): Promise<void> {
    while (this.#latest !== null) await this.#latest;
  }

  /**
   * Calls the signer at once. `end` is called later, with the record, or with null when the vault was locked in between; not
   * at all when another checkpoint was begun in between.
   */
  begin(claim: CheckpointToSign, end: (record: string | null, key: string | null) => void) {
    if (this.signer === null) return;
    const signed: Promise<CheckpointSignature | null> = this.signer(checkpointText(claim)).catch(() => null);
    const latest: Promise<void> = signed.then((signature) => {
      if (latest !== this.#latest) return;
      this.#latest = null;
      if (signature === null) return end(null, null);
      const { time, reason, from } = claim;
      const { key, mac } = signature;
      end(auditRecordText(time, { event: "checkpoint", reason, from, key, mac }), key);
    });
    this.#latest = latest;
  }
}
