/** The current vault in its files: loading, secrets, header and documents, with errors for clients. */
import { join } from "node:path";
import pLimit from "p-limit";
import type { Bytes } from "../../../workers/protocol.js";
import { type FileOperations, ignoring, makeDirectory, moveIntoPlace, syncDirectory } from "../../files/durable.js";
import { tagHeadBytes, tagOf } from "../blob-tag.js";
import type { Change, CommitResult } from "../secret-store.js";
import { BatchTree } from "./batch-tree.js";
import { Documents } from "./documents.js";
import { currentGeneration, finishRestored, type Generation, headerFile, removeRestoredMark } from "./generations.js";
import { removeLeftovers } from "./leftovers.js";
import type { Snapshot } from "./snapshot.js";
import { cannotWrite, readFailure, removalFailure, writeFailure } from "./store-errors.js";
import { readTree } from "./tree-scan.js";

/** Bounds the number of open files under load. */
const readsAtOnce = 64;
const writesAtOnce = 32;

/** Larger than any blob we write. Protects memory against a planted file. */
const maxBlobBytes = 2 ** 30;

export type LoadedVault = {
  readonly vault: CurrentVault;
  /** Number of foreign files in the tree. */
  readonly foreignFiles: number;
  /** The directory of secrets was missing, and an empty one was created. */
  readonly madeSecrets: boolean;
};

export class CurrentVault {
  readonly generation: Generation;
  readonly documents: Documents;
  readonly #files: FileOperations;
  readonly #tree: BatchTree;
  readonly #reads = pLimit(readsAtOnce);
  readonly #writes = pLimit(writesAtOnce);
  #header: Bytes;

  /** `paths`: all secrets in the tree. */
  constructor(files: FileOperations, generation: Generation, paths: readonly string[]) {
    this.generation = generation;
    this.documents = new Documents(files, generation.directory);
    this.#files = files;
    this.#tree = new BatchTree(files, generation, paths);
    this.#header = generation.header;
  }

  /**
   * Completes what a crash or a restore left unfinished, and reads the names; returns null when there is no vault. The caller
   * holds the claim. @throws StartError
   */
  static async load(files: FileOperations, vaultPath: string): Promise<LoadedVault | null> {
    await removeLeftovers(files, vaultPath);
    await finishRestored(files, vaultPath);
    const generation = await currentGeneration(files, vaultPath);
    if (generation === null) return null;
    await removeRestoredMark(files, generation.directory);
    // The process that replaced `current` may have been killed before the fsync, and all later writes depend on it.
    await ignoring(syncDirectory(files, vaultPath), "EROFS");
    const madeSecrets = await makeDirectory(files, generation.secrets); // some backups drop empty directories
    const { paths, foreignFiles } = await readTree(files, generation.secrets);
    const vault = new CurrentVault(files, generation, paths);
    await vault.#tree.replay();
    return { vault, foreignFiles, madeSecrets };
  }

  get header(): Bytes {
    return this.#header.slice();
  }

  get names(): BatchTree["names"] {
    return this.#tree.names;
  }

  async read(path: string, first = maxBlobBytes): Promise<Bytes | null> {
    try {
      return await this.#reads(() => this.#tree.read(path, first));
    } catch (error) {
      throw readFailure(path, error);
    }
  }

  async commit(changes: readonly Change[]): Promise<CommitResult> {
    for (const [refused, change] of changes.entries()) {
      if (!(await this.#isAsExpected(change))) return { committed: false, refused };
    }
    const [only, another] = changes;
    if (only === undefined) return { committed: true };
    if (another === undefined) return this.#commitOne(only);
    await this.#tree.commit(new Map(changes.map(({ path, blob }) => [path, blob]))).catch((error: unknown) => {
      throw cannotWrite(error);
    });
    return { committed: true };
  }

  settle(path: string): Promise<void> {
    return this.#writes(() => this.#tree.settle(path)).catch((error: unknown) => {
      throw writeFailure(path, error);
    });
  }

  async replaceHeader(header: Bytes, before: Bytes): Promise<boolean> {
    const { directory } = this.generation;
    if (Buffer.compare(this.#header, before) !== 0) return false;
    try {
      await this.#tree.settleDeletes(); // the header may drop the key of what would come back
      await moveIntoPlace(this.#files, join(directory, headerFile), header);
      this.#header = header.slice(); // what the next start finds, even when the fsync fails
      await syncDirectory(this.#files, directory);
      return true;
    } catch (error) {
      throw cannotWrite(error);
    }
  }

  snapshot(vaultPath: string): Promise<Snapshot> {
    return this.#tree.snapshot(vaultPath, () => this.#header);
  }

  /** Resolves once all batches are in the tree. */
  drain(): Promise<void> {
    return this.#tree.drain();
  }

  async #isAsExpected({ path, expected }: Change): Promise<boolean> {
    if (expected === undefined) return true;
    if (expected === "present") return this.#tree.isPresent(path);
    if (expected === "absent") return !this.names.has(path);
    const head = await this.read(path, tagHeadBytes);
    return head !== null && tagOf(head) === expected.tag;
  }

  async #commitOne({ path, blob, expected }: Change): Promise<CommitResult> {
    if (blob === null) {
      const removed = await this.#writes(() => this.#tree.remove(path)).catch((error: unknown) => {
        throw removalFailure(path, error);
      });
      return removed || expected !== "present" ? { committed: true } : { committed: false, refused: 0 };
    }
    await this.#writes(() => this.#tree.write(path, blob)).catch((error: unknown) => {
      throw writeFailure(path, error);
    });
    return { committed: true };
  }
}
