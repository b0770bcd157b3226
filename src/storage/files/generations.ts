/**
 * Vaults of one home: a directory each (a generation), and one small file that names the current one.
 *
 *   vault/current            "gen-2\n": replaced atomically, and with it the vault in a forced init
 *   vault/gen-1/…            an earlier vault, kept whole under its old passphrase
 *   vault/gen-2/header.json  the header, written before `current` names it
 *   vault/gen-2/secrets/…    the tree of blobs; trash/… and keys/… where there are any
 *   vault/gen-2/restored     while a restore makes it current: it is complete, and may be made current by anyone
 *   vault/gen-2/audit/…      until then: the backup's audit log, whose place is the home
 */
import { basename, dirname, join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { StartError } from "../../errors.js";
import {
  type FileOperations,
  ignoring,
  missingAsNull,
  moveFile,
  moveIntoPlace,
  readFileBytes,
  removeFile,
  removeTemps,
  replaceFile,
  syncDirectory,
  UncertainChange,
  unlinkFile,
} from "../../files/durable.js";
import { removeTree } from "../../files/remove-tree.js";
import { type NamedDocument, spaces } from "../secret-store.js";
import { isUnfinished } from "../unfinished-vault.js";
import { documentFile } from "./documents.js";

const generationName = /^gen-[1-9][0-9]{0,8}$/;
const maxHeaderBytes = 16_384;

export const headerFile = "header.json";

export function isGenerationName(name: string): boolean {
  return generationName.test(name);
}

/** Returns the name in `current`. The newline may be missing when a person wrote it. */
export function nameInPointer(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1").replace(/\n$/, "");
}

export type Generation = { readonly directory: string; readonly header: Bytes };

/** Returns the current vault; null before the first init. */
export async function currentGeneration(files: FileOperations, vault: string): Promise<Generation | null> {
  const bytes = await readFileBytes(files, join(vault, "current"), 64);
  if (bytes === null) {
    // A vault with secrets that `current` does not name is not "no vault": a new init would hide them.
    if (await holdSecrets(files, vault)) throw damagedPointer(vault);
    return null;
  }
  const name = nameInPointer(bytes);
  if (!isGenerationName(name)) throw damagedPointer(vault);
  const directory = join(vault, name);
  for (const path of [directory, ...spaces.map((space) => join(directory, space))]) await refuseForeign(files, path);
  return { directory, header: await readHeader(files, directory) };
}

/**
 * Writes a new, empty vault beside the current one, and then makes it current. `before`: the directory of the current one.
 * @throws UncertainSwitch; after any other error the old vault is current.
 */
export async function switchGeneration(
  files: FileOperations,
  vault: string,
  header: Bytes,
  before: string | null,
  documents: readonly NamedDocument[] = [],
): Promise<Generation> {
  const name = await nextName(files, vault);
  const next = { directory: join(vault, name), header };
  let mayBeCurrent = false;
  try {
    await writeGeneration(files, vault, next, documents);
    await moveIntoPlace(files, join(vault, "current"), Buffer.from(`${name}\n`)).catch((error: unknown) => {
      mayBeCurrent = error instanceof UncertainChange;
      throw error;
    });
    mayBeCurrent = true;
    await syncDirectory(files, vault);
    return next;
  } catch (error) {
    if (mayBeCurrent) await undoSwitch(files, vault, before, error);
    await removeGeneration(files, next.directory, documents).catch(() => {}); // a leftover is not current, and harmless
    throw error;
  }
}

/** Makes a directory, whose files are already durable, the first vault of a home that has none. */
export async function makeCurrent(files: FileOperations, vault: string, directory: string): Promise<void> {
  const name = await nextName(files, vault); // an interrupted init may have left one
  await moveFile(files, directory, join(vault, name));
  let isPlaced = false;
  try {
    await syncDirectory(files, vault);
    isPlaced = await placeAudit(files, join(vault, name));
    await replaceFile(files, join(vault, "current"), Buffer.from(`${name}\n`));
  } catch (error) {
    await unlinkFile(files, join(vault, "current"));
    await syncDirectory(files, vault).catch(() => {}); // first, so that `current` never names what is gone
    if (isPlaced) await moveFile(files, auditIn(dirname(vault)), auditIn(join(vault, name)));
    await moveFile(files, join(vault, name), directory); // where the caller removes it
    throw error;
  }
  await removeRestoredMark(files, join(vault, name));
}

/** The audit log's directory in an archive, in a vault that is being restored, and in the home. */
export const auditName = "audit";

function auditIn(directory: string): string {
  return join(directory, auditName);
}

/**
 * Moves the audit log of a vault that is being restored into the home, and returns whether it did. Where the home has one,
 * which a start may have begun, the restored one is dropped. DANGER: only while the vault has its mark: were the log placed
 * before that, a kill would leave it to the vault of another backup.
 */
async function placeAudit(files: FileOperations, vault: string): Promise<boolean> {
  const [restored, home] = [auditIn(vault), dirname(dirname(vault))];
  if ((await missingAsNull(files.lstat(restored))) === null) return false;
  const hasOne = (await missingAsNull(files.lstat(auditIn(home)))) !== null;
  if (hasOne) await removeTree(files, restored);
  else {
    await moveFile(files, restored, auditIn(home));
    for (const directory of [home, vault]) await syncDirectory(files, directory);
  }
  return !hasOne;
}

/** Marks a complete vault that a restore is about to make current; holds the digest of its archive. */
export const restoredMark = "restored";

export type Restored = { readonly name: string; readonly archive: string };

/** Returns the complete vault of a restore that was killed before `current` named it; null when there is none. */
export async function findRestored(files: FileOperations, vault: string): Promise<Restored | null> {
  if ((await missingAsNull(files.lstat(join(vault, "current")))) !== null) return null;
  for (const name of await generationNames(files, vault)) {
    const mark = await readFileBytes(files, join(vault, name, restoredMark), 64);
    if (mark !== null) return { name, archive: Buffer.from(mark).toString("latin1") };
  }
  return null;
}

/** Places the audit log of a killed restore, makes its vault current, and removes its mark. */
export async function finishRestored(files: FileOperations, vault: string): Promise<void> {
  const restored = await findRestored(files, vault);
  if (restored === null) return;
  await placeAudit(files, join(vault, restored.name));
  await replaceFile(files, join(vault, "current"), Buffer.from(`${restored.name}\n`));
  await removeRestoredMark(files, join(vault, restored.name));
}

/** Called at each start: a kill may have left the mark, and were `current` lost one day, it would choose this vault. */
export async function removeRestoredMark(files: FileOperations, directory: string): Promise<void> {
  await files.unlink(join(directory, restoredMark)).catch(() => {});
}

/** The switch failed when `current` was replaced or may have been, and could not be undone. */
export class UncertainSwitch extends Error {}

async function writeGeneration(
  files: FileOperations,
  vault: string,
  next: Generation,
  documents: readonly NamedDocument[],
): Promise<void> {
  await files.mkdir(next.directory, { mode: 0o700 });
  await files.mkdir(join(next.directory, "secrets"), { mode: 0o700 });
  await replaceFile(files, join(next.directory, headerFile), next.header);
  for (const { name, bytes } of documents) await replaceFile(files, join(next.directory, documentFile(name)), bytes);
  await syncDirectory(files, vault);
}

/** Makes the old vault current again. @throws UncertainSwitch */
async function undoSwitch(files: FileOperations, vault: string, before: string | null, cause: unknown): Promise<void> {
  const current = join(vault, "current");
  try {
    if (before === null) await removeFile(files, current);
    else await replaceFile(files, current, Buffer.from(`${basename(before)}\n`));
  } catch {
    throw new UncertainSwitch("current", { cause });
  }
}

async function removeGeneration(
  files: FileOperations,
  directory: string,
  documents: readonly NamedDocument[],
): Promise<void> {
  for (const { name } of documents) await unlinkFile(files, join(directory, documentFile(name)));
  await unlinkFile(files, join(directory, headerFile));
  await ignoring(files.rmdir(join(directory, "secrets")), "ENOENT");
  await ignoring(files.rmdir(directory), "ENOENT");
}

/** Reads the header of the vault in a directory. @throws StartError when there is none */
export async function readHeader(files: FileOperations, directory: string): Promise<Bytes> {
  const header = await readFileBytes(files, join(directory, headerFile), maxHeaderBytes);
  if (header !== null) return header;
  if ((await missingAsNull(files.lstat(directory))) === null) throw damagedPointer(dirname(directory));
  throw new StartError(`${join(directory, headerFile)} is missing: restore it from a backup, then start again`);
}

async function nextName(files: FileOperations, vault: string): Promise<string> {
  const numbers = (await generationNames(files, vault)).map((name) => Number(name.slice(4)));
  return `gen-${1 + Math.max(0, ...numbers)}`;
}

async function generationNames(files: FileOperations, vault: string): Promise<string[]> {
  return (await files.readdir(vault)).filter(isGenerationName);
}

/** Whether any vault, current or not, has secrets, keys or trash; one left by an interrupted init has none. */
export async function holdSecrets(files: FileOperations, vault: string): Promise<boolean> {
  for (const name of await generationNames(files, vault)) {
    for (const space of spaces) {
      const names = await missingAsNull(files.readdir(join(vault, name, space)));
      if (names !== null && names.length > 0) return true;
    }
  }
  return false;
}

/** DANGER: a start removes and a put writes below this path; a link would lead both elsewhere. */
async function refuseForeign(files: FileOperations, path: string): Promise<void> {
  if ((await missingAsNull(files.lstat(path)))?.isDirectory() ?? true) return;
  throw new StartError(`${path} is a link or a file: replace it with the directory itself, then start again`);
}

function damagedPointer(vault: string): StartError {
  return new StartError(
    `${join(vault, "current")} is missing or damaged: run strongroom doctor to see what to write into it (the name of the ` +
      `current vault: the gen-… directory with the highest number, unless an earlier one was restored), then start again`,
  );
}

const unfinished = /^(?:snapshot|restore)-[0-9a-f]{16}$/;

/**
 * Removes what a crash left outside of the trees: temp files in the vault's directory and in each generation, snapshots,
 * unfinished restores, and vaults that were never current. On a read-only disk it stays, and is harmless. The caller holds
 * the claim.
 */
export async function removeLeftovers(files: FileOperations, vaultPath: string): Promise<void> {
  for (const entry of await files.readdir(vaultPath, { withFileTypes: true })) {
    const path = join(vaultPath, entry.name);
    if (unfinished.test(entry.name)) await ignoring(removeTree(files, path), "EROFS");
    else if (entry.isDirectory() && isGenerationName(entry.name)) await removeTemps(files, path); // never through a link
  }
  await removeTemps(files, vaultPath);
  await ignoring(removeNeverCurrent(files, vaultPath), "EROFS");
}

/** Removes what a kill in the first steps of an init or a migration left; nothing when `current` is damaged. */
async function removeNeverCurrent(files: FileOperations, vaultPath: string): Promise<void> {
  const pointer = await readFileBytes(files, join(vaultPath, "current"), 64);
  const current = pointer && nameInPointer(pointer);
  if (current !== null && !isGenerationName(current)) return;
  for (const name of await generationNames(files, vaultPath)) {
    const directory = join(vaultPath, name);
    if (name === current || !(await isNeverCurrent(files, directory))) continue;
    await removeGeneration(files, directory, []);
  }
}

/** Whether a vault has no secrets, and no header that could ever open it. */
async function isNeverCurrent(files: FileOperations, directory: string): Promise<boolean> {
  if (!(await files.lstat(directory)).isDirectory()) return false; // never through a link
  const names = await files.readdir(directory);
  if (names.some((name) => name !== headerFile && name !== "secrets")) return false;
  const header = await readFileBytes(files, join(directory, headerFile), maxHeaderBytes);
  if (header !== null && !isUnfinished(header)) return false;
  const secrets = join(directory, "secrets");
  if (!names.includes("secrets")) return true;
  return (await files.lstat(secrets)).isDirectory() && (await files.readdir(secrets)).length === 0;
}
