/** Owns the directories of the tree: makes missing ones so that they last, and prunes those left empty. */
import { dirname } from "node:path";
import { type FileOperations, ignoring, missingAsNull } from "../../files/durable.js";
import type { DirectorySyncs, Hold } from "./directory-syncs.js";

export class Directories {
  readonly #files: FileOperations;
  readonly #syncs: DirectorySyncs;
  readonly #root: string;
  /** Directories that are known to survive a power cut. */
  readonly #durable = new Set<string>();
  /** Made here, but an fsync of their names may have failed: none that comes later could tell. */
  readonly #doubtful = new Set<string>();
  readonly #making = new Map<string, Promise<void>>();
  readonly #pruning = new Map<string, Promise<boolean>>();
  /** How much work is under way in each directory and below it. */
  readonly #users = new Map<string, number>();

  /** `root` exists and is durable; nothing above it is touched. */
  constructor(files: FileOperations, syncs: DirectorySyncs, root: string) {
    this.#files = files;
    this.#syncs = syncs;
    this.#root = root;
  }

  /** Works in a directory. It is not pruned meanwhile, so that its name leads to one directory from begin to end. */
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
   * Makes the directory, and those above it, so that they last. A directory that is merely there is not enough: the
   * write that made it may still wait for its fsync, or may have failed in it.
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

  /** Forgets a directory and all above it, open ones too: one of them has gone missing. */
  forget(directory: string): void {
    for (const at of this.#upFrom(directory)) {
      this.#durable.delete(at);
      this.#syncs.forget(at);
    }
  }

  /**
   * Removes the directory and those above it, as far as they are empty and nobody works there. That need not last, nor
   * succeed: empty directories do no harm.
   */
  async prune(directory: string): Promise<void> {
    const above = this.#upFrom(directory);
    for (const at of above) if (!(await this.#isPlainOrMissing(at))) return; // a link would lead out of the tree
    for (const at of above) {
      if (this.#users.has(at) || this.#pruning.has(at)) return;
      this.#durable.delete(at); // before it goes, so that whoever makes it again makes it last
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

  /** The directory and all above it, up to the root, which is not among them. */
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

  /** DANGER: the parent is held before the name is made: opened later, it would not tell of an fsync that failed since. */
  async #makeIn(parent: Hold, directory: string): Promise<void> {
    if (this.#doubtful.has(directory)) await ignoring(this.#files.rmdir(directory), "ENOENT"); // its next name is new
    if (await ignoring(this.#files.mkdir(directory, { mode: 0o700 }), "EEXIST")) this.#doubtful.add(directory);
    if (!(await this.#files.lstat(directory)).isDirectory()) {
      throw new Error("a link or a file stands where a directory should");
    }
    await parent.sync();
    this.#doubtful.delete(directory);
  }
}
