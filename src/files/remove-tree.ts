/** Removal of a directory tree in bounded memory: Node's own `rm` begins all removals of a directory at once. */
import { join } from "node:path";
import { type FileOperations, ignoring, missingAsNull } from "./durable.js";

const removalsAtOnce = 64;

/** Removes a directory and all that is in it, and follows no links. A missing directory is no error. */
export async function removeTree(files: FileOperations, directory: string): Promise<void> {
  const entries = (await missingAsNull(files.readdir(directory, { withFileTypes: true }))) ?? [];
  const plain: string[] = [];
  for (const entry of entries) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await removeTree(files, path);
    else plain.push(path);
  }
  for (let at = 0; at < plain.length; at += removalsAtOnce) {
    await Promise.all(plain.slice(at, at + removalsAtOnce).map((path) => ignoring(files.unlink(path), "ENOENT")));
  }
  await missingAsNull(files.rmdir(directory));
}
