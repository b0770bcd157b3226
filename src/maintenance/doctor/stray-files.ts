/** Leftovers of crashes and interrupted commands, reported and removed only when nothing can still use them. */
import type { Dirent } from "node:fs";
import { lstat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { isTempName, missingAsNull, systemFiles } from "../../files/durable.js";
import { removeTree } from "../../files/remove-tree.js";
import { findHolder } from "../../storage/files/claim.js";
import type { Finding } from "./finding.js";
import { entriesOf, type Inspection, reportWrongKind } from "./inspection.js";

/** Work directories of backup and restore. */
const workName = /^(?:snapshot|restore)-[0-9a-f]{16}$/;

/** Milliseconds; younger ones may be in use. */
const ageBesideServer = { work: 3600 * 1000, rest: 60 * 1000 };

/** Reports an entry that does not belong in the vault's directory or beside a header. */
export async function reportStray(inspection: Inspection, path: string, entry: Dirent): Promise<void> {
  if (entry.isDirectory() && workName.test(entry.name)) return reportOldWork(inspection, path);
  if (entry.isFile() && isTempName(entry.name)) return reportTemp(inspection, path);
  if (!entry.isFile() && !entry.isDirectory()) return reportWrongKind(inspection, path, entry.isSymbolicLink());
  const remedy = "see what it is, and move it away";
  inspection.report({
    code: "foreign-file",
    path,
    message: "it is not a file or directory of Strongroom",
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
  const message = "an interrupted write left it; it is unused and harmless";
  await reportLeftover(inspection, { code: "stray-temp", path: file, message }, () => unlink(file));
}

async function reportOldWork(inspection: Inspection, path: string): Promise<void> {
  if ((await findHolder(path)) !== null) return; // a backup is reading it
  const message = "an interrupted backup or restore left it; it is unused";
  const remove = () => removeTree(systemFiles, path);
  await reportLeftover(inspection, { code: "stray-directory", path, message }, remove, ageBesideServer.work);
}

/** Reports a leftover unless it may be in use: beside a server, anything recently changed may be. */
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
