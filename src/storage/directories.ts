/** Owns which directories are known to survive a power cut, makes missing ones, and prunes those left empty. */
import { dirname } from "node:path";
import { type FileOperations, ignoring, syncDirectory } from "./durable.js";

export class Directories {
  readonly #files: FileOperations;
  readonly #root: string;
  readonly #durable = new Set<string>();
  readonly #underWay = new Map<string, Promise<void>>();

  /** `root` exists and is durable; nothing above it is touched. */
  constructor(files: FileOperations, root: string) {
    this.#files = files;
    this.#root = root;
  }

  /**
   * Makes the directory, and those above it, so that they last. A directory that is merely there is not enough: the
   * write that made it may still wait for its fsync, or may have failed in it.
   */
  async ensure(directory: string): Promise<void> {
    if (directory === this.#root || this.#durable.has(directory)) return;
    let making = this.#underWay.get(directory);
    if (making === undefined) {
      making = this.#make(directory).finally(() => this.#underWay.delete(directory));
      this.#underWay.set(directory, making);
    }
    await making;
  }

  /** Forgets a directory and all above it: one of them has gone missing. */
  forget(directory: string): void {
    for (let at = directory; at !== this.#root; at = dirname(at)) this.#durable.delete(at);
  }

  /** Removes the directory and those above it as far as they are empty. It need not last: empty ones do no harm. */
  async prune(directory: string): Promise<void> {
    for (const parent of this.#above(directory)) if (!(await this.#isPlain(parent))) return;
    for (let at = directory; at !== this.#root; at = dirname(at)) {
      this.#durable.delete(at); // before it goes, so that whoever makes it again makes it last
      if (!(await ignoring(this.#files.rmdir(at), "ENOTEMPTY", "EEXIST", "ENOENT", "EBUSY"))) return;
    }
  }

  /** The directory and all above it, from the top. */
  #above(directory: string): string[] {
    const found: string[] = [];
    for (let at = directory; at !== this.#root; at = dirname(at)) found.unshift(at);
    return found;
  }

  /** A link would lead out of the tree. */
  async #isPlain(directory: string): Promise<boolean> {
    return (await this.#files.lstat(directory)).isDirectory();
  }

  async #make(directory: string): Promise<void> {
    const parent = dirname(directory);
    await this.ensure(parent);
    await ignoring(this.#files.mkdir(directory, { mode: 0o700 }), "EEXIST");
    if (!(await this.#isPlain(directory))) throw new Error("a link or a file stands where a directory should");
    await syncDirectory(this.#files, parent);
    this.#durable.add(directory);
  }
}
