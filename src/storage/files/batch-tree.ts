/**
 * Blobs of one vault with atomic batches. A redo journal, written and synced first, is the commit point; then the batch is
 * applied to the tree, and the journal removed. Meanwhile reads are served from memory. One batch at a time.
 */
import { join } from "node:path";
import pLimit from "p-limit";
import type { Bytes } from "../../../workers/protocol.js";
import { StartError } from "../../errors.js";
import { type FileOperations, moveIntoPlace, removeFile, replaceFile, syncDirectory } from "../../files/durable.js";
import { readFileBytes } from "../../files/read-file.js";
import { BlobTree } from "./blob-tree.js";
import type { Generation } from "./generations.js";
import { type BatchChanges, decodeJournal, encodeJournal } from "./journal-format.js";
import type { NameIndex } from "./name-index.js";
import type { Snapshot } from "./snapshot.js";

export const journalName = "journal";

/** Larger than any batch with its paths. */
export const maxJournalBytes = 2 ** 30;
const appliedAtOnce = 32;

type Batch = {
  readonly changes: BatchChanges;
  /** The journal is certain to survive a power cut; nothing is applied before. */
  durable: boolean;
  applied: boolean;
  /** An fsync of its removal may have failed, which no later fsync would report. */
  removalInDoubt: boolean;
};

export class BatchTree {
  readonly #files: FileOperations;
  readonly #tree: BlobTree;
  readonly #journal: string;
  /** Committed, and not yet certain to be in the tree. */
  #pending: Batch | null = null;
  #draining: Promise<void> | null = null;
  #last: Promise<unknown> = Promise.resolve();

  /** `paths`: all secrets in the tree. */
  constructor(files: FileOperations, generation: Generation, paths: readonly string[]) {
    this.#files = files;
    this.#tree = new BlobTree(files, generation, paths);
    this.#journal = join(generation.directory, journalName);
  }

  get generation(): Generation {
    return this.#tree.generation;
  }

  get names(): NameIndex {
    return this.#tree.names;
  }

  /** Replays the journal of a batch that a crash interrupted; on a disk that refuses, it stays. @throws StartError */
  async replay(): Promise<void> {
    const changes = await pendingChanges(this.#files, this.generation.directory);
    if (changes === null) return;
    // The process that wrote it may have been killed before the fsync.
    this.#show({ changes, durable: false, applied: false, removalInDoubt: false });
    await this.drain().catch(() => {});
  }

  async read(path: string, first: number): Promise<Bytes | null> {
    const pending = this.#pending?.changes.get(path);
    return pending === undefined ? this.#tree.read(path, first) : (pending?.slice(0, first) ?? null);
  }

  /** True for a secret, and for one whose delete failed before it was durable. */
  isPresent(path: string): boolean {
    return this.names.has(path) || this.#tree.isUnconfirmed(path);
  }

  async write(path: string, blob: Bytes): Promise<void> {
    if (this.#pending?.changes.has(path)) await this.drain();
    await this.#tree.write(path, blob);
  }

  async remove(path: string): Promise<boolean> {
    if (this.#pending?.changes.has(path)) await this.drain();
    return this.isPresent(path) && (await this.#tree.remove(path));
  }

  commit(changes: BatchChanges): Promise<void> {
    const committed = this.#last.then(() => this.#commit(changes));
    this.#last = committed.catch(() => {});
    return committed;
  }

  async snapshot(vaultPath: string): Promise<Snapshot> {
    while (this.#pending !== null) await this.drain();
    return this.#tree.snapshot(vaultPath);
  }

  /** Resolves once no batch is pending. Concurrent calls share one attempt. */
  async drain(): Promise<void> {
    if (this.#pending === null) return;
    this.#draining ??= this.#finish(this.#pending).finally(() => {
      this.#draining = null;
    });
    await this.#draining;
  }

  async #commit(changes: BatchChanges): Promise<void> {
    await this.drain();
    const batch: Batch = { changes, durable: false, applied: false, removalInDoubt: false };
    await moveIntoPlace(this.#files, this.#journal, encodeJournal(changes));
    this.#show(batch); // whatever happens next: a start would replay it
    await syncDirectory(this.#files, this.generation.directory);
    batch.durable = true;
    this.drain().catch(() => {}); // tried again before the next change of any of its paths, and at the next start
  }

  /** From here on all see the batch. */
  #show(batch: Batch): void {
    this.#pending = batch;
    for (const [path, blob] of batch.changes) {
      if (blob === null) this.names.delete(path);
      else this.names.add(path);
    }
  }

  async #finish(batch: Batch): Promise<void> {
    if (!batch.durable) await replaceFile(this.#files, this.#journal, encodeJournal(batch.changes));
    batch.durable = true;
    if (!batch.applied) await this.#apply(batch.changes);
    batch.applied = true;
    await this.#removeJournal(batch);
    this.#pending = null;
  }

  async #apply(changes: BatchChanges): Promise<void> {
    const limit = pLimit(appliedAtOnce);
    const work = [...changes].map(([path, blob]) =>
      limit(async () => void (await (blob === null ? this.#tree.remove(path) : this.#tree.write(path, blob)))),
    );
    await Promise.all(work).finally(() => Promise.allSettled(work)); // a retry must not run beside it
  }

  /** DANGER: must be durable before any path of the batch changes again, or a replay would undo that change. */
  async #removeJournal(batch: Batch): Promise<void> {
    if (!batch.removalInDoubt) {
      batch.removalInDoubt = true;
      return removeFile(this.#files, this.#journal);
    }
    await replaceFile(this.#files, this.#journal, encodeJournal(new Map()));
    await removeFile(this.#files, this.#journal).catch(() => {}); // an empty one is harmless
  }
}

/** Returns the changes in a vault's journal; null when there is none. @throws StartError when it is damaged. */
export async function pendingChanges(files: FileOperations, directory: string): Promise<BatchChanges | null> {
  const journal = join(directory, journalName);
  const bytes = await readFileBytes(files, journal, maxJournalBytes);
  const changes = bytes && decodeJournal(bytes);
  if (bytes !== null && changes === null) throw damagedJournal(journal);
  return changes;
}

function damagedJournal(path: string): StartError {
  return new StartError(
    `${path}, which completes the last batch of changes, is damaged: restore the vault from a backup, or move it away ` +
      "(the batch may then be incomplete), then start again",
  );
}
