/**
 * Owns syncing directories. Changes that are complete when a sync begins share it: of writes that finish together, all
 * but a few wait for one fsync instead of making one each. Nobody shares a sync that has already begun, since it may
 * have looked at the directory before their change.
 */
import { dirname } from "node:path";
import { type FileOperations, ignoring, syncDirectory } from "./durable.js";

export class DirectorySyncs {
  readonly #files: FileOperations;
  readonly #running = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<void>>();

  constructor(files: FileOperations) {
    this.#files = files;
  }

  /** Makes every change of names in the directory last that was complete before the call. */
  sync(directory: string): Promise<void> {
    const running = this.#running.get(directory);
    if (running === undefined) return this.#begin(directory);
    let next = this.#next.get(directory);
    if (next === undefined) {
      const begin = () => this.#begin(directory);
      next = running.then(begin, begin);
      this.#next.set(directory, next);
    }
    return next;
  }

  /** Where the directory is gone, what makes that last is a sync of the one that it was in. */
  async syncNearest(directory: string): Promise<void> {
    for (let at = directory; !(await ignoring(this.sync(at), "ENOENT")); at = dirname(at));
  }

  #begin(directory: string): Promise<void> {
    this.#next.delete(directory);
    const sync = syncDirectory(this.#files, directory).finally(() => {
      if (this.#running.get(directory) === sync) this.#running.delete(directory);
    });
    this.#running.set(directory, sync);
    return sync;
  }
}
