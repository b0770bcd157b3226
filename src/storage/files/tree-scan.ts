/** Mapping between secrets and files of the tree, and the scan for all secrets by their file names. */
import type { Dirent } from "node:fs";
import { join } from "node:path";
import { type FileOperations, ignoring, isTempName } from "../../files/durable.js";
import { directoryName, secretFileName, segmentOfDirectory, segmentOfFile } from "../../paths/file-name.js";
import { isSecretPath } from "../../paths/secret-path.js";

export type Tree = {
  readonly paths: string[];
  /** Number of foreign files and directories, which are left alone. */
  foreignFiles: number;
};

/** Returns the path of a secret's file. */
export function blobFile(root: string, path: string): string {
  const segments = path.split("/");
  const directories = segments.slice(0, -1).map(directoryName);
  return join(root, ...directories, secretFileName(segments.at(-1) ?? ""));
}

/** Scans the tree without following links; removes temp files and empty directories that a crash left. */
export async function readTree(files: FileOperations, root: string): Promise<Tree> {
  const tree: Tree = { paths: [], foreignFiles: 0 };
  await readDirectory(files, root, "", tree);
  return tree;
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

async function readDirectory(files: FileOperations, directory: string, prefix: string, tree: Tree): Promise<void> {
  for (const entry of await files.readdir(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) await readSubdirectory(files, directory, entry, prefix, tree);
    else if (entry.isFile() && isTempName(entry.name)) await cleaned(files.unlink(join(directory, entry.name)));
    else readFile(entry, prefix, tree);
  }
}

async function readSubdirectory(
  files: FileOperations,
  parent: string,
  { name }: Dirent,
  prefix: string,
  tree: Tree,
): Promise<void> {
  const segment = segmentOfDirectory(name);
  const directory = join(parent, name);
  if (segment === null || !isSecretPath(prefix + segment)) {
    if (segmentOfFile(name) === null || !(await removeEmpty(files, directory))) tree.foreignFiles++; // see BlobTree.#confirmGone
    return;
  }
  const before = tree.paths.length;
  await readDirectory(files, directory, `${prefix}${segment}/`, tree);
  if (tree.paths.length === before) await removeEmpty(files, directory);
}

/** Returns false when it is not empty, or the disk is read-only. */
function removeEmpty(files: FileOperations, directory: string): Promise<boolean> {
  return ignoring(files.rmdir(directory), "ENOTEMPTY", "EEXIST", "EROFS");
}

function readFile(entry: Dirent, prefix: string, tree: Tree): void {
  const segment = entry.isFile() ? segmentOfFile(entry.name) : null;
  const path = prefix + (segment ?? "");
  if (segment !== null && isSecretPath(path)) tree.paths.push(path);
  else tree.foreignFiles++;
}
