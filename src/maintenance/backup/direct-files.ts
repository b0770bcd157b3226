/**
 * Files of a vault that is read in place of a snapshot: what a snapshot of it would hold, in the order of the names in the
 * archive. All names are in memory.
 */
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { systemFiles } from "../../files/durable.js";
import { blobFile } from "../../paths/file-name.js";
import { readJournals } from "../../storage/files/journal.js";
import { headerName, placeOfFile, spaceNames } from "./archive-names.js";
import { filesOf, namesIn, readAhead, type SnapshotFile } from "./snapshot-files.js";

export async function* directFiles(directory: string): AsyncGenerator<SnapshotFile> {
  const journals = await readJournals(systemFiles, directory);
  const changes = journals.flatMap((journal) => journal.changes);
  const changed = new Map(changes.map(({ space, path, blob }) => [blobFile(space, path), blob]));
  const read = async (name: string) =>
    fileOfBatch(name, changed) ?? { ...(await readAhead(join(directory, name))), name };
  yield* filesOf(await sortedNames(directory, changed), read);
}

/** By the names of files in the archive; null: removed. */
type Changed = ReadonlyMap<string, Bytes | null>;

/** Leftovers and foreign files are not in a backup. */
async function sortedNames(directory: string, changed: Changed): Promise<string[]> {
  const names: string[] = [];
  for await (const name of namesIn(directory, spaceNames)) {
    if (placeOfFile(name) !== null && !changed.has(name)) names.push(name);
  }
  for (const [name, blob] of changed) if (blob !== null) names.push(name);
  return [headerName, ...names].sort();
}

/** Of a batch that is committed, and that the disk did not let the server apply. */
function fileOfBatch(name: string, changed: Changed): SnapshotFile | null {
  const blob = changed.get(name) ?? null;
  return blob && { name, size: blob.length, modified: new Date(), content: [blob] };
}
