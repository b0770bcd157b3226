/**
 * Plaintext file of an edit: in a private directory in memory, overwritten and removed on every way out; a later command
 * removes what a killed one has left.
 */
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Bytes } from "../../../../workers/protocol.js";
import { keepsNames } from "../../../client/ownership.js";
import { xdgDirectory } from "../../../config/xdg.js";
import { isAlive, startTime } from "../../../files/process-identity.js";
import { CommandFailure } from "../errors.js";
import type { Io } from "../io.js";

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
  static make(io: Io, bytes: Uint8Array, onDisk: boolean): Scratch {
    removeStaleScratch([io.temporaryDirectory()]); // slow to list on a disk with much in it: only edits look there
    const scratch = new Scratch(makeScratchDirectory(io, placeFor(io, onDisk)));
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

  /** Overwrites and removes the file, and files that the editor has left next to it. */
  remove(): void {
    removeScratchDirectory(this.#directory);
  }
}

function placeFor(io: Io, onDisk: boolean): string {
  const found = memoryPlaces(io).find(isInMemory);
  const diskPlace = io.temporaryDirectory();
  if (found !== undefined) return found;
  if (onDisk && keepsNames(statSync(diskPlace))) return diskPlace;
  if (onDisk)
    throw new CommandFailure(
      "unexpected",
      `other users can replace files in ${diskPlace}: set TMPDIR to a directory of your own`,
    );
  const problem = "there is no directory in memory for the temporary file (XDG_RUNTIME_DIR, /dev/shm)";
  throw new CommandFailure("unexpected", `${problem}: --on-disk allows one on disk, where traces may remain`);
}

/** Another user's directory, as after `su`, is none: its owner could put a directory of theirs in the place of ours. */
function isInMemory(place: string): boolean {
  try {
    return memoryTypes.has(statfsSync(place).type) && keepsNames(statSync(place));
  } catch {
    return false;
  }
}

const shape = /^strongroom-edit-(\d+)-(\d+)-(.+)-[A-Za-z0-9]{6}$/;

/** Places that may be in memory, the best first. */
export function memoryPlaces({ env }: Pick<Io, "env">): readonly string[] {
  const runtime = xdgDirectory(env, "XDG_RUNTIME_DIR");
  return runtime === undefined ? ["/dev/shm"] : [runtime, "/dev/shm"];
}

function makeScratchDirectory({ pid }: Io, place: string): string {
  const started = startTime(pid)?.replace(" ", "_") ?? "unknown";
  return mkdtempSync(join(place, `strongroom-edit-${pidNamespace()}-${pid}-${started}-`)); // mode 0700
}

/** Overwrites and removes every file in the directory: editors leave files of their own. */
function removeScratchDirectory(directory: string): void {
  try {
    for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
      if (entry.isFile()) overwrite(join(entry.parentPath, entry.name));
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Removes what killed processes of this user have left in these places. */
export function removeStaleScratch(places: readonly string[]): void {
  for (const place of new Set(places)) {
    try {
      for (const name of readdirSync(place)) if (isStale(name)) removeOwn(join(place, name));
    } catch {
      // cannot be listed, or another command was faster: not what the user asked for
    }
  }
}

function isStale(name: string): boolean {
  const [, namespace, pid, started = ""] = shape.exec(name) ?? [];
  if (namespace === undefined || namespace !== pidNamespace()) return false; // its pids say nothing here
  return !isAlive(Number(pid), started.replace("_", " "));
}

/** DANGER: in a directory for everyone, another user could name theirs like ours, with links to our files in it. */
function removeOwn(directory: string): void {
  const { uid, mode } = lstatSync(directory);
  const isOurs = (mode & 0o170777) === 0o040700 && uid === process.getuid?.();
  if (isOurs) removeScratchDirectory(directory);
}

/** Containers may share a directory, but not their pids. */
function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid").replace(/\D/g, "");
  } catch {
    return "0";
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
