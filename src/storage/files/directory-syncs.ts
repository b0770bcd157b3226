/**
 * Owns syncing directories. Whoever changes a directory holds it open meanwhile, together with all others who do. Changes
 * that are complete when a sync begins share it: of writes that finish together, all but a few wait for one fsync instead
 * of making one each. Nobody shares a sync that has already begun, since it may have looked before their change.
 */
import { dirname } from "node:path";
import { type FileOperations, ignoring, type OpenDirectory, openDirectory } from "../../files/durable.js";

/** A directory that is held open. */
export interface Hold {
  /** Makes every change of names in the directory last that was complete before the call. */
  sync(): Promise<void>;
  release(): Promise<void>;
}

export class DirectorySyncs {
  readonly #files: FileOperations;
  readonly #shared = new Map<string, SharedDirectory>();

  constructor(files: FileOperations) {
    this.#files = files;
  }

  /** DANGER: the name must lead to the same directory until the release; see `Directories.within`. */
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

  /** Works while it holds the directory. */
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

  /** Where the directory is gone, what makes that last is a sync of the one that it was in. */
  async syncNearest(directory: string): Promise<void> {
    for (let at = directory; !(await ignoring(this.sync(at), "ENOENT")); at = dirname(at));
  }

  /** Whoever holds the directory from now on opens it anew: its name leads elsewhere. */
  forget(directory: string): void {
    this.#shared.delete(directory);
  }

  /** After a failure nobody new shares this one: only a directory that is opened anew could tell of the next. */
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
    await held.opened.then((handle) => handle.close()).catch(() => {}); // what was synced is synced
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
    // DANGER: after a failed fsync the system may report success for names that are lost. Who waited behind it fails too.
    this.#next ??= this.#running.then(() => this.#begin());
    return this.#next;
  }

  #begin(): Promise<void> {
    this.#next = null;
    const sync = this.opened
      .then((handle) => handle.sync())
      .then(() => {
        if (this.#running === sync) this.#running = null; // otherwise it goes on failing whoever still holds this one
      });
    this.#running = sync;
    return sync;
  }
}
