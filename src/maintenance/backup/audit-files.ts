/** The audit log's files in an archive, and their way back into a home. */
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileNumbers } from "../../audit/files.js";
import { fileNameOf, fileNumberOf, longestFile } from "../../audit/format.js";
import { missingAsNull, moveFile, readFileBytes, syncDirectory, systemFiles } from "../../files/durable.js";
import { removeTree } from "../../files/remove-tree.js";
import { auditName } from "./archive-names.js";
import type { SnapshotFile } from "./snapshot-files.js";

export function isAuditFile(name: string): boolean {
  const [top, file = "", ...more] = name.split("/");
  return top === auditName && fileNumberOf(file) !== null && more.length === 0;
}

/** Yields the files as they are now; a server may continue to write, and remove the oldest. */
export async function* auditFiles(home: string): AsyncGenerator<SnapshotFile> {
  const directory = join(home, auditName);
  for (const file of await fileNumbers(systemFiles, directory)) {
    const path = join(directory, fileNameOf(file));
    const [bytes, found] = [await readFileBytes(systemFiles, path, longestFile), await missingAsNull(stat(path))];
    if (bytes === null || found === null) continue;
    yield { name: `${auditName}/${fileNameOf(file)}`, size: bytes.length, modified: found.mtime, content: [bytes] };
  }
}

/** Moves a restored audit log into the home; if that has one, which a start may have begun, the restored one is dropped. */
export async function placeAudit(restored: string, home: string, files = systemFiles): Promise<void> {
  const target = join(home, auditName);
  if ((await missingAsNull(stat(restored))) === null) return;
  if ((await missingAsNull(stat(target))) !== null) return removeTree(systemFiles, restored);
  await moveFile(files, restored, target);
  for (const directory of [home, dirname(restored)]) await syncDirectory(files, directory);
}
