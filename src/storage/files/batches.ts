/**
 * Atomic batches of changes, in any of a vault's spaces. A batch is committed once its redo journal, a file of its own, is
 * written and synced. In the background, batches are applied to the tree and their journals removed, both in order. Until
 * then, reads of their paths are served from memory.
 */
import type { Bytes } from "../../../workers/protocol.js";
import {
  type FileOperations,
  moveIntoPlace,
  removeFile,
  replaceFile,
  syncDirectory,
  UncertainChange,
} from "../../files/durable.js";
import { Semaphore } from "../../locks.js";
import type { Space } from "../secret-store.js";
import { type BlobChange, encodeJournal, journalFile, readJournals } from "./journal.js";
import type { Names } from "./name-index.js";
import type { Snapshot } from "./snapshot.js";
import { Tree } from "./tree.js";

/** Few, so that the commits' own work does not queue behind it in the thread pool. */
const appliedAtOnce = 4;

/** A commit waits while more than this is pending, since it is held in memory and replayed after a crash. */
const maxPendingChanges = 10_000;
const maxPendingBytes = 64 * 2 ** 20;

type Batch = {
  readonly changes: readonly BlobChange[];
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

type PendingChange = { readonly batch: Batch; readonly blob: Bytes | null };

export class PendingBatches {
  readonly tree: Tree;
  readonly #files: FileOperations;
  readonly #directory: string;
  /** Committed, and not yet certain to be in the tree; oldest first. */
  readonly #pending: Batch[] = [];
  /** The last pending change of each path. */
  readonly #changes = new Map<string, PendingChange>();
  #draining: Promise<void> | null = null;
  #finishing: Promise<void> = Promise.resolve();
  #last: Promise<unknown> = Promise.resolve();
  #number = 0;

  /**
   * @param directory of the vault
   * @param names all blobs in the tree; from now on the pending batches' as well
   */
  constructor(files: FileOperations, directory: string, names: Names) {
    this.#files = files;
    this.#directory = directory;
    this.tree = new Tree(files, directory, names, (space, path) => this.isPending(space, path));
  }

  /** Replays the journals of batches that a crash interrupted; on a disk that refuses, they stay. @throws StartError */
  async replay(): Promise<void> {
    for (const { file, number, changes } of await readJournals(this.#files, this.#directory)) {
      this.#number = number;
      this.#show(createBatch(changes, file, Promise.resolve())); // not durable: its writer may have been killed before the fsync
    }
    await this.drain().catch(() => {});
  }

  /**
   * Whether a pending batch changes the path. DANGER: it must then change through another batch, or a replay would undo the
   * change.
   */
  isPending(space: Space, path: string): boolean {
    return this.#changes.size > 0 && this.#changes.has(`${space}/${path}`);
  }

  /** Returns the blob as the pending batches change it, null for a removal; undefined when they do not. */
  pendingBlob(space: Space, path: string): Bytes | null | undefined {
    return this.#changes.size === 0 ? undefined : this.#changes.get(`${space}/${path}`)?.blob;
  }

  /** Whether there is a blob: true if its removal failed before it was durable, false if a pending batch removes it. */
  isPresent(space: Space, path: string): boolean {
    const { names } = this.tree;
    return names[space].has(path) || (!this.isPending(space, path) && this.tree.isUnconfirmed(space, path));
  }

  /** Makes durable what a read returns, whatever became of the write that made it. */
  async flush(space: Space, path: string): Promise<void> {
    if (this.isPending(space, path)) await this.drain();
    await this.tree.flush(space, path);
  }

  /** Makes durable what is removed, whatever became of the commits. No other operation may run. */
  async flushRemovals(): Promise<void> {
    await this.drain().catch((error: unknown) => {
      if (this.#hasDoubtful) throw error; // a durable journal is replayed, whatever keeps it from the tree
    });
    await this.tree.flushRemovals();
  }

  /** Resolves once the changes, of distinct paths in each space, are durable. */
  commit(changes: readonly BlobChange[]): Promise<void> {
    return this.#inTurn(() => this.#commit(changes));
  }

  async snapshot(vaultPath: string, header: () => Uint8Array): Promise<Snapshot> {
    // DANGER: await nothing between the end of the drain and the call, which lists the names.
    const begun = await this.#inTurn(async () => {
      await this.drain();
      return { snapshot: this.tree.snapshot(vaultPath, header) };
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

  async #commit(changes: readonly BlobChange[]): Promise<void> {
    if (this.#hasDoubtful) await this.drain();
    while (this.#isFull()) await this.#makeRoom();
    const journal = journalFile(this.#directory, ++this.#number);
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const batch = createBatch(changes, journal, ended);
    try {
      await moveIntoPlace(this.#files, journal, encodeJournal(changes)).catch((error: unknown) => {
        if (error instanceof UncertainChange) this.#show(batch);
        throw error;
      });
      this.#show(batch); // whatever happens next: a start would replay it
      await syncDirectory(this.#files, this.#directory);
      batch.durable = true;
    } finally {
      end();
    }
    this.drain().catch(() => {}); // tried again by the next commit, and at the next start
  }

  /** Makes the batch visible. */
  #show(batch: Batch): void {
    this.#pending.push(batch);
    for (const { space, path, blob } of batch.changes) {
      this.#changes.set(`${space}/${path}`, { batch, blob });
      if (blob === null) this.tree.names[space].delete(path);
      else this.tree.names[space].add(path);
    }
  }

  #hide(batch: Batch): void {
    this.#pending.shift();
    for (const { space, path } of batch.changes) {
      const key = `${space}/${path}`;
      if (this.#changes.get(key)?.batch === batch) this.#changes.delete(key);
    }
  }

  get #hasDoubtful(): boolean {
    return this.#pending.some(({ durable }) => !durable);
  }

  #isFull(): boolean {
    const changes = this.#pending.reduce((sum, batch) => sum + batch.changes.length, 0);
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

  async #apply(changes: readonly BlobChange[]): Promise<void> {
    const slots = new Semaphore(appliedAtOnce);
    const work = changes.map(({ space, path, blob }) =>
      slots.run(async () => {
        if (blob === null) await this.tree.remove(space, path);
        else await this.tree.write(space, path, blob);
      }),
    );
    await Promise.all(work).finally(() => Promise.allSettled(work)); // a retry must not run beside it
  }

  /** DANGER: must be durable before any path of the batch changes without a journal, or a replay would undo that change. */
  async #removeJournal(batch: Batch): Promise<void> {
    if (!batch.removalInDoubt) {
      batch.removalInDoubt = true;
      return removeFile(this.#files, batch.journal);
    }
    await replaceFile(this.#files, batch.journal, encodeJournal([]));
    await removeFile(this.#files, batch.journal).catch(() => {}); // an empty one is harmless
  }
}

function createBatch(changes: readonly BlobChange[], journal: string, ended: Promise<unknown>): Batch {
  const bytes = changes.reduce((sum, { blob }) => sum + (blob?.length ?? 0), 0);
  return { changes, bytes, journal, ended, durable: false, applied: false, removalInDoubt: false };
}
