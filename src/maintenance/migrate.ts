/**
 * Migration: copies a vault's ciphertext from one store to another, page by page in bounded memory. Every blob is read back
 * and compared before the copy gets its header, without which no server starts on it. An interrupted migration resumes where
 * it stopped.
 */
import type { Bytes } from "../../workers/protocol.js";
import { tokenDocuments as documents } from "../access/stored-tokens.js";
import { readPages, type SecretStore, type Space, spaces } from "../storage/secret-store.js";
import { unfinishedHeader } from "../storage/unfinished-vault.js";
import { CommitBuffer } from "./commit-buffer.js";
import type { HeaderCheck } from "./offline-keys.js";

/** `secrets`: their number; `copied`: number of blobs that were not there yet. */
export type Migrated = { readonly secrets: number; readonly copied: number };

/** `refuseServed` throws when a server uses the store. */
type MigrationChecks = {
  readonly isUsable: HeaderCheck;
  readonly refuseServed: (store: SecretStore) => Promise<void>;
};

type Phase = "copying" | "comparing";

/** Progress and cancellation. */
type Watch = {
  readonly tick: (phase: Phase, done: number, total: number) => void;
  readonly signal: AbortSignal;
};

/** `exists`: the target has another vault; `damaged`: the source's header; `changed`: by someone else in the meantime. */
export type MigrationProblem = "exists" | "uninitialized" | "damaged" | "changed" | "aborted";

/** The message is for people: what is wrong, and what to do. */
export class MigrationError extends Error {
  readonly problem: MigrationProblem;

  constructor(problem: MigrationProblem, message: string) {
    super(message);
    this.name = "MigrationError";
    this.problem = problem;
  }
}

/**
 * No server may use either store. This is checked again at the end, since one may have started since.
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
  const id = readVaultId(header);
  if (id === null || !(await isUsable(header))) throw unusableHeader(from);
  const placeholder = unfinishedHeader(`migration of ${id}`);
  const found = await to.header();
  if (same(found, header)) return { secrets: await verifyFinished(from, to, watch), copied: 0 };
  if (found === null) await to.startNewVault(placeholder);
  else if (!same(found, placeholder)) throw otherVault(to);
  const copied = await copyBlobs(from, to, found !== null, watch);
  if (found !== null) for (const space of spaces) await removeOthers(from, to, space, watch);
  for (const name of documents) await copyDocument(from, to, name);
  const secrets = await verifyAll(from, to, watch);
  for (const store of [from, to]) await refuseServed(store);
  await finish(from, to, header, placeholder);
  return { secrets, copied };
}

/** DANGER: the vault would pass for a copy of itself, and the user would be advised to remove it. */
async function areSame({ shared: from }: SecretStore, { shared: to }: SecretStore): Promise<boolean> {
  return from !== undefined && to !== undefined && (await from.currentRun()) === (await to.currentRun());
}

/** Verifies a copy that already has its header, and may have been used since. */
async function verifyFinished(from: SecretStore, to: SecretStore, watch: Watch): Promise<number> {
  if (await areSame(from, to)) {
    const both = `${from.vaultPath} and ${to.vaultPath} are the same database`;
    throw new MigrationError("exists", `${both}: choose another target. Nothing was changed`);
  }
  try {
    return await verifyAll(from, to, watch);
  } catch (error) {
    if (!(error instanceof MigrationError) || error.problem !== "changed") throw error;
    const what = "already holds this vault, with other secrets: one of the two was used after the migration";
    throw new MigrationError("exists", `${to.vaultPath} ${what}. Nothing was changed`);
  }
}

/** Paths in one page. */
const pageSize = 1000;

/** Blobs in memory at once, while they are read. */
const readsAtOnce = 16;

type Slice = { readonly space: Space; readonly paths: readonly string[] };

/** Copies what is missing or, when `resumed`, differs; returns the number of copied blobs. */
async function copyBlobs(
  from: SecretStore,
  to: SecretStore,
  resumed: boolean,
  { tick, signal }: Watch,
): Promise<number> {
  const total = await countAll(from);
  const buffer = new CommitBuffer(to);
  const copyOne = async (space: Space, path: string) => {
    const blob = await mustRead(from, space, path);
    if (!resumed || !same(blob, await to.read(path, undefined, space))) buffer.add({ space, path, blob });
    else await to.flush(path, space); // the interrupted migration may have been killed before it was durable
  };
  let done = 0;
  for await (const { space, paths } of readSlices(from, spaces, signal)) {
    await Promise.all(paths.map((path) => copyOne(space, path)));
    if (buffer.isFull) await buffer.commit();
    done += paths.length;
    tick("copying", done, total);
  }
  await buffer.commit();
  return buffer.committed;
}

/** Removes blobs of the copy that are no longer in the source, which was used after the interruption. */
async function removeOthers(from: SecretStore, to: SecretStore, space: Space, { signal }: Watch): Promise<void> {
  for await (const { paths } of readSlices(to, [space], signal)) {
    const wanted = await Promise.all(paths.map((path) => from.read(path, 1, space)));
    const others = paths.filter((_, i) => wanted[i] === null);
    if (others.length > 0) await to.commit(others.map((path) => ({ space, path, blob: null })));
  }
}

/** Returns the number of secrets. @throws MigrationError changed */
async function verifyAll(from: SecretStore, to: SecretStore, watch: Watch): Promise<number> {
  await verifyBlobs(from, to, watch);
  for (const name of documents) {
    const [wanted, copy] = [await from.readDocument(name), await to.readDocument(name)];
    if (!same(wanted?.bytes ?? null, copy?.bytes ?? null)) throw changedSource(to);
  }
  return from.count();
}

/** Reads both and compares every byte. @throws MigrationError changed */
async function verifyBlobs(from: SecretStore, to: SecretStore, { tick, signal }: Watch): Promise<void> {
  const total = await countAll(from);
  let done = 0;
  const compare = async (space: Space, path: string) => {
    if (!same(await mustRead(from, space, path), await to.read(path, undefined, space))) throw changedSource(to);
  };
  for await (const { space, paths } of readSlices(from, spaces, signal)) {
    await Promise.all(paths.map((path) => compare(space, path)));
    done += paths.length;
    tick("comparing", done, total);
  }
  if ((await countAll(to)) !== done) throw changedSource(to);
}

async function countAll(store: SecretStore): Promise<number> {
  let count = 0;
  for (const space of spaces) count += await store.count(space);
  return count;
}

/** Yields all paths of the spaces in order, in slices. @throws MigrationError aborted */
async function* readSlices(store: SecretStore, within: readonly Space[], signal: AbortSignal): AsyncGenerator<Slice> {
  for (const space of within) {
    for await (const page of readPages((after) => store.list("", after, pageSize, space), pageSize)) {
      for (let at = 0; at < page.length; at += readsAtOnce) {
        if (signal.aborted) throw new MigrationError("aborted", "interrupted: run the same command again to continue");
        yield { space, paths: page.slice(at, at + readsAtOnce) };
      }
    }
  }
}

async function mustRead(store: SecretStore, space: Space, path: string): Promise<Bytes> {
  const blob = await store.read(path, undefined, space);
  if (blob === null) throw changedSource(store);
  return blob;
}

function same(a: Bytes | null, b: Bytes | null): boolean {
  return a === null || b === null ? a === b : Buffer.compare(a, b) === 0;
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
function readVaultId(header: Bytes): string | null {
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

/** The two stores hold the same vault with different secrets. */
function changedSource({ vaultPath }: SecretStore): MigrationError {
  const remedy = "make sure that no server uses either of the two, then run the command again";
  return new MigrationError("changed", `${vaultPath} and the other vault differ: ${remedy}`);
}
