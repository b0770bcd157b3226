/**
 * Blobs of one vault: files in a tree for each space that mirrors the paths, durably written and removed.
 *
 *   vault/gen-2/secrets/a/%42.sealed   the secret a/B; `paths/file-name.ts` encodes the names
 *   vault/gen-2/trash/…                as the secrets'; made when there is something in it, as is keys/
 */
import type { Dirent } from "node:fs";
import { dirname, join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { systemCode } from "../../errors.js";
import {
  type FileOperations,
  ignoring,
  isTempName,
  missingAsNull,
  moveIntoPlace,
  readFileBytes,
  UncertainChange,
  unlinkFile,
} from "../../files/durable.js";
import { blobFile, segmentOfDirectory, segmentOfFile } from "../../paths/file-name.js";
import { isSecretPath } from "../../paths/secret-path.js";
import { type Space, spaces } from "../secret-store.js";
import { Directories, DirectorySyncs, type Hold } from "./directories.js";
import { indexNames, type Names } from "./name-index.js";
import { Snapshot } from "./snapshot.js";

/** Attempts of a write whose directory another program removes. */
const maxAttempts = 16;

export class Tree {
  readonly names: Names;
  readonly #files: FileOperations;
  readonly #directory: string;
  readonly #isPending: (space: Space, path: string) => boolean;
  readonly #syncs: DirectorySyncs;
  readonly #directories: Directories;
  readonly #snapshots = new Set<Snapshot>();
  /** Files that are gone, but whose removal failed before it was durable. */
  readonly #unconfirmed = new Map<string, { readonly space: Space; readonly path: string }>();
  /** Files that are new, but whose write failed before it was durable. */
  readonly #doubtful = new Set<string>();
  /** Directories that were synced since the start: what a killed process left in them is durable. */
  readonly #flushed = new Set<string>();

  /**
   * @param directory of the vault
   * @param isPending whether a change of the path, later than the tree's, has been made in the names already
   */
  constructor(
    files: FileOperations,
    directory: string,
    names: Names,
    isPending: (space: Space, path: string) => boolean = () => false,
  ) {
    this.#files = files;
    this.#directory = directory;
    this.names = names;
    this.#isPending = isPending;
    this.#syncs = new DirectorySyncs(files);
    this.#directories = new Directories(files, this.#syncs, [directory, join(directory, "secrets")]);
  }

  /** Returns the blob's first bytes; null when there is none. */
  async read(space: Space, path: string, first: number): Promise<Bytes | null> {
    return this.names[space].has(path) ? readFileBytes(this.#files, this.#blobPath(space, path), first) : null;
  }

  async write(space: Space, path: string, blob: Bytes): Promise<void> {
    const directory = dirname(this.#blobPath(space, path));
    let isWritten = false;
    await this.#directories.enter(directory);
    try {
      for (let attempt = 1; !isWritten; attempt++)
        isWritten = await this.#replace(space, path, blob, attempt === maxAttempts);
    } finally {
      this.#directories.leave(directory);
      if (!isWritten && !this.names[space].has(path)) await this.#directories.prune(directory);
    }
  }

  /** Makes durable what `read` returns: after a failed fsync only a new file is certain to last. */
  async flush(space: Space, path: string): Promise<void> {
    const file = this.#blobPath(space, path);
    const blob = this.#doubtful.has(file) ? await this.read(space, path, Number.POSITIVE_INFINITY) : null;
    if (blob !== null) return this.write(space, path, blob);
    const directory = dirname(file);
    if (this.#flushed.has(directory)) return;
    await this.#directories.enter(directory);
    try {
      await this.#directories.ensure(directory);
      await this.#syncs.sync(directory); // a killed process leaves names that were never synced
    } finally {
      this.#directories.leave(directory);
    }
    this.#flushed.add(directory);
  }

  /** Makes removals durable that failed before they were. No other operation may run. */
  async flushRemovals(): Promise<void> {
    for (const { space, path } of [...this.#unconfirmed.values()]) await this.remove(space, path);
  }

  /** Whether the file may be gone, but the removal failed before it was durable. */
  isUnconfirmed(space: Space, path: string): boolean {
    return this.#unconfirmed.size > 0 && this.#unconfirmed.has(this.#blobPath(space, path));
  }

  /** Returns false when there is no file. */
  async remove(space: Space, path: string): Promise<boolean> {
    const file = this.#blobPath(space, path);
    const directory = dirname(file);
    await this.#directories.enter(directory);
    try {
      const existed = await missingAsNull(this.#unlink(space, path, file));
      this.#setName(space, path, false);
      if (existed !== true && this.#unconfirmed.has(file)) await this.#confirmGone(file);
    } finally {
      this.#directories.leave(directory);
    }
    await this.#directories.prune(directory);
    return this.#unconfirmed.delete(file);
  }

  /**
   * @param vaultPath where the snapshot is made
   * @param header returns the vault's current header, which opens the blobs of this moment
   */
  async snapshot(vaultPath: string, header: () => Uint8Array): Promise<Snapshot> {
    // DANGER: await nothing between listing the names and registering the snapshot, or writes in between are lost to it.
    const snapshot = new Snapshot(this.#files, vaultPath, this.#directory, this.names, header());
    this.#snapshots.add(snapshot);
    try {
      await snapshot.complete();
      return snapshot;
    } finally {
      this.#snapshots.delete(snapshot);
    }
  }

  /** Returns false when another program removed the directory, and a further attempt may succeed. */
  async #replace(space: Space, path: string, blob: Bytes, isLast: boolean): Promise<boolean> {
    const file = this.#blobPath(space, path);
    const directory = dirname(file);
    let held: Hold | undefined;
    try {
      await this.#directories.ensure(directory);
      held = await this.#syncs.hold(directory);
      await moveIntoPlace(this.#files, file, blob, 0o600, () => this.#keepOld(space, path));
      this.#doubtful.add(file);
      this.#setName(space, path, true);
      await held.sync();
      this.#doubtful.delete(file);
      this.#unconfirmed.delete(file);
      return true;
    } catch (error) {
      if (error instanceof UncertainChange) {
        this.#doubtful.add(file);
        this.#setName(space, path, true); // so that a removal looks for it
      }
      if (systemCode(error) !== "ENOENT" || isLast) throw error;
      this.#directories.forget(directory);
      return false;
    } finally {
      await held?.release();
    }
  }

  /** Returns false when there is no file. Opens the directory first: when that fails, nothing has happened yet. */
  async #unlink(space: Space, path: string, file: string): Promise<boolean> {
    const held = await this.#syncs.hold(dirname(file));
    try {
      await this.#keepOld(space, path);
      if (!(await unlinkFile(this.#files, file))) return false;
      this.#doubtful.delete(file);
      this.#setName(space, path, false);
      this.#unconfirmed.set(file, { space, path });
      await held.sync();
      return true;
    } catch (error) {
      if (error instanceof UncertainChange) this.#unconfirmed.set(file, { space, path });
      throw error;
    } finally {
      await held.release();
    }
  }

  /**
   * After a failed fsync, a later one does not report that the name is still on disk. So the name is created once more
   * and removed again: the next fsync covers that. It is a directory, hence no secret; a start removes a leftover.
   */
  async #confirmGone(file: string): Promise<void> {
    const made = await missingAsNull(
      this.#syncs.holding(dirname(file), async (directory) => {
        await ignoring(this.#files.mkdir(file, { mode: 0o700 }), "EEXIST");
        await this.#files.rmdir(file);
        await directory.sync();
        return true;
      }),
    );
    if (made === null) await this.#syncs.syncNearest(dirname(dirname(file)));
  }

  #setName(space: Space, path: string, isThere: boolean): void {
    if (this.#isPending(space, path)) return;
    if (isThere) this.names[space].add(path);
    else this.names[space].delete(path);
  }

  async #keepOld(space: Space, path: string): Promise<void> {
    for (const snapshot of this.#snapshots) await snapshot.keep(space, path);
  }

  #blobPath(space: Space, path: string): string {
    return blobFile(join(this.#directory, space), path);
  }
}

type FoundNames = {
  readonly names: Names;
  /** Number of foreign files and directories, which are left alone. */
  readonly foreignFiles: number;
};

type Scan = { readonly files: FileOperations; readonly paths: string[]; foreignFiles: number };

/** Larger directories are read piece by piece, which takes longer. */
const largeDirectoryBytes = 2 ** 20;

/**
 * Scans the trees for all blobs by their file names, without following links; removes temp files and empty directories that
 * a crash left.
 */
export async function scanTrees(files: FileOperations, directory: string): Promise<FoundNames> {
  const found: Partial<Record<Space, readonly string[]>> = {};
  let foreignFiles = 0;
  for (const space of spaces) {
    const scan: Scan = { files, paths: [], foreignFiles: 0 };
    const root = join(directory, space);
    if ((await missingAsNull(files.lstat(root))) !== null) await scanDirectory(scan, root, "");
    found[space] = scan.paths;
    foreignFiles += scan.foreignFiles;
  }
  return { names: indexNames(found), foreignFiles };
}

async function scanDirectory(scan: Scan, directory: string, prefix: string): Promise<void> {
  for await (const entry of await readEntries(scan, directory)) {
    if (entry.isDirectory()) await scanSubdirectory(scan, directory, entry, prefix);
    else if (entry.isFile() && isTempName(entry.name))
      await ignoring(scan.files.unlink(join(directory, entry.name)), "EROFS");
    else addFile(scan, entry, prefix);
  }
}

async function readEntries({ files }: Scan, directory: string): Promise<Iterable<Dirent> | AsyncIterable<Dirent>> {
  const { size } = await files.lstat(directory);
  if (size > largeDirectoryBytes) return files.opendir(directory, { bufferSize: 1024 });
  return files.readdir(directory, { withFileTypes: true });
}

async function scanSubdirectory(scan: Scan, parent: string, { name }: Dirent, prefix: string): Promise<void> {
  const { files, paths } = scan;
  const segment = segmentOfDirectory(name);
  const directory = join(parent, name);
  if (segment === null || !isSecretPath(prefix + segment)) {
    if (segmentOfFile(name) === null || !(await removeEmpty(files, directory))) scan.foreignFiles++; // see `Tree.#confirmGone`
    return;
  }
  const before = paths.length;
  await scanDirectory(scan, directory, `${prefix}${segment}/`);
  if (paths.length === before) await removeEmpty(files, directory);
}

/** Returns false when it is not empty, or the disk is read-only. */
function removeEmpty(files: FileOperations, directory: string): Promise<boolean> {
  return ignoring(files.rmdir(directory), "ENOTEMPTY", "EEXIST", "EROFS");
}

function addFile(scan: Scan, entry: Dirent, prefix: string): void {
  const segment = entry.isFile() ? segmentOfFile(entry.name) : null;
  const path = prefix + (segment ?? "");
  if (segment === null || !isSecretPath(path)) {
    scan.foreignFiles++;
    return;
  }
  scan.paths.push(path);
}
