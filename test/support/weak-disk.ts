/** A disk whose power can be cut, in memory: what was not synced is gone, and an fsync can fail. */
import { constants, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { lightFiles } from "../../tools/rig/light-files.js";

/** `lost`: the fsync fails, and no later one covers the names; `late`: the process is killed before it, a later one does. */
export type Fault = "lost" | "late";

type Remove = (path: string) => Promise<void>;

/** A disk on which the next fsync of a directory can go wrong; a power cut leaves what was under each name when last synced. */
export class WeakDisk {
  readonly files: FileOperations;
  /** Null: nothing was there. */
  readonly #lasting = new Map<string, Buffer | null>();
  readonly #changed = new Map<string, Buffer | null>();
  readonly #due = new Map<string, Fault>();

  constructor() {
    const open = async (...[path, flags, mode]: Parameters<FileOperations["open"]>) => {
      const handle = await systemFiles.open(path, flags, mode);
      if ((flags & constants.O_DIRECTORY) === 0) return handle;
      return Object.assign(handle, { sync: async () => this.#sync(path) });
    };
    const rename = async (from: string, to: string) => {
      const bytes = readFileSync(from);
      await systemFiles.rename(from, to);
      this.#changed.set(to, bytes);
    };
    const removing = (remove: Remove) => async (path: string) => {
      await remove(path);
      this.#changed.set(path, null);
    };
    const [unlink, rmdir] = [removing(systemFiles.unlink as Remove), removing(systemFiles.rmdir as Remove)];
    this.files = { ...lightFiles, open, rename, unlink, rmdir } as FileOperations;
  }

  failNextSync(directory: string, fault: Fault): void {
    this.#due.set(directory, fault);
  }

  /** Whether no fault is still to come. */
  get hasFailed(): boolean {
    return this.#due.size === 0;
  }

  /** Returns what brings back the names as they are now on the disk. */
  cutPower(): () => void {
    const lasting = [...this.#lasting];
    return () => {
      for (const [path, bytes] of lasting) {
        mkdirSync(dirname(path), { recursive: true });
        if (bytes !== null) writeFileSync(path, bytes);
        else rmSync(path, { force: true, recursive: true });
      }
    };
  }

  #sync(directory: string): void {
    const fault = this.#due.get(directory);
    this.#due.delete(directory);
    for (const [path, bytes] of this.#changed) {
      if (dirname(path) !== directory || fault === "late") continue;
      this.#changed.delete(path);
      if (fault === undefined) this.#lasting.set(path, bytes);
    }
    if (fault !== undefined) throw Object.assign(new Error("EIO"), { code: "EIO" });
  }
}
