/**
 * Files of a vault that is read in place of a snapshot: what a snapshot of it would hold, in the order of the names in the
 * archive. All names are in memory.
 */
import { join } from "node:path";
import { systemFiles } from "../../files/durable.js";
import { pendingChanges } from "../../storage/files/batch-tree.js";
import type { BatchChanges } from "../../storage/files/journal-format.js";
import { blobFile } from "../../storage/files/tree-scan.js";
import { headerName, pathOfFile, secretsName } from "./archive-names.js";
import { filesOf, namesIn, readAhead, type SnapshotFile } from "./snapshot-files.js";

export async function* directFiles(directory: string): AsyncGenerator<SnapshotFile> {
  const pending = await pendingChanges(systemFiles, directory);
  const changed = new Map([...pending].map(([path, blob]) => [blobFile(secretsName, path), blob]));
  const read = async (name: string) =>
    fileOfBatch(name, changed) ?? { ...(await readAhead(join(directory, name))), name };
  yield* filesOf(await sortedNames(directory, changed), read);
}

/** Leftovers and foreign files are not in a backup. */
async function sortedNames(directory: string, changed: BatchChanges): Promise<string[]> {
  const names: string[] = [];
  for await (const name of namesIn(directory, [`${secretsName}/`])) {
    if (pathOfFile(name) !== null && !changed.has(name)) names.push(name);
  }
  for (const [name, blob] of changed) if (blob !== null) names.push(name);
  return [headerName, ...names.sort()];
}

/** Of a batch that is committed, and that the disk did not let the server apply. */
function fileOfBatch(name: string, changed: BatchChanges): SnapshotFile | null {
  const blob = changed.get(name) ?? null;
  return blob && { name, size: blob.length, modified: new Date(), content: [blob] };
}
