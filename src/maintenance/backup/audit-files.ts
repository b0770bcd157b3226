/** The audit log's files in an archive. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { fileNumbers } from "../../audit/files.js";
import { fileNameOf, fileNumberOf, longestFile } from "../../audit/format.js";
import { missingAsNull, readFileBytes, systemFiles } from "../../files/durable.js";
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
