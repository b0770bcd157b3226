/**
 * Group commit for directory fsyncs. Concurrent writers of a directory share one open descriptor. Changes that are
 * complete before an fsync begins share it; one that has already begun is never shared, because it may miss the change.
 */
import { dirname } from "node:path";
import { type FileOperations, ignoring, type OpenDirectory, openDirectory } from "../../files/durable.js";

/** An open directory. */
export interface Hold {
  /** Makes all name changes durable that were complete before the call. */
  sync(): Promise<void>;
  release(): Promise<void>;
}

export class DirectorySyncs {
  readonly #files: FileOperations;
  readonly #shared = new Map<string, SharedDirectory>();

  constructor(files: FileOperations) {
    this.#files = files;
  }

  /** DANGER: the path must mean the same directory until the release; see `Directories.within`. */
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
