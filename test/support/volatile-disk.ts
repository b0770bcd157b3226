/**
 * A disk with a volatile and a durable state of each file and each directory, on a real one: a name is durable once its
 * directory is synced, the bytes of a file once the file is.
 */
import { constants, existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { systemCode } from "../../src/errors.js";
import { type FileOperations, type OpenFile, systemFiles } from "../../src/files/durable.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { lightFiles } from "../../tools/rig/light-files.js";

/** The store may remove an empty folder between two looks at it, in the background: then all is copied again. */
function copyWhole(directory: string, copy: string): void {
  for (;;) {
    try {
      copyTree(directory, copy);
      return;
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      rmSync(copy, { recursive: true, force: true });
    }
  }
}

export class VolatileDisk {
  readonly files: FileOperations;
  /** By name that has changed since its directory was synced: the bytes of the durable file; null: there is none. */
  readonly #durable = new Map<string, Buffer | null>();
  /** Files whose bytes were written and not synced. */
  readonly #unsynced = new Set<string>();

  constructor() {
    this.files = {
      ...lightFiles,
      open: (...args) => this.#open(...args),
      rename: (from, to) => this.#rename(from, to),
      link: async (from: string, to: string) => {
        this.#note(to);
        await systemFiles.link(from, to);
      },
      unlink: async (path: string) => {
        this.#note(path);
        await systemFiles.unlink(path);
      },
    } as FileOperations;
  }

  /** Copies the directory as it is after a power cut now. */
  copyAfterCut(directory: string, copy: string): void {
    copyWhole(directory, copy);
    const copiedPath = (path: string) => join(copy, relative(directory, path));
    for (const path of this.#unsynced) if (existsSync(copiedPath(path))) truncateSync(copiedPath(path));
    for (const [path, bytes] of this.#durable) {
      mkdirSync(dirname(copiedPath(path)), { recursive: true });
      if (bytes === null) rmSync(copiedPath(path), { force: true });
      else writeFileSync(copiedPath(path), bytes, { mode: 0o600 });
    }
  }

  /** Before a change of the name. */
  #note(path: string): void {
    if (!this.#durable.has(path)) this.#durable.set(path, existsSync(path) ? readFileSync(path) : null);
  }

  async #rename(from: string, to: string): Promise<void> {
    for (const path of [from, to]) this.#note(path);
    await systemFiles.rename(from, to);
    this.#unsynced.delete(to);
    if (this.#unsynced.delete(from)) this.#unsynced.add(to);
  }

  async #open(path: string, flags: number, mode?: number): Promise<OpenFile> {
    if ((flags & constants.O_CREAT) !== 0) this.#note(path);
    const handle = await systemFiles.open(path, flags, mode);
    if ((flags & constants.O_DIRECTORY) !== 0) return this.#withSync(handle, () => this.#directorySynced(path));
    if ((flags & (constants.O_WRONLY | constants.O_RDWR)) !== 0) this.#unsynced.add(path);
    return this.#withSync(handle, () => this.#unsynced.delete(path));
  }

  #withSync(handle: OpenFile, synced: () => unknown): OpenFile {
    const sync = handle.sync.bind(handle);
    return Object.assign(handle, { sync: () => sync().then(synced) });
  }

  #directorySynced(directory: string): void {
    for (const path of this.#durable.keys()) if (dirname(path) === directory) this.#durable.delete(path);
  }
}
