/** Plaintext file of an edit: in a private directory in memory, overwritten and removed on every way out. */
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { CommandFailure } from "../session/exit-codes.js";

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
    const scratch = new Scratch(mkdtempSync(join(placeFor(onDisk), "strongroom-")));
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

  /** Overwrites and removes every file in the directory: editors leave files of their own. */
  remove(): void {
    try {
      for (const entry of readdirSync(this.#directory, { recursive: true, withFileTypes: true })) {
        if (entry.isFile()) overwrite(join(entry.parentPath, entry.name));
      }
    } finally {
      rmSync(this.#directory, { recursive: true, force: true });
    }
  }
}

function placeFor(onDisk: boolean): string {
  const places = [process.env["XDG_RUNTIME_DIR"], "/dev/shm"];
  const found = places.find((place) => place && isInMemory(place));
  if (found) return found;
  if (onDisk) return tmpdir();
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

function overwrite(file: string): void {
  const length = readFileSync(file).fill(0).length;
  const descriptor = openSync(file, "r+");
  try {
    writeSync(descriptor, new Uint8Array(length), 0, length, 0);
  } finally {
    closeSync(descriptor);
  }
}
