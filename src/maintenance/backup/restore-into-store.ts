/**
 * Restore into a store without a vault, such as a database. The whole archive is verified first; the vault is not usable
 * before it is complete, and an interrupted restore resumes when the command is run again.
 */
import type { SecretStore } from "../../storage/secret-store.js";
import { unfinishedHeader } from "../../storage/unfinished-vault.js";
import { CommitBuffer } from "../commit-buffer.js";
import type { HeaderCheck } from "../offline-keys.js";
import type { Take, Watch } from "./archive.js";
import { headerName } from "./archive-names.js";
import { BackupError } from "./backup-error.js";
import { placeIn, readAll } from "./restore-backup.js";

/** Verifies the archive, and that the store has no other vault; returns the number of secrets. @throws BackupError */
export async function judgeForStore(
  file: string,
  store: SecretStore,
  isUsable: HeaderCheck,
  watch: Watch,
): Promise<number> {
  return (await verify(file, store, isUsable, watch)).secrets;
}

/** Returns the number of restored secrets. @throws BackupError, VaultError */
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
