/**
 * Migration: copies a vault's ciphertext from one store to another. Every secret is read back and compared before the copy
 * gets its header, without which no server starts on it. An interrupted migration resumes where it stopped.
 */
import type { Bytes } from "../../../workers/protocol.js";
import { documentName as tokensDocument } from "../../access/token-record.js";
import type { SecretStore } from "../../storage/secret-store.js";
import { unfinishedHeader } from "../../storage/unfinished-vault.js";
import type { HeaderCheck } from "../backup/restore-backup.js";
import { copySecrets, removeOthers, same, verifySecrets, type Watch } from "./copy-secrets.js";
import { changedSource, MigrationError } from "./migration-error.js";

const documents = [tokensDocument];

/** `copied`: number of secrets that were not there yet. */
export type Migrated = { readonly secrets: number; readonly copied: number };

/** `refuseServed` throws when a server uses the store. */
export type MigrationChecks = {
  readonly isUsable: HeaderCheck;
  readonly refuseServed: (store: SecretStore) => Promise<void>;
};

/**
 * No server may use either store. This is checked again at the end, since one may have started meanwhile.
 * @throws MigrationError, VaultError
 */
export async function migrate(
  from: SecretStore,
  to: SecretStore,
  { isUsable, refuseServed }: MigrationChecks,
  watch: Watch,
): Promise<Migrated> {
  const header = await from.header();
  if (header === null)
    throw new MigrationError("uninitialized", `there is no vault in ${from.vaultPath}: choose another source`);
  const id = vaultIdOf(header);
  if (id === null || !(await isUsable(header))) throw unusableHeader(from);
  const placeholder = unfinishedHeader(`migration of ${id}`);
  const found = await to.header();
  if (same(found, header)) return { secrets: await verifyFinished(from, to, watch), copied: 0 };
  if (found === null) await to.startNewVault(placeholder);
  else if (!same(found, placeholder)) throw otherVault(to);
  const copied = await copySecrets(from, to, found !== null, watch);
  if (found !== null) await removeOthers(from, to, watch);
  for (const name of documents) await copyDocument(from, to, name);
  const secrets = await verifyAll(from, to, watch);
  for (const store of [from, to]) await refuseServed(store);
  await finish(from, to, header, placeholder);
  return { secrets, copied };
}

/** For a copy that already has its header, and may have been used since. */
async function verifyFinished(from: SecretStore, to: SecretStore, watch: Watch): Promise<number> {
  try {
    return await verifyAll(from, to, watch);
  } catch (error) {
    if (!(error instanceof MigrationError) || error.problem !== "changed") throw error;
    const what = "already holds this vault, with other secrets: one of the two was used after the migration";
    throw new MigrationError("exists", `${to.vaultPath} ${what}. Nothing was changed`);
  }
}

async function verifyAll(from: SecretStore, to: SecretStore, watch: Watch): Promise<number> {
  const secrets = await verifySecrets(from, to, watch);
  for (const name of documents) {
    const [wanted, copy] = [await from.readDocument(name), await to.readDocument(name)];
    if (!same(wanted?.bytes ?? null, copy?.bytes ?? null)) throw changedSource(to);
  }
  return secrets;
}

async function copyDocument(from: SecretStore, to: SecretStore, name: string): Promise<void> {
  const [wanted, copy] = [await from.readDocument(name), await to.readDocument(name)];
  if (wanted === null || same(wanted.bytes, copy?.bytes ?? null)) return;
  if ((await to.writeDocument(name, wanted.bytes, copy?.tag ?? null)) === null) throw changedSource(to);
}

/** From here on the copy is a vault. */
async function finish(from: SecretStore, to: SecretStore, header: Bytes, placeholder: Bytes): Promise<void> {
  if (!same(await from.header(), header)) throw changedSource(from);
  const replaced = await to.replaceHeader(header, placeholder);
  if (!replaced || !same(await to.header(), header)) throw changedSource(to);
}

/** The id stays the same when the passphrase or a key changes. */
function vaultIdOf(header: Bytes): string | null {
  return /"vaultId":"([\w+/=-]+)"/.exec(Buffer.from(header).toString("latin1"))?.[1] ?? null;
}

function unusableHeader({ vaultPath }: SecretStore): MigrationError {
  const remedy = "restore it from a backup; see strongroom doctor";
  return new MigrationError("damaged", `the header of ${vaultPath} cannot be used: ${remedy}`);
}

function otherVault({ vaultPath }: SecretStore): MigrationError {
  const remedy = "name an empty home or an empty database";
  return new MigrationError("exists", `${vaultPath} already holds another vault and is not overwritten: ${remedy}`);
}
