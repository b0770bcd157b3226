/**
 * Owns the vaults of one home: each lives in a directory of its own, and one small file says which is in force.
 *
 *   vault/current            "gen-2\n": replaced in one step, which is what makes a forced init atomic
 *   vault/gen-1/…            an earlier vault, kept whole under its old passphrase
 *   vault/gen-2/header.json  the header, written before `current` names it
 *   vault/gen-2/secrets/…    the tree of blobs
 */
import { basename, dirname, join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { StartError } from "../../errors.js";
import {
  type FileOperations,
  ignoring,
  missingAsNull,
  moveIntoPlace,
  removeFile,
  replaceFile,
  syncDirectory,
} from "../../files/durable.js";
import { readFileBytes } from "../../files/read-file.js";

const generationName = /^gen-[1-9][0-9]{0,8}$/;
const maxHeaderBytes = 4096;

export function isGenerationName(name: string): boolean {
  return generationName.test(name);
}

/** What `current` says. The newline is not there when a person has written it. */
export function nameInPointer(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1").replace(/\n$/, "");
}

export type Generation = { readonly directory: string; readonly secrets: string; readonly header: Bytes };

/** The vault in force; null before the first init. */
export async function currentGeneration(files: FileOperations, vault: string): Promise<Generation | null> {
  const bytes = await readFileBytes(files, join(vault, "current"), 64);
  if (bytes === null) {
    await refuseLostPointer(files, vault);
    return null;
  }
  const name = nameInPointer(bytes);
  if (!isGenerationName(name)) throw damagedPointer(vault);
  return loadGeneration(files, join(vault, name));
}

/** Writes a new, empty vault beside the one in force, and then makes it the one in force. */
export async function switchGeneration(
  files: FileOperations,
  vault: string,
  header: Bytes,
  before: Generation | null,
): Promise<Generation> {
  const name = await nextName(files, vault);
  const next = { ...paths(join(vault, name)), header };
  let moved = false;
  try {
    await writeGeneration(files, vault, next);
    await moveIntoPlace(files, join(vault, "current"), Buffer.from(`${name}\n`));
    moved = true;
    await syncDirectory(files, vault);
    return next;
  } catch (error) {
    if (moved) await putBack(files, vault, before, error);
    await clearAway(files, next).catch(() => {}); // what stays is not in force, and does no harm
    throw error;
  }
}

/** Makes a directory, whose files last, the first vault of a home that has none. */
export async function bringIntoForce(files: FileOperations, vault: string, directory: string): Promise<void> {
  const name = await nextName(files, vault); // an init that was broken off may have left one
  await files.rename(directory, join(vault, name));
  try {
    await syncDirectory(files, vault);
    await replaceFile(files, join(vault, "current"), Buffer.from(`${name}\n`));
  } catch (error) {
    await ignoring(files.unlink(join(vault, "current")), "ENOENT");
    await syncDirectory(files, vault).catch(() => {}); // first, so that `current` never names what is gone
    await files.rename(join(vault, name), directory); // back to where the caller removes it
    throw error;
  }
}

/** The switch failed when `current` had been replaced, and it could not be put back. */
export class UncertainSwitch extends Error {}

async function writeGeneration(files: FileOperations, vault: string, next: Generation): Promise<void> {
  await files.mkdir(next.directory, { mode: 0o700 });
  await files.mkdir(next.secrets, { mode: 0o700 });
  await replaceFile(files, join(next.directory, "header.json"), next.header);
  await syncDirectory(files, vault);
}

/** Puts the old vault back in force. */
async function putBack(files: FileOperations, vault: string, before: Generation | null, cause: unknown): Promise<void> {
  const current = join(vault, "current");
  try {
    if (before === null) await removeFile(files, current);
    else await replaceFile(files, current, Buffer.from(`${basename(before.directory)}\n`));
  } catch {
    throw new UncertainSwitch("current", { cause });
  }
}

async function clearAway(files: FileOperations, next: Generation): Promise<void> {
  await ignoring(files.unlink(join(next.directory, "header.json")), "ENOENT");
  await ignoring(files.rmdir(next.secrets), "ENOENT");
  await ignoring(files.rmdir(next.directory), "ENOENT");
}

function paths(directory: string): Omit<Generation, "header"> {
  return { directory, secrets: join(directory, "secrets") };
}

async function loadGeneration(files: FileOperations, directory: string): Promise<Generation> {
  for (const path of [directory, paths(directory).secrets]) await refuseStranger(files, path);
  const header = await readFileBytes(files, join(directory, "header.json"), maxHeaderBytes);
  if (header === null) {
    if ((await missingAsNull(files.lstat(directory))) === null) throw damagedPointer(dirname(directory));
    throw new StartError(`${join(directory, "header.json")} is missing: put it back from a backup, then start again`);
  }
  return { ...paths(directory), header };
}

async function nextName(files: FileOperations, vault: string): Promise<string> {
  const numbers = (await generationNames(files, vault)).map((name) => Number(name.slice(4)));
  return `gen-${1 + Math.max(0, ...numbers)}`;
}

async function generationNames(files: FileOperations, vault: string): Promise<string[]> {
  return (await files.readdir(vault)).filter(isGenerationName);
}

/** A vault with secrets that nothing points at is not "no vault": a new init would hide them. */
async function refuseLostPointer(files: FileOperations, vault: string): Promise<void> {
  if (await holdSecrets(files, vault)) throw damagedPointer(vault);
}

/** Whether any vault, in force or not, has secrets; one whose init was broken off has none. */
export async function holdSecrets(files: FileOperations, vault: string): Promise<boolean> {
  for (const name of await generationNames(files, vault)) {
    const names = await missingAsNull(files.readdir(join(vault, name, "secrets")));
    if (names !== null && names.length > 0) return true;
  }
  return false;
}

/** What a start removes and a put writes must not be where a link leads. */
async function refuseStranger(files: FileOperations, path: string): Promise<void> {
  if ((await missingAsNull(files.lstat(path)))?.isDirectory() ?? true) return;
  throw new StartError(`${path} is a link or a file: put the directory itself in its place, then start again`);
}

function damagedPointer(vault: string): StartError {
  return new StartError(
    `${join(vault, "current")} is missing or damaged: strongroom doctor  says what to write into it (the name of the vault ` +
      `in force: the gen-… directory with the highest number, unless an earlier one was restored); then start again`,
  );
}
