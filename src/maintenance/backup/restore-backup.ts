/**
 * Restore: makes an archive the vault of a home that has none. Every name and checksum is verified and every file is
 * durable before the vault becomes current; an interrupted restore leaves no vault.
 */
import { lstat, mkdir, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { systemCode } from "../../errors.js";
import { missingAsNull, randomName, syncDirectory, systemFiles, writeNew } from "../../files/durable.js";
import { failureReason } from "../../files/file-problem.js";
import { removeTree } from "../../files/remove-tree.js";
import { blobFile } from "../../paths/file-name.js";
import { claimVault } from "../../storage/files/claim.js";
import {
  findRestored,
  finishRestored,
  holdSecrets,
  makeCurrent,
  type Restored,
  removeLeftovers,
  restoredMark,
} from "../../storage/files/generations.js";
import type { SecretStore, Space } from "../../storage/secret-store.js";
import { unfinishedHeader } from "../../storage/unfinished-vault.js";
import { CommitBuffer } from "../commit-buffer.js";
import type { HeaderCheck } from "../offline-keys.js";
import { readArchive, type Take, twoFiles, type Watch } from "./archive.js";
import { BackupError, headerName, isAuditFile, placeOfFile, shownName } from "./format.js";

/**
 * Returns the number of restored secrets.
 * @throws BackupError, and StartError when a server holds the vault.
 */
export async function restore(file: string, vaultPath: string, isUsable: HeaderCheck, watch: Watch): Promise<number> {
  const claim = await claimVault(vaultPath);
  const building = join(vaultPath, `restore-${randomName()}`);
  try {
    await removeLeftovers(systemFiles, vaultPath); // of a restore that was killed
    const earlier = await findRestored(systemFiles, vaultPath);
    if (earlier !== null) return await finishEarlier(file, vaultPath, earlier, isUsable, watch);
    await refuseVault(vaultPath);
    const secrets = await build(file, building, isUsable, watch);
    await makeCurrent(systemFiles, vaultPath, building);
    return secrets;
  } finally {
    await removeTree(systemFiles, building);
    await claim.release();
  }
}

/** An earlier restore was killed after its vault was complete, and before it was current. */
async function finishEarlier(
  file: string,
  vaultPath: string,
  earlier: Restored,
  isUsable: HeaderCheck,
  watch: Watch,
): Promise<number> {
  const secrets = await verifySame(file, vaultPath, earlier, isUsable, watch);
  await finishRestored(systemFiles, vaultPath);
  return secrets;
}

async function verifySame(
  file: string,
  vaultPath: string,
  earlier: Restored,
  isUsable: HeaderCheck,
  watch: Watch,
): Promise<number> {
  const { secrets, digest } = await readAll(file, async (name) => void fileFor(file, vaultPath, name), isUsable, watch);
  if (digest === earlier.archive) return secrets;
  const what = "already holds the vault of another backup, whose restore was interrupted at its end";
  throw new BackupError(
    "exists",
    `${vaultPath} ${what}: start the server to use it, or choose an empty home with --home`,
  );
}

async function refuseVault(vaultPath: string): Promise<void> {
  const names = await readdir(vaultPath);
  if (!names.includes("current") && !(await holdSecrets(systemFiles, vaultPath))) return;
  const what = "already holds a vault and is not overwritten: choose an empty home with --home";
  throw new BackupError("exists", `${vaultPath} ${what} (strongroom doctor says what it holds)`);
}

async function build(file: string, directory: string, isUsable: HeaderCheck, watch: Watch): Promise<number> {
  const tree = new RestoredTree(directory);
  await tree.makeDirectory(join(directory, "secrets"));
  const write: Take = async (name, bytes) => {
    const target = fileFor(file, directory, name);
    await tree.write(target, bytes).catch((error: unknown) => {
      if (systemCode(error) === "EEXIST") throw twoFiles(file, name);
      throw new BackupError(
        "unusable",
        `${target} cannot be written${failureReason(systemCode(error))}; nothing was kept`,
        error,
      );
    });
  };
  const { secrets, digest } = await readAll(file, write, isUsable, watch, write);
  await tree.write(join(directory, restoredMark), new Uint8Array(Buffer.from(digest, "latin1")));
  await tree.sync();
  return secrets;
}

/** Verifies an archive as a restore does, and writes nothing; returns its number of secrets. @throws BackupError */
export async function judge(file: string, vaultPath: string, isUsable: HeaderCheck, watch: Watch): Promise<number> {
  if ((await missingAsNull(lstat(vaultPath))) !== null) {
    const earlier = await findRestored(systemFiles, vaultPath);
    if (earlier !== null) return verifySame(file, vaultPath, earlier, isUsable, watch);
    await refuseVault(vaultPath);
  }
  return (await readAll(file, async (name) => void fileFor(file, vaultPath, name), isUsable, watch)).secrets;
}

/** `takeAudit`: gets the audit log's files. @throws BackupError */
async function readAll(
  file: string,
  take: Take,
  isUsable: HeaderCheck,
  watch: Watch,
  takeAudit: Take = async () => {},
): Promise<{ readonly secrets: number; readonly digest: string; readonly header: Bytes }> {
  let header = null as Bytes | null;
  let secrets = 0;
  const takeOne: Take = async (name, bytes) => {
    if (isAuditFile(name)) return takeAudit(name, bytes);
    await take(name, bytes);
    if (name === headerName) header = bytes;
    else if (placeOfFile(name)?.space === "secrets") secrets++;
  };
  const digest = await readArchive(file, takeOne, "restoring", watch);
  if (header !== null && (await isUsable(header))) return { secrets, digest, header };
  throw new BackupError("damaged", `${file} has no header that can be used: use another backup`);
}

/** Returns the target of a file: built from the secret path that its name stands for, never from the name itself. */
function fileFor(file: string, directory: string, name: string): string {
  if (name === headerName || isAuditFile(name)) return join(directory, name);
  const { space, path } = placeIn(file, name);
  return blobFile(join(directory, space), path);
}

/** Returns the place of the blob that a file in the archive stands for. @throws BackupError damaged */
function placeIn(file: string, name: string): { readonly space: Space; readonly path: string } {
  const place = placeOfFile(name);
  if (place !== null) return place;
  throw new BackupError("damaged", `${file} holds ${shownName(name)}, which is no secret's file: nothing was restored`);
}

/** New durable files, in directories that are durable after `sync`. */
class RestoredTree {
  readonly #top: string;
  readonly #made = new Map<string, Promise<void>>();

  constructor(top: string) {
    this.#top = top;
  }

  async write(path: string, bytes: Bytes): Promise<void> {
    await this.makeDirectory(dirname(path));
    await writeNew(systemFiles, path, bytes, 0o600);
  }

  makeDirectory(path: string): Promise<void> {
    let making = this.#made.get(path);
    if (making === undefined) {
      making = this.#make(path);
      this.#made.set(path, making);
    }
    return making;
  }

  async sync(): Promise<void> {
    for (const directory of this.#made.keys()) await syncDirectory(systemFiles, directory);
  }

  async #make(path: string): Promise<void> {
    if (path !== this.#top) await this.makeDirectory(dirname(path));
    await mkdir(path, { mode: 0o700 });
  }
}

/** Verifies the archive, and that the store has no other vault; returns the number of secrets. @throws BackupError */
export async function judgeForStore(
  file: string,
  store: SecretStore,
  isUsable: HeaderCheck,
  watch: Watch,
): Promise<number> {
  return (await verify(file, store, isUsable, watch)).secrets;
}

/**
 * Restores into a store without a vault, such as a database. The whole archive is verified first; the vault is not usable
 * before it is complete, and an interrupted restore continues when the command is run again. Returns the number of secrets.
 * @throws BackupError, VaultError
 */
export async function restoreIntoStore(
  file: string,
  store: SecretStore,
  isUsable: HeaderCheck,
  watch: Watch,
): Promise<number> {
  const { header, placeholder, secrets, isNew } = await verify(file, store, isUsable, watch);
  if (isNew) await store.startNewVault(placeholder);
  await writeSecrets(file, store, isUsable, watch);
  if ((await store.count()) !== secrets || !(await store.replaceHeader(header, placeholder))) throw changed(store);
  return secrets;
}

async function writeSecrets(file: string, store: SecretStore, isUsable: HeaderCheck, watch: Watch): Promise<void> {
  const buffer = new CommitBuffer(store);
  const write: Take = async (name, blob) => {
    if (name === headerName) return;
    buffer.add({ ...placeIn(file, name), blob });
    if (buffer.isFull) await buffer.commit();
  };
  try {
    await readAll(file, write, isUsable, watch);
    await buffer.commit();
  } catch (error) {
    if (!watch.signal.aborted) throw error;
    throw new BackupError("aborted", "interrupted: run the same command again to continue");
  }
}

async function verify(file: string, store: SecretStore, isUsable: HeaderCheck, watch: Watch) {
  const check: Take = async (name) => {
    if (name !== headerName) placeIn(file, name);
  };
  const { header, secrets, digest } = await readAll(file, check, isUsable, watch);
  const placeholder = unfinishedHeader(`restore of ${digest}`);
  const found = await store.header();
  if (found !== null && Buffer.compare(found, placeholder) !== 0) throw exists(store);
  return { header, secrets, placeholder, isNew: found === null };
}

function exists({ vaultPath }: SecretStore): BackupError {
  const what = "already holds a vault, or an unfinished restore of another backup, and is not overwritten";
  return new BackupError("exists", `${vaultPath} ${what}: choose an empty database`);
}

function changed({ vaultPath }: SecretStore): BackupError {
  const remedy = "make sure that no server uses it, then run the command again";
  return new BackupError("unusable", `${vaultPath} was changed during the restore: ${remedy}`);
}
