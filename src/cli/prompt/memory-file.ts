/** Plaintext file of an edit: in a private directory in memory, overwritten and removed on every way out. */
import { existsSync, readFileSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { CommandFailure } from "../session/exit-codes.js";
import {
  diskPlace,
  makeScratchDirectory,
  memoryPlaces,
  removeScratchDirectory,
  removeStaleScratch,
} from "./scratch-directories.js";

/** statfs(2): types of file systems that keep files in memory. */
const memoryTypes = new Set([0x01021994 /* tmpfs */, 0x858458f6 /* ramfs */]);

export class Scratch {
  readonly file: string;
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
    this.file = join(directory, "value");
  }

  /** @throws CommandFailure unexpected, when no directory is in memory and a disk is not allowed */
  static make(bytes: Uint8Array, onDisk: boolean): Scratch {
    removeStaleScratch([diskPlace]);
    const scratch = new Scratch(makeScratchDirectory(placeFor(onDisk)));
    try {
      writeFileSync(scratch.file, bytes, { mode: 0o600, flag: "wx" });
      return scratch;
    } catch (error) {
      scratch.remove();
      throw error;
    }
  }

  /** Returns the file's content, which the caller wipes. @throws CommandFailure aborted, when the file is gone */
  read(): Bytes {
    if (!existsSync(this.file)) throw new CommandFailure("aborted", "the editor removed the file: nothing was stored");
    const found = readFileSync(this.file);
    const bytes = new Uint8Array(new ArrayBuffer(found.length));
    bytes.set(found);
    found.fill(0);
    return bytes;
  }

  /** Overwrites and removes the file, and those that the editor has left beside it. */
  remove(): void {
    removeScratchDirectory(this.#directory);
  }
}

function placeFor(onDisk: boolean): string {
  const found = memoryPlaces().find(isInMemory);
  if (found !== undefined) return found;
  if (onDisk) return diskPlace;
  const problem = "there is no directory in memory for the temporary file (XDG_RUNTIME_DIR, /dev/shm)";
  throw new CommandFailure("unexpected", `${problem}: --on-disk allows one on disk, where traces may remain`);
}

function isInMemory(place: string): boolean {
  try {
    return memoryTypes.has(statfsSync(place).type);
  } catch {
    return false;
  }
}
