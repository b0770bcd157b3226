/** Check of one vault: its header, the directory of its secrets, and the secrets. */
import type { Dirent } from "node:fs";
import { rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { documentName } from "../../access/token-record.js";
import { ignoring, isTempName, makeDirectory, readFileBytes, systemFiles } from "../../files/durable.js";
import { documentFile, isDocumentFile } from "../../storage/files/documents.js";
import { restoredMark } from "../../storage/files/generations.js";
import { decodeJournal, isJournal, maxJournalBytes } from "../../storage/files/journal.js";
import { examineBlobs } from "./check-blobs.js";
import { reportNoHeader } from "./check-header.js";
import { examineTokens } from "./check-tokens.js";
import { walkTree } from "./check-tree.js";
import { entriesOf, examine, type Inspection, reading } from "./inspection.js";
import { reportLeftover, reportStray, reportTemp } from "./stray-files.js";

const tokensFile = documentFile(documentName);

/** `header` is null when there is no valid one. */
export type FoundVault = { readonly name: string; readonly directory: string; readonly header: Bytes | null };

/** Returns the number of its secrets. */
export async function examineVault(inspection: Inspection, vault: FoundVault, isCurrent: boolean): Promise<number> {
  const { name, directory, header } = vault;
  const secrets = join(directory, "secrets");
  const entries = await checkEntries(inspection, directory, isCurrent);
  const names = entries.map((entry) => entry.name);
  if (!names.includes("header.json")) {
    if (!isCurrent && (await isHusk(inspection, entries, secrets))) return reportHusk(inspection, directory, secrets);
    reportNoHeader(inspection, directory);
  }
  if (isCurrent && header !== null) await inspection.keys.unlock(name, header);
  await examineTokens(inspection, join(directory, tokensFile), inspection.keys.opened === name);
  if (!names.includes("secrets")) return reportNoSecrets(inspection, secrets);
  if ((await examine(inspection, secrets, "directory")) === null) return 0;
  const paths = await walkTree(inspection, secrets);
  await examineBlobs(inspection, secrets, paths, inspection.keys.opened === name);
  return paths.length;
}

/** Reports foreign entries; returns all entries of the directory. */
async function checkEntries(inspection: Inspection, directory: string, isCurrent: boolean): Promise<readonly Dirent[]> {
  const entries = await entriesOf(inspection, directory);
  for (const entry of entries) {
    const path = join(directory, entry.name);
    if (["header.json", "secrets", tokensFile].includes(entry.name)) continue;
    if (isJournal(entry.name)) await examineJournal(inspection, path);
    else if (isDocumentFile(entry.name)) await examine(inspection, path, "file");
    else if (entry.name !== restoredMark || !entry.isFile()) await reportStray(inspection, path, entry);
    else if (isCurrent) await reportTemp(inspection, path);
  }
  return entries;
}

/** The next start applies it. */
async function examineJournal(inspection: Inspection, path: string): Promise<void> {
  if ((await examine(inspection, path, "file")) === null) return;
  const bytes = await reading(inspection, path, () => readFileBytes(systemFiles, path, maxJournalBytes));
  if (bytes === null || decodeJournal(bytes) !== null) return;
  const message = "it is damaged: a batch of changes cannot be completed, and the server does not start";
  const remedy = "restore the vault from a backup, or move it away; the batch may then be incomplete";
  inspection.report({ code: "journal-damaged", path, message, remedy, fix: null });
}

/** Whether it is what an init leaves that was interrupted before it wrote the header: nothing is lost with it. */
export async function isHusk(inspection: Inspection, entries: readonly Dirent[], secrets: string): Promise<boolean> {
  if (entries.some(({ name }) => name !== "secrets" && !isTempName(name))) return false;
  return (await entriesOf(inspection, secrets)).length === 0;
}

async function reportHusk(inspection: Inspection, directory: string, secrets: string): Promise<number> {
  const remove = async () => {
    await ignoring(rmdir(secrets), "ENOENT");
    await rmdir(directory);
  };
  const message = "an interrupted init left it; it is unused";
  await reportLeftover(inspection, { code: "stray-directory", path: directory, message }, remove);
  return 0;
}

function reportNoSecrets(inspection: Inspection, secrets: string): number {
  inspection.report({
    code: "secrets-missing",
    path: secrets,
    message: "it is missing; if the vault had secrets, they are gone",
    remedy: "restore it from a backup; if the vault was empty, start the server, which creates it",
    fix: { did: "created an empty one", whileServed: false, run: () => makeDirectory(systemFiles, secrets) },
  });
  return 0;
}
