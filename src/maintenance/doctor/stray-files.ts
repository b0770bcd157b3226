/** Owns what a crash or a broken-off command leaves behind, and that it is removed only while nobody may need it. */
import type { Dirent } from "node:fs";
import { lstat, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { isTempName, missingAsNull } from "../../files/durable.js";
import type { Finding } from "./finding.js";
import { entriesOf, type Inspection, reportOddKind } from "./inspection.js";

/** A backup or restore makes them, and removes them in the end. */
const workName = /^(?:snapshot|restore)-[0-9a-f]{16}$/;

/** In milliseconds; younger ones may be at work. */
const ageBesideServer = { work: 3600 * 1000, rest: 60 * 1000 };

/** What stands in the vault's directory, or beside a header, and is none of what belongs there. */
export async function reportStray(inspection: Inspection, path: string, entry: Dirent): Promise<void> {
  if (entry.isDirectory() && workName.test(entry.name)) return reportOldWork(inspection, path);
  if (entry.isFile() && isTempName(entry.name)) return reportTemp(inspection, path);
  if (!entry.isFile() && !entry.isDirectory()) return reportOddKind(inspection, path, entry.isSymbolicLink());
  const remedy = "see what it is, and move it away";
  inspection.report({
    code: "foreign-file",
    path,
    message: "it is not a file or directory of ours",
    remedy,
    fix: null,
  });
}

export async function reportTemps(inspection: Inspection, directory: string): Promise<void> {
  for (const entry of await entriesOf(inspection, directory)) {
    if (entry.isFile() && isTempName(entry.name)) await reportTemp(inspection, join(directory, entry.name));
  }
}

export async function reportTemp(inspection: Inspection, file: string): Promise<void> {
  const message = "a write that was broken off has left it; nothing uses it";
  await reportLeftover(inspection, { code: "stray-temp", path: file, message }, () => unlink(file));
}

async function reportOldWork(inspection: Inspection, path: string): Promise<void> {
  const message = "a backup or restore that was broken off has left it; nothing uses it";
  const remove = () => rm(path, { recursive: true, force: true });
  await reportLeftover(inspection, { code: "stray-directory", path, message }, remove, ageBesideServer.work);
}

/** Reports it unless it may be at work: beside a server, whatever has just been made or changed may be. */
export async function reportLeftover(
  inspection: Inspection,
  what: Pick<Finding, "code" | "path" | "message">,
  remove: () => Promise<unknown>,
  ageBeside = ageBesideServer.rest,
): Promise<void> {
  const found = await missingAsNull(lstat(what.path));
  if (found === null || (inspection.served && inspection.now - found.mtimeMs < ageBeside)) return;
  const fix = { did: "removed it", whileServed: false, run: remove };
  inspection.report({ ...what, remedy: "remove it while no server runs", fix });
}
