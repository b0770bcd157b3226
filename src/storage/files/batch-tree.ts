/**
 * Blobs of one vault with atomic batches. A batch is committed once its redo journal, a file of its own, is written and synced.
 * In the background, batches are applied to the tree and their journals removed, both in order. Until then, reads of their
 * paths are served from memory.
 */
import pLimit from "p-limit";
import type { Bytes } from "../../../workers/protocol.js";
import { type FileOperations, moveIntoPlace, removeFile, replaceFile, syncDirectory } from "../../files/durable.js";
import { BlobTree } from "./blob-tree.js";
import type { Generation } from "./generations.js";
import { type BatchChanges, encodeJournal } from "./journal-format.js";
import { journalFile, maxJournalBytes, readJournals } from "./journals.js";
import { NameIndex } from "./name-index.js";
import type { Snapshot } from "./snapshot.js";

/** Few, so that the commits' own work does not queue behind it in the thread pool. */
const appliedAtOnce = 4;

/** A commit waits while more than this is pending, since it is held in memory and replayed after a crash. */
const maxPendingChanges = 10_000;
const maxPendingBytes = 64 * 2 ** 20;

type Batch = {
  readonly changes: BatchChanges;
  readonly bytes: number;
  readonly journal: string;
  /** Settles, without an error, when its commit has ended. */
  readonly ended: Promise<unknown>;
  /** The journal is certain to survive a power cut; nothing is applied before. */
  durable: boolean;
  applied: boolean;
  /** An fsync of its removal may have failed, which no later fsync would report. */
  removalInDoubt: boolean;
};

export class BatchTree {
  /** All secrets, the pending batches included. */
  readonly names: NameIndex;
  readonly #files: FileOperations;
  readonly #tree: BlobTree;
  /** Committed, and not yet certain to be in the tree; oldest first. */
  readonly #pending: Batch[] = [];
  /** The last pending batch that changes a path. */
  readonly #changedBy = new Map<string, Batch>();
  #draining: Promise<void> | null = null;
  #finishing: Promise<void> = Promise.resolve();
  #last: Promise<unknown> = Promise.resolve();
  #number = 0;

  /** `paths`: all secrets in the tree. */
  constructor(files: FileOperations, generation: Generation, paths: readonly string[]) {
    this.#files = files;
    this.names = new NameIndex(paths);
    this.#tree = new BlobTree(files, generation, this.names, (path) => this.#changedBy.has(path));
  }

  get generation(): Generation {
    return this.#tree.generation;
  }

  /** Replays the journals of batches that a crash interrupted; on a disk that refuses, they stay. @throws StartError */
  async replay(): Promise<void> {
    for (const { journal, number, changes } of await readJournals(this.#files, this.generation.directory)) {
      this.#number = number;
      this.#show(batchOf(changes, journal, Promise.resolve())); // not durable: its writer may have been killed before the fsync
    }
    await this.drain().catch(() => {});
  }

  async read(path: string, first: number): Promise<Bytes | null> {
    const pending = this.#changedBy.get(path)?.changes.get(path);
    return pending === undefined ? this.#tree.read(path, first) : (pending?.slice(0, first) ?? null);
  }

  /** True for a secret, and for one whose delete failed before it was durable; false for one that a pending batch removes. */
  isPresent(path: string): boolean {
    return this.names.has(path) || (!this.#changedBy.has(path) && this.#tree.isUnconfirmed(path));
  }

  /** DANGER: a path of a pending batch must change through a journal as well, or a replay would undo the change. */
  async write(path: string, blob: Bytes): Promise<void> {
    if (this.#changedBy.has(path)) await this.commit(new Map([[path, blob]]));
    else await this.#tree.write(path, blob);
  }

  async remove(path: string): Promise<boolean> {
    if (!this.isPresent(path)) return false;
    if (!this.#changedBy.has(path)) return this.#tree.remove(path);
    await this.commit(new Map([[path, null]]));
    return true;
  }

  /** Makes durable what `read` returns, whatever became of the write that made it. */
  async settle(path: string): Promise<void> {
    if (this.#changedBy.has(path)) await this.drain();
    await this.#tree.settle(path);
  }

  /** Makes durable what is deleted, whatever became of the commits. No other operation may run. */
  async settleDeletes(): Promise<void> {
    await this.drain().catch((error: unknown) => {
      if (this.#hasDoubtful) throw error; // a durable journal is replayed, whatever keeps it from the tree
    });
    await this.#tree.settleDeletes();
  }

  commit(changes: BatchChanges): Promise<void> {
    return this.#inTurn(() => this.#commit(changes));
  }

  async snapshot(vaultPath: string, header: () => Uint8Array): Promise<Snapshot> {
    // DANGER: await nothing between the end of the drain and the call, which lists the names.
    const begun = await this.#inTurn(async () => {
      await this.drain();
      return { snapshot: this.#tree.snapshot(vaultPath, header) };
    });
    return begun.snapshot;
  }

  /** Resolves once no batch is pending. Concurrent calls share an attempt that begins after them. */
  async drain(): Promise<void> {
    await this.#draining?.catch(() => {});
    if (this.#pending.length === 0) return;
    this.#draining ??= this.#finishAll().finally(() => {
      this.#draining = null;
    });
    await this.#draining;
  }

  /** Commits and snapshots run one at a time. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const current = this.#last.then(work);
    this.#last = current.catch(() => {});
    return current;
  }

  async #commit(changes: BatchChanges): Promise<void> {
    if (this.#hasDoubtful) await this.drain();
    while (this.#isFull()) await this.#makeRoom();
    const bytes = encodeJournal(changes);
    if (bytes.length > maxJournalBytes) throw new Error(`a journal has more than ${maxJournalBytes} bytes`);
    const journal = journalFile(this.generation.directory, ++this.#number);
    await moveIntoPlace(this.#files, journal, bytes);
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const batch = batchOf(changes, journal, ended);
    this.#show(batch); // whatever happens next: a start would replay it
    try {
      await syncDirectory(this.#files, this.generation.directory);
      batch.durable = true;
    } finally {
      end();
    }
    this.drain().catch(() => {}); // tried again by the next commit, and at the next start
  }

  /** Makes the batch visible. */
  #show(batch: Batch): void {
    this.#pending.push(batch);
    for (const [path, blob] of batch.changes) {
      this.#changedBy.set(path, batch);
      if (blob === null) this.names.delete(path);
      else this.names.add(path);
    }
  }

  #hide(batch: Batch): void {
    this.#pending.shift();
    for (const path of batch.changes.keys()) if (this.#changedBy.get(path) === batch) this.#changedBy.delete(path);
  }

  get #hasDoubtful(): boolean {
    return this.#pending.some(({ durable }) => !durable);
  }

  #isFull(): boolean {
    const changes = this.#pending.reduce((sum, batch) => sum + batch.changes.size, 0);
    return changes >= maxPendingChanges || this.#pending.reduce((sum, { bytes }) => sum + bytes, 0) >= maxPendingBytes;
  }

  async #makeRoom(): Promise<void> {
    if (this.#draining === null) await this.drain();
    else await this.#finishing.catch(() => this.drain());
  }

  async #finishAll(): Promise<void> {
    for (let [oldest] = this.#pending; oldest !== undefined; [oldest] = this.#pending) {
      this.#finishing = this.#finish(oldest);
      await this.#finishing;
    }
  }

  /** DANGER: the oldest first, and its journal durably gone before that of the next, or a replay would be in another order. */
  async #finish(batch: Batch): Promise<void> {
    await batch.ended;
    if (!batch.durable) await replaceFile(this.#files, batch.journal, encodeJournal(batch.changes));
    batch.durable = true;
    if (!batch.applied) await this.#apply(batch.changes);
    batch.applied = true;
    await this.#removeJournal(batch);
    this.#hide(batch);
  }

  async #apply(changes: BatchChanges): Promise<void> {
    const limit = pLimit(appliedAtOnce);
    const work = [...changes].map(([path, blob]) =>
      limit(async () => void (await (blob === null ? this.#tree.remove(path) : this.#tree.write(path, blob)))),
    );
    await Promise.all(work).finally(() => Promise.allSettled(work)); // a retry must not run beside it
  }

  /** DANGER: must be durable before any path of the batch changes without a journal, or a replay would undo that change. */
  async #removeJournal(batch: Batch): Promise<void> {
    if (!batch.removalInDoubt) {
      batch.removalInDoubt = true;
      return removeFile(this.#files, batch.journal);
    }
    await replaceFile(this.#files, batch.journal, encodeJournal(new Map()));
    await removeFile(this.#files, batch.journal).catch(() => {}); // an empty one is harmless
  }
}

function batchOf(changes: BatchChanges, journal: string, ended: Promise<unknown>): Batch {
  let bytes = 0;
  for (const blob of changes.values()) bytes += blob?.length ?? 0;
  return { changes, bytes, journal, ended, durable: false, applied: false, removalInDoubt: false };
}
