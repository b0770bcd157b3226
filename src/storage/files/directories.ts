/** Directories of the tree: durable creation of missing ones, pruning of empty ones, and shared fsyncs. */
import { dirname } from "node:path";
import {
  type FileOperations,
  ignoring,
  missingAsNull,
  type OpenDirectory,
  openDirectory,
} from "../../files/durable.js";

export class Directories {
  readonly #files: FileOperations;
  readonly #syncs: DirectorySyncs;
  readonly #roots: readonly string[];
  /** Directories known to survive a power cut. */
  readonly #durable = new Set<string>();
  /** Created here, but an fsync of their names may have failed, which no later fsync would report. */
  readonly #doubtful = new Set<string>();
  readonly #making = new Map<string, Promise<void>>();
  readonly #pruning = new Map<string, Promise<boolean>>();
  /** Number of operations in each directory and below it. */
  readonly #users = new Map<string, number>();

  /** `roots` must exist and be durable; they are never removed, and nothing above them is touched. */
  constructor(files: FileOperations, syncs: DirectorySyncs, roots: readonly string[]) {
    this.#files = files;
    this.#syncs = syncs;
    this.#roots = roots;
  }

  /** Keeps a directory from being pruned until `leave`: its name means the same directory until then. */
  async enter(directory: string): Promise<void> {
    const above = this.#upFrom(directory);
    for (let busy = this.#pruned(above); busy !== undefined; busy = this.#pruned(above)) await busy;
    for (const at of above) this.#users.set(at, (this.#users.get(at) ?? 0) + 1);
  }

  leave(directory: string): void {
    for (const at of this.#upFrom(directory)) {
      const left = (this.#users.get(at) ?? 0) - 1;
      if (left > 0) this.#users.set(at, left);
      else this.#users.delete(at);
    }
  }

  /**
   * Creates the directory and its parents durably. An existing directory may not be durable: the write that created it
   * may still wait for its fsync, or have failed in it.
   */
  async ensure(directory: string): Promise<void> {
    if (this.#roots.includes(directory) || this.#durable.has(directory)) return;
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

  /** Returns the directory and its parents, without the roots. */
  #upFrom(directory: string): string[] {
    const found: string[] = [];
    for (let at = directory; !this.#roots.includes(at); at = dirname(at)) found.push(at);
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

/** An open directory. */
export interface Hold {
  /** Makes all name changes durable that were complete before the call. */
  sync(): Promise<void>;
  release(): Promise<void>;
}

/**
 * Group commit for directory fsyncs. Concurrent writers of a directory share one open descriptor. Changes that are
 * complete before an fsync begins share it; an fsync that has begun is never shared, because it may miss the change.
 */
export class DirectorySyncs {
  readonly #files: FileOperations;
  readonly #shared = new Map<string, SharedDirectory>();

  constructor(files: FileOperations) {
    this.#files = files;
  }

  /** DANGER: the path must mean the same directory until the release; see `Directories.enter`. */
  async hold(directory: string): Promise<Hold> {
    let shared = this.#shared.get(directory);
    if (shared === undefined) {
      shared = new SharedDirectory(openDirectory(this.#files, directory));
      this.#shared.set(directory, shared);
    }
    const held = shared;
    held.users++;
    try {
      await held.opened;
    } catch (error) {
      await this.#release(directory, held);
      throw error;
    }
    return { sync: () => this.#sync(directory, held), release: () => this.#release(directory, held) };
  }

  /** Runs work while the directory is held open. */
  async holding<T>(directory: string, work: (held: Hold) => Promise<T>): Promise<T> {
    const held = await this.hold(directory);
    try {
      return await work(held);
    } finally {
      await held.release();
    }
  }

  sync(directory: string): Promise<void> {
    return this.holding(directory, (held) => held.sync());
  }

  /** Syncs the directory or, when it is gone, its nearest existing parent. */
  async syncNearest(directory: string): Promise<void> {
    for (let at = directory; !(await ignoring(this.sync(at), "ENOENT")); at = dirname(at));
  }

  /** Makes later holds reopen the directory, because its path now means another one. */
  forget(directory: string): void {
    this.#shared.delete(directory);
  }

  /** After a failure, later holds reopen the directory: only a new descriptor reports the next failure. */
  async #sync(directory: string, held: SharedDirectory): Promise<void> {
    try {
      await held.sync();
    } catch (error) {
      if (this.#shared.get(directory) === held) this.#shared.delete(directory);
      throw error;
    }
  }

  async #release(directory: string, held: SharedDirectory): Promise<void> {
    held.users--;
    if (held.users > 0) return;
    if (this.#shared.get(directory) === held) this.#shared.delete(directory);
    await held.opened.then((handle) => handle.close()).catch(() => {}); // all syncs have already reported
  }
}

class SharedDirectory {
  readonly opened: Promise<OpenDirectory>;
  users = 0;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(opened: Promise<OpenDirectory>) {
    this.opened = opened;
  }

  sync(): Promise<void> {
    if (this.#running === null) return this.#begin();
    // DANGER: after a failed fsync the kernel may report success for lost names, so callers that waited fail too.
    this.#next ??= this.#running.then(() => this.#begin());
    return this.#next;
  }

  #begin(): Promise<void> {
    this.#next = null;
    const sync = this.opened
      .then((handle) => handle.sync())
      .then(() => {
        if (this.#running === sync) this.#running = null; // a failed one stays, and fails all later syncs of this hold
      });
    this.#running = sync;
    return sync;
  }
}
