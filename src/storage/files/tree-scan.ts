/** Mapping between secrets and files of the tree, and the scan for all secrets by their file names. */
import type { Dirent } from "node:fs";
import { join } from "node:path";
import { type FileOperations, ignoring, isTempName } from "../../files/durable.js";
import { directoryName, secretFileName, segmentOfDirectory, segmentOfFile } from "../../paths/file-name.js";
import { isSecretPath } from "../../paths/secret-path.js";
import { NameBudget } from "./name-budget.js";

export type Tree = {
  readonly paths: string[];
  /** Number of foreign files and directories, which are left alone. */
  foreignFiles: number;
};

type Scan = Tree & { readonly files: FileOperations; readonly budget: NameBudget };

/** Larger directories are read piece by piece, which takes three times as long. */
const largeDirectoryBytes = 2 ** 20;

/** Returns the path of a secret's file. */
export function blobFile(root: string, path: string): string {
  const segments = path.split("/");
  const directories = segments.slice(0, -1).map(directoryName);
  return join(root, ...directories, secretFileName(segments.at(-1) ?? ""));
}

/**
 * Scans the tree without following links; removes temp files and empty directories that a crash left.
 * @throws StartError when the names do not fit into the heap.
 */
export async function readTree(files: FileOperations, root: string): Promise<Tree> {
  const scan: Scan = { paths: [], foreignFiles: 0, files, budget: new NameBudget() };
  await readDirectory(scan, root, "");
  return scan;
}

/** Removes the temp files that a crash left in one directory. */
export async function removeTemps(files: FileOperations, directory: string): Promise<void> {
  for (const entry of await files.readdir(directory, { withFileTypes: true })) {
    if (entry.isFile() && isTempName(entry.name)) await cleaned(files.unlink(join(directory, entry.name)));
  }
}

/** Awaits the removal of a leftover; on a read-only disk it stays, and is harmless. */
export async function cleaned(removal: Promise<void>): Promise<void> {
  await ignoring(removal, "EROFS");
}

async function readDirectory(scan: Scan, directory: string, prefix: string): Promise<void> {
  for await (const entry of await entriesOf(scan, directory)) {
    if (entry.isDirectory()) await readSubdirectory(scan, directory, entry, prefix);
    else if (entry.isFile() && isTempName(entry.name)) await cleaned(scan.files.unlink(join(directory, entry.name)));
    else readFile(scan, entry, prefix);
  }
}

async function entriesOf({ files }: Scan, directory: string): Promise<Iterable<Dirent> | AsyncIterable<Dirent>> {
  const { size } = await files.lstat(directory);
  if (size > largeDirectoryBytes) return files.opendir(directory, { bufferSize: 1024 });
  return files.readdir(directory, { withFileTypes: true });
}

async function readSubdirectory(scan: Scan, parent: string, { name }: Dirent, prefix: string): Promise<void> {
  const { files, paths } = scan;
  const segment = segmentOfDirectory(name);
  const directory = join(parent, name);
  if (segment === null || !isSecretPath(prefix + segment)) {
    if (segmentOfFile(name) === null || !(await removeEmpty(files, directory))) scan.foreignFiles++; // see BlobTree.#confirmGone
    return;
  }
  const before = paths.length;
  await readDirectory(scan, directory, `${prefix}${segment}/`);
  if (paths.length === before) await removeEmpty(files, directory);
}

/** Returns false when it is not empty, or the disk is read-only. */
function removeEmpty(files: FileOperations, directory: string): Promise<boolean> {
  return ignoring(files.rmdir(directory), "ENOTEMPTY", "EEXIST", "EROFS");
}

function readFile(scan: Scan, entry: Dirent, prefix: string): void {
  const segment = entry.isFile() ? segmentOfFile(entry.name) : null;
  const path = prefix + (segment ?? "");
  if (segment === null || !isSecretPath(path)) {
    scan.foreignFiles++;
    return;
  }
  scan.budget.spend(path);
  scan.paths.push(path);
}
