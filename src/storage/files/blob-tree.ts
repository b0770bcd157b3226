/** Blobs of one vault: files in a tree that mirrors the secret paths, durably written and removed. */
import { dirname } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { systemCode } from "../../errors.js";
import { type FileOperations, missingAsNull, moveIntoPlace } from "../../files/durable.js";
import { readFileBytes } from "../../files/read-file.js";
import { Directories } from "./directories.js";
import { DirectorySyncs } from "./directory-syncs.js";
import type { Generation } from "./generations.js";
import type { NameIndex } from "./name-index.js";
import { Snapshot } from "./snapshot.js";
import { blobFile } from "./tree-scan.js";

/** Attempts of a put whose directory disappears meanwhile. */
const maxAttempts = 16;

export class BlobTree {
  readonly generation: Generation;
  readonly names: NameIndex;
  readonly #files: FileOperations;
  readonly #isPending: (path: string) => boolean;
  readonly #syncs: DirectorySyncs;
  readonly #directories: Directories;
  readonly #snapshots = new Set<Snapshot>();
  /** Paths whose file is gone, but whose delete failed before it was durable. */
  readonly #unconfirmed = new Set<string>();
  /** Paths whose file is new, but whose write failed before it was durable. */
  readonly #doubtful = new Set<string>();
  /** Directories that were synced since the start: what a killed process left in them is durable. */
  readonly #settled = new Set<string>();

  /** `names`: all secrets. `isPending`: a change of the path, later than the tree's, has been made in them already. */
  constructor(
    files: FileOperations,
    generation: Generation,
    names: NameIndex,
    isPending: (path: string) => boolean = () => false,
  ) {
    this.#files = files;
    this.generation = generation;
    this.names = names;
    this.#isPending = isPending;
    this.#syncs = new DirectorySyncs(files);
    this.#directories = new Directories(files, this.#syncs, generation.secrets);
  }

  async read(path: string, first: number): Promise<Bytes | null> {
    return this.names.has(path) ? readFileBytes(this.#files, this.#fileOf(path), first) : null;
  }

  async write(path: string, blob: Bytes): Promise<void> {
    const directory = dirname(this.#fileOf(path));
    try {
      await this.#directories.within(directory, () => this.#writeBlob(path, directory, blob));
    } catch (error) {
      if (!this.names.has(path)) await this.#directories.prune(directory);
      throw error;
    }
  }

  /** After a failed fsync only a new file is certain to last; a killed process leaves names that were never synced. */
  async settle(path: string): Promise<void> {
    const blob = this.#doubtful.has(path) ? await this.read(path, Number.POSITIVE_INFINITY) : null;
    if (blob !== null) return this.write(path, blob);
    const directory = dirname(this.#fileOf(path));
    if (this.#settled.has(directory)) return;
    await this.#directories.within(directory, async () => {
      await this.#directories.ensure(directory);
      await this.#syncs.sync(directory);
    });
    this.#settled.add(directory);
  }

  /** Makes deletes durable that failed before they were. No other operation may run. */
  async settleDeletes(): Promise<void> {
    for (const path of [...this.#unconfirmed]) await this.remove(path);
  }

  /** Whether the file is gone, but the delete failed before it was durable. */
  isUnconfirmed(path: string): boolean {
    return this.#unconfirmed.has(path);
  }

  /** Returns false when there is no file. */
  async remove(path: string): Promise<boolean> {
    const directory = dirname(this.#fileOf(path));
    const removed = await this.#directories.within(directory, () => this.#removeBlob(path));
    await this.#directories.prune(directory);
    return removed;
  }

  /** `header`: returns the vault's current header, which opens the blobs of this moment. */
  async snapshot(vaultPath: string, header: () => Uint8Array): Promise<Snapshot> {
    // DANGER: await nothing between listing the names and registering the snapshot, or writes in between are lost to it.
    const names = this.names.list("", "", this.names.count);
    const snapshot = new Snapshot(this.#files, vaultPath, this.generation, names, header());
    this.#snapshots.add(snapshot);
    try {
      await snapshot.complete();
      return snapshot;
    } finally {
      this.#snapshots.delete(snapshot);
    }
  }

  async #writeBlob(path: string, directory: string, blob: Bytes): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#directories.ensure(directory);
        await this.#replaceBlob(path, directory, blob);
        this.#unconfirmed.delete(path);
        return;
      } catch (error) {
        if (systemCode(error) !== "ENOENT" || attempt === maxAttempts) throw error;
        this.#directories.forget(directory);
      }
    }
  }

  #replaceBlob(path: string, directory: string, blob: Bytes): Promise<void> {
    return this.#syncs.holding(directory, async (held) => {
      await moveIntoPlace(this.#files, this.#fileOf(path), blob, 0o600, () => this.#keepOld(path));
      this.#doubtful.add(path);
      this.#setName(path, true);
      await held.sync();
      this.#doubtful.delete(path);
    });
  }

  /** Opens the directory first: when that fails, nothing has happened yet. */
  async #removeBlob(path: string): Promise<boolean> {
    const file = this.#fileOf(path);
    const existed = await missingAsNull(
      this.#syncs.holding(dirname(file), async (directory) => {
        await this.#keepOld(path);
        await this.#files.unlink(file);
        this.#doubtful.delete(path);
        this.#setName(path, false);
        this.#unconfirmed.add(path);
        await directory.sync();
        return true;
      }),
    );
    this.#setName(path, false);
    if (existed === null && this.#unconfirmed.has(path)) await this.#confirmGone(file);
    return this.#unconfirmed.delete(path);
  }

  /**
   * After a failed fsync, a later one does not report that the name is still on disk. So the name is created once more
   * and removed again: the next fsync covers that. It is a directory, hence no secret; a start removes a leftover.
   */
  async #confirmGone(file: string): Promise<void> {
    const made = await missingAsNull(
      this.#syncs.holding(dirname(file), async (directory) => {
        await this.#files.mkdir(file, { mode: 0o700 });
        await this.#files.rmdir(file);
        await directory.sync();
        return true;
      }),
    );
    if (made === null) await this.#syncs.syncNearest(dirname(dirname(file)));
  }

  #setName(path: string, isThere: boolean): void {
    if (this.#isPending(path)) return;
    if (isThere) this.names.add(path);
    else this.names.delete(path);
  }

  async #keepOld(path: string): Promise<void> {
    for (const snapshot of this.#snapshots) await snapshot.keep(path);
  }

  #fileOf(path: string): string {
    return blobFile(this.generation.secrets, path);
  }
}
