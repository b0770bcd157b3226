/** Check of the vault's directory: its entries, which vault is current, and each vault with its header and blobs. */
import type { Dirent } from "node:fs";
import { lstat, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { tokenDocuments } from "../../access/stored-tokens.js";
import { ignoring, isTempName, makeDirectory, readFileBytes, replaceFile, systemFiles } from "../../files/durable.js";
import { documentFile, isDocumentFile } from "../../storage/files/documents.js";
import { auditName, isGenerationName, nameInPointer, restoredMark } from "../../storage/files/generations.js";
import { decodeJournal, isJournal, maxJournalBytes } from "../../storage/files/journal.js";
import { spaces } from "../../storage/secret-store.js";
import { isUnfinished } from "../../storage/unfinished-vault.js";
import { examineSpace } from "./check-blobs.js";
import { examineTokens } from "./check-records.js";
import type { Fix } from "./finding.js";
import {
  directoryEntries,
  examine,
  type Inspection,
  reading,
  reportLeftover,
  reportStray,
  reportTemp,
} from "./inspection.js";

const tokensFiles = tokenDocuments.map(documentFile);

export type VaultFacts = {
  /** Name of the current vault; null when there is none, or it is unknown. */
  readonly current: string | null;
  /** Names of the other vaults: kept by a forced init, or left by an interrupted one. */
  readonly kept: readonly string[];
  /** Number of secrets in the current vault. */
  readonly secrets: number;
};

/** `header` is null when there is no valid one. */
type FoundVault = { readonly name: string; readonly directory: string; readonly header: Bytes | null };

export async function examineVaults(inspection: Inspection): Promise<VaultFacts> {
  const { vault } = inspection.home;
  if ((await examine(inspection, vault, "directory")) === null) return { current: null, kept: [], secrets: 0 };
  const names = await generationNames(inspection);
  const vaults: FoundVault[] = [];
  for (const name of names) {
    const directory = join(vault, name);
    if ((await examine(inspection, directory, "directory")) === null) continue;
    vaults.push({ name, directory, header: await findHeader(inspection, directory) });
  }
  const current = await findCurrent(inspection, names, vaults);
  let secrets = 0;
  for (const each of vaults) {
    const count = await examineVault(inspection, each, each.name === current);
    if (each.name === current) secrets = count;
  }
  const kept = vaults.map(({ name }) => name).filter((name) => name !== current);
  return { current, kept, secrets };
}

/** Checks the directory's entries; returns the vaults among them. */
async function generationNames(inspection: Inspection): Promise<string[]> {
  const names: string[] = [];
  for (const entry of await directoryEntries(inspection, inspection.home.vault)) {
    const path = join(inspection.home.vault, entry.name);
    if (entry.isDirectory() && isGenerationName(entry.name)) names.push(entry.name);
    else if (entry.name === "server.pid") await examine(inspection, path, "file");
    else if (entry.name !== "current") await reportStray(inspection, path, entry);
  }
  return names.sort((a, b) => Number(a.slice(4)) - Number(b.slice(4)));
}

async function findCurrent(
  inspection: Inspection,
  names: readonly string[],
  vaults: readonly FoundVault[],
): Promise<string | null> {
  const path = join(inspection.home.vault, "current");
  const candidates = () => findCandidates(inspection, names, vaults);
  if ((await reading(inspection, path, () => lstat(path))) === null)
    return reportNoCurrent(inspection, path, await candidates());
  if ((await examine(inspection, path, "file")) === null) return null;
  const bytes = await reading(inspection, path, () => readFileBytes(systemFiles, path, 64));
  if (bytes === null) return null;
  const name = nameInPointer(bytes);
  if (vaults.some((vault) => vault.name === name)) return name;
  const message = isGenerationName(name) ? `it names ${name}, which does not exist` : "it names no vault";
  inspection.report({ code: "current-damaged", path, message, remedy: nameOne(await candidates()), fix: null });
  return null;
}

/** Names of vaults that may be the current one: as they are, or once they are repaired. */
type Candidates = { readonly usable: readonly string[]; readonly broken: readonly string[]; readonly filled: boolean };

async function findCandidates(
  inspection: Inspection,
  names: readonly string[],
  vaults: readonly FoundVault[],
): Promise<Candidates> {
  const usable = vaults.filter(({ header }) => header !== null).map(({ name }) => name);
  const broken: string[] = [];
  let filled = false;
  for (const name of names) {
    const directory = join(inspection.home.vault, name);
    const secrets = join(directory, "secrets");
    for (const space of spaces)
      if ((await directoryEntries(inspection, join(directory, space))).length > 0) filled = true;
    if (usable.includes(name)) continue;
    const examined = vaults.some((vault) => vault.name === name);
    if (!examined || !(await isHusk(inspection, await directoryEntries(inspection, directory), secrets)))
      broken.push(name);
  }
  return { usable, broken, filled };
}

/** No finding before the first init: an interrupted one leaves an empty vault. */
function reportNoCurrent(inspection: Inspection, path: string, candidates: Candidates): null {
  const { usable, broken, filled } = candidates;
  if (!filled && broken.length === 0) return null;
  const message = "it is missing, so nothing says which vault is the current one";
  const [only, another] = usable;
  const certain = only !== undefined && another === undefined && broken.length === 0;
  const fix = certain ? nameInCurrent(path, only) : null;
  inspection.report({ code: "current-missing", path, message, remedy: nameOne(candidates), fix });
  return null;
}

function nameInCurrent(path: string, name: string): Fix {
  const run = () => replaceFile(systemFiles, path, Buffer.from(`${name}\n`));
  return { did: `wrote ${name} into it, the only vault`, whileServed: false, run };
}

function nameOne({ usable, broken }: Candidates): string {
  const fixed = broken.map((name) => `${name} once its header is restored from a backup`);
  if (usable.length === 0 && broken.length === 0) return "stop the server, and restore the vault from a backup";
  return `stop the server, and write the name of the current vault into it: ${[...usable, ...fixed].join(", or ")}, and a newline`;
}

/** Returns the number of its secrets. */
async function examineVault(inspection: Inspection, vault: FoundVault, isCurrent: boolean): Promise<number> {
  const { name, directory, header } = vault;
  const secrets = join(directory, "secrets");
  const entries = await checkEntries(inspection, directory, isCurrent);
  const names = entries.map((entry) => entry.name);
  if (!names.includes("header.json")) {
    if (!isCurrent && (await isHusk(inspection, entries, secrets))) return reportHusk(inspection, directory, secrets);
    reportNoHeader(inspection, directory);
  }
  if (isCurrent && header !== null) await inspection.keys.unlock(name, header);
  await examineTokens(inspection, directory, inspection.keys.opened === name);
  if (!names.includes("secrets")) reportNoSecrets(inspection, secrets);
  const counts = { secrets: 0, trash: 0, keys: 0 };
  for (const space of spaces.filter((each) => names.includes(each))) {
    const root = join(directory, space);
    if ((await examine(inspection, root, "directory")) === null) continue;
    counts[space] = (await examineSpace(inspection, space, root, inspection.keys.opened === name)).length;
  }
  return counts.secrets;
}

/** Reports foreign entries; returns all entries of the directory. */
async function checkEntries(inspection: Inspection, directory: string, isCurrent: boolean): Promise<readonly Dirent[]> {
  const entries = await directoryEntries(inspection, directory);
  const known = knownNames(entries);
  for (const entry of entries) {
    const path = join(directory, entry.name);
    if (known.includes(entry.name)) continue;
    if (isJournal(entry.name)) await examineJournal(inspection, path);
    else if (isDocumentFile(entry.name)) await examine(inspection, path, "file");
    else if (entry.name !== restoredMark || !entry.isFile()) await reportStray(inspection, path, entry);
    else if (isCurrent) await reportTemp(inspection, path);
  }
  return entries;
}

/** The backup's audit log is in a restored vault until that is current: see `finishRestored`. */
function knownNames(entries: readonly Dirent[]): readonly string[] {
  const isRestored = entries.some(({ name }) => name === restoredMark);
  return ["header.json", ...tokensFiles, ...spaces, ...(isRestored ? [auditName] : [])];
}

/** The next start applies it. */
async function examineJournal(inspection: Inspection, path: string): Promise<void> {
  if ((await examine(inspection, path, "file")) === null) return;
  const bytes = await reading(inspection, path, () => readFileBytes(systemFiles, path, maxJournalBytes));
  if (bytes === null || decodeJournal(bytes) !== null) return;
  const message =
    "it is damaged, or was written by a later version: a batch of changes cannot be completed, and the server does not start";
  const remedy = "restore the vault from a backup, or move it away; the batch may then be incomplete";
  inspection.report({ code: "journal-damaged", path, message, remedy, fix: null });
}

/** Whether it is what an init leaves that was interrupted before it wrote the header: nothing is lost with it. */
async function isHusk(inspection: Inspection, entries: readonly Dirent[], secrets: string): Promise<boolean> {
  if (entries.some(({ name }) => name !== "secrets" && !isTempName(name))) return false;
  return (await directoryEntries(inspection, secrets)).length === 0;
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

function reportNoSecrets(inspection: Inspection, secrets: string): void {
  inspection.report({
    code: "secrets-missing",
    path: secrets,
    message: "it is missing; if the vault had secrets, they are gone",
    remedy: "restore it from a backup; if the vault was empty, start the server, which creates it",
    fix: { did: "created an empty one", whileServed: false, run: () => makeDirectory(systemFiles, secrets) },
  });
}

const fromBackup = "restore it from a backup of the same vault";

/** Upper bound for reading a header file, in bytes. */
const maxHeaderBytes = 16_384;

/** Returns the bytes of a valid header; null when there is none. */
async function findHeader(inspection: Inspection, directory: string): Promise<Bytes | null> {
  const path = join(directory, "header.json");
  if ((await examine(inspection, path, "file")) === null) return null;
  const bytes = await reading(inspection, path, () => readFileBytes(systemFiles, path, maxHeaderBytes));
  if (bytes === null || (await inspection.keys.understands(bytes))) return bytes;
  inspection.report({ code: "header-damaged", path, ...whatIsWrong(bytes), fix: null });
  return null;
}

/** Returns the problem of an invalid header, and its remedy. */
export function whatIsWrong(header: Bytes): { readonly message: string; readonly remedy: string } {
  if (isUnfinished(header)) {
    const message = "a migration or a restore into this vault has not ended: it cannot be used yet";
    return { message, remedy: "run the same command again, which finishes it" };
  }
  const message = "it is damaged, or was written by a later version: the vault cannot be unlocked";
  return { message, remedy: fromBackup };
}

function reportNoHeader(inspection: Inspection, directory: string): void {
  const message = "it is missing: the vault cannot be unlocked";
  inspection.report({
    code: "header-missing",
    path: join(directory, "header.json"),
    message,
    remedy: fromBackup,
    fix: null,
  });
}
