/**
 * Directories for plaintext files: created under the owning process's identity, and removed when a later command finds
 * that the process was killed before it could do so.
 */
import {
  closeSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isAlive, startTime } from "../../files/process-identity.js";

const shape = /^strongroom-edit-(\d+)-(\d+)-(.+)-[A-Za-z0-9]{6}$/;

/** On a disk: listing it may take 6 ms, so that only edits look for leftovers there. */
export const diskPlace = tmpdir();

/** Places that may be in memory, the best first. */
export function memoryPlaces(): readonly string[] {
  return [process.env["XDG_RUNTIME_DIR"], "/dev/shm"].filter(
    (place) => place !== undefined && place !== "",
  ) as string[];
}

export function makeScratchDirectory(place: string): string {
  const started = startTime(process.pid)?.replace(" ", "_") ?? "unknown";
  return mkdtempSync(join(place, `strongroom-edit-${pidNamespace()}-${process.pid}-${started}-`)); // mode 0700
}

/** Overwrites and removes every file in the directory: editors leave files of their own. */
export function removeScratchDirectory(directory: string): void {
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
  if (namespace !== pidNamespace()) return false; // its pids say nothing here
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
