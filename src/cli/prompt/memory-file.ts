/**
 * Owns the plaintext file of an edit: in a directory of its own that only the user can read, in memory where the system
 * has such a place, wiped and removed on every way out.
 */
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

/** statfs(2): the types of file systems whose files are in memory. */
const memoryTypes = new Set([0x01021994 /* tmpfs */, 0x858458f6 /* ramfs */]);

export class Scratch {
  readonly file: string;
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
    this.file = join(directory, "value");
  }

  /** @throws CommandFailure when there is no place in memory, and a disk was not allowed. */
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

  /** What is in the file now; in memory of ours. @throws CommandFailure aborted, when the editor has removed it */
  read(): Bytes {
    if (!existsSync(this.file)) throw new CommandFailure("aborted", "the editor removed the file: nothing was stored");
    const found = readFileSync(this.file);
    const bytes = new Uint8Array(new ArrayBuffer(found.length));
    bytes.set(found);
    found.fill(0);
    return bytes;
  }

  /** Editors leave files of their own: all that is there is overwritten, then removed. */
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
  const where = "no directory in memory is there for the temporary file (XDG_RUNTIME_DIR, /dev/shm)";
  throw new CommandFailure("unexpected", `${where}: --on-disk allows one on a disk, where traces may stay`);
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
