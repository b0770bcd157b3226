/** Directories of the tree: durable creation of missing ones, pruning of empty ones. */
import { dirname } from "node:path";
import { type FileOperations, ignoring, missingAsNull } from "../../files/durable.js";
import type { DirectorySyncs, Hold } from "./directory-syncs.js";

export class Directories {
  readonly #files: FileOperations;
  readonly #syncs: DirectorySyncs;
  readonly #root: string;
  /** Directories known to survive a power cut. */
  readonly #durable = new Set<string>();
  /** Created here, but an fsync of their names may have failed, which no later fsync would report. */
  readonly #doubtful = new Set<string>();
  readonly #making = new Map<string, Promise<void>>();
  readonly #pruning = new Map<string, Promise<boolean>>();
  /** Number of operations in each directory and below it. */
  readonly #users = new Map<string, number>();

  /** `root` must exist and be durable; nothing above it is touched. */
  constructor(files: FileOperations, syncs: DirectorySyncs, root: string) {
    this.#files = files;
    this.#syncs = syncs;
    this.#root = root;
  }

  /** Runs work in a directory, which is not pruned meanwhile: its name means the same directory throughout. */
  async within<T>(directory: string, work: () => Promise<T>): Promise<T> {
    const above = this.#upFrom(directory);
    for (let busy = this.#pruned(above); busy !== undefined; busy = this.#pruned(above)) await busy;
    for (const at of above) this.#users.set(at, (this.#users.get(at) ?? 0) + 1);
    try {
      return await work();
    } finally {
      for (const at of above) this.#leave(at);
    }
  }

  /**
   * Creates the directory and its parents durably. An existing directory may not be durable: the write that created it
   * may still wait for its fsync, or have failed in it.
   */
  async ensure(directory: string): Promise<void> {
    if (directory === this.#root || this.#durable.has(directory)) return;
    let making = this.#making.get(directory);
    if (making === undefined) {
      making = this.#make(directory).finally(() => this.#making.delete(directory));
      this.#making.set(directory, making);
    }
    await making;
  }

  /** Forgets a directory and its parents, open ones too, because one of them has disappeared. */
  forget(directory: string): void {
    for (const at of this.#upFrom(directory)) {
      this.#durable.delete(at);
      this.#syncs.forget(at);
    }
  }

  /**
   * Removes the directory and its parents as far as they are empty and unused. Neither durable nor certain: empty
   * directories are harmless.
   */
  async prune(directory: string): Promise<void> {
    const above = this.#upFrom(directory);
    for (const at of above) if (!(await this.#isPlainOrMissing(at))) return; // never through a link out of the tree
    for (const at of above) {
      if (this.#users.has(at) || this.#pruning.has(at)) return;
      this.#durable.delete(at); // first, so that the next put creates it durably
      const removing = this.#removeEmpty(at).finally(() => this.#pruning.delete(at));
      this.#pruning.set(at, removing);
      if (!(await removing)) return;
    }
  }

  /** True when it is gone. */
  async #removeEmpty(directory: string): Promise<boolean> {
    try {
      const removed = await missingAsNull(ignoring(this.#files.rmdir(directory), "ENOTEMPTY", "EEXIST", "EBUSY"));
      if (removed !== false) this.#doubtful.delete(directory);
      return removed !== false;
    } catch {
      return false;
    }
  }

  #pruned(directories: readonly string[]): Promise<boolean> | undefined {
    const busy = directories.find((at) => this.#pruning.has(at));
    return busy === undefined ? undefined : this.#pruning.get(busy);
  }

  #leave(directory: string): void {
    const left = (this.#users.get(directory) ?? 0) - 1;
    if (left > 0) this.#users.set(directory, left);
    else this.#users.delete(directory);
  }

  /** Returns the directory and its parents, without the root. */
  #upFrom(directory: string): string[] {
    const found: string[] = [];
    for (let at = directory; at !== this.#root; at = dirname(at)) found.push(at);
    return found;
  }

  async #isPlainOrMissing(directory: string): Promise<boolean> {
    try {
      return (await missingAsNull(this.#files.lstat(directory)))?.isDirectory() ?? true;
    } catch {
      return false;
    }
  }

  async #make(directory: string): Promise<void> {
    const parent = dirname(directory);
    await this.ensure(parent);
    await this.#syncs.holding(parent, (held) => this.#makeIn(held, directory));
    this.#durable.add(directory);
  }

  /** DANGER: open the parent before the name is created; opened later, it does not report an fsync that failed since. */
  async #makeIn(parent: Hold, directory: string): Promise<void> {
    if (this.#doubtful.has(directory)) await ignoring(this.#files.rmdir(directory), "ENOENT"); // so that mkdir creates a new name
    if (await ignoring(this.#files.mkdir(directory, { mode: 0o700 }), "EEXIST")) this.#doubtful.add(directory);
    if (!(await this.#files.lstat(directory)).isDirectory()) {
      throw new Error("a link or a file is in the place of a directory");
    }
    await parent.sync();
    this.#doubtful.delete(directory);
  }
}
