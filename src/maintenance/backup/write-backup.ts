/** Backup: writes a snapshot of the vault to an archive, verifies it, and only then gives it its name. */
import { lstat, opendir, readdir, stat, unlink } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { pMapIterable } from "p-map";
import type { BlobOutline, Bytes } from "../../../workers/protocol.js";
import { fileNumbers } from "../../audit/files.js";
import { auditFileName, longestFile } from "../../audit/format.js";
import { systemCode, takesNoFiles } from "../../errors.js";
import {
  giveNewName,
  ignoring,
  missingAsNull,
  randomName,
  readFileBytes,
  syncDirectory,
  systemFiles,
} from "../../files/durable.js";
import { failureReason } from "../../files/file-problem.js";
import { pinDirectory } from "../../files/pinned.js";
import { removeTree } from "../../files/remove-tree.js";
import { blobFile } from "../../paths/file-name.js";
import { enterHolder } from "../../storage/files/claim.js";
import { readJournals } from "../../storage/files/journal.js";
import { headBytes, type Keys } from "../offline-keys.js";
import {
  interrupted,
  readAhead,
  readArchive,
  type SnapshotFile,
  sumsSuffix,
  type Take,
  type Watch,
  writeArchive,
} from "./archive.js";
import { auditName, BackupError, headerName, placeOfFile, spaceNames } from "./format.js";

/**
 * A snapshot in the layout of an archive, see `SecretStore.snapshot`; or, `direct`, the frozen vault itself. `release`: it
 * is no longer needed.
 */
export type TakenSnapshot = {
  readonly directory: string;
  readonly secretCount: number;
  readonly direct: boolean;
  readonly release: () => Promise<void>;
};

/** Checks the structure of what is saved. */
type StructureChecks = Pick<Keys, "understands" | "findFaults">;

/** Blobs that the key worker checks at once. */
const sliceSize = 256;

/** `damaged`: number of secrets that no key can open. `direct`: the vault's disk took no snapshot. */
export type Saved = { readonly secrets: number; readonly damaged: number; readonly direct: boolean };

/**
 * Creates a new file, which gets its name only after it was read back and verified, with a header that a restore accepts.
 * @param withAudit also save the audit log of the snapshot's home
 * @throws BackupError
 */
export async function backUp(
  takeSnapshot: () => Promise<TakenSnapshot>,
  file: string,
  keys: StructureChecks,
  watch: Watch,
  withAudit = false,
): Promise<Saved> {
  const target = resolve(file);
  if ((await missingAsNull(lstat(target))) !== null) throw exists(target);
  const pinned = await pinDirectory(dirname(target)).catch((error: unknown) => {
    throw unwritable(target, error);
  });
  try {
    return await backUpTo({ target, place: join(pinned.path, basename(target)) }, takeSnapshot, keys, watch, withAudit);
  } finally {
    await pinned.release();
  }
}

/** `target`: the name for messages; `place`: the same file in the directory that is held open. */
type Output = { readonly target: string; readonly place: string };

async function backUpTo(
  output: Output,
  takeSnapshot: () => Promise<TakenSnapshot>,
  keys: StructureChecks,
  watch: Watch,
  withAudit: boolean,
): Promise<Saved> {
  await removeAbandoned(output.place);
  const snapshot = await takeSnapshot();
  const { directory, direct, release } = snapshot;
  try {
    if (!direct) await enterAsReader(directory);
    watch.signal.throwIfAborted();
    return await archive(snapshot, output, keys, watch, withAudit);
  } catch (error) {
    if (error instanceof BackupError) throw error;
    if (watch.signal.aborted) throw interrupted();
    throw unwritable(output.target, error);
  } finally {
    if (!direct) await removeTree(systemFiles, directory); // DANGER: otherwise it is the vault
    await release();
  }
}

/** The server keeps a snapshot that is being read. On a full disk another backup may replace it; this one then fails. */
async function enterAsReader(snapshot: string): Promise<void> {
  await enterHolder(snapshot).catch((error: unknown) => {
    if (!takesNoFiles(error)) throw error;
  });
}

async function archive(
  { directory, secretCount, direct }: TakenSnapshot,
  { target, place }: Output,
  keys: StructureChecks,
  watch: Watch,
  withAudit: boolean,
): Promise<Saved> {
  const temp = `${place}.tmp-${process.pid}-${randomName()}`;
  try {
    const files = direct ? directFiles(directory) : snapshotFiles(directory, [headerName, ...spaceNames].sort());
    const all = new CountedFiles(withAudit ? auditFiles(join(directory, "..", "..")) : [], files);
    await writeArchive(all.files(), secretCount, temp, watch);
    const { secrets } = all;
    if (secrets !== secretCount)
      throw new BackupError("unusable", `the snapshot has lost files: ${target} was not created, try again`);
    const damaged = await readBack(temp, keys, watch);
    await publish(temp, { target, place });
    return { secrets, damaged, direct };
  } finally {
    await ignoring(unlink(temp), "ENOENT");
  }
}

/** Files of an archive in the order of their names, and how many of them are secrets. */
class CountedFiles {
  secrets = 0;
  readonly #audit: AsyncIterable<SnapshotFile> | readonly SnapshotFile[];
  readonly #vault: AsyncIterable<SnapshotFile>;

  constructor(audit: AsyncIterable<SnapshotFile> | readonly SnapshotFile[], vault: AsyncIterable<SnapshotFile>) {
    this.#audit = audit;
    this.#vault = vault;
  }

  async *files(): AsyncGenerator<SnapshotFile> {
    yield* this.#audit;
    for await (const file of this.#vault) {
      if (placeOfFile(file.name)?.space === "secrets") this.secrets++;
      yield file;
    }
  }
}

/** Gives the file its name unless that is taken. */
async function publish(temp: string, { target, place }: Output): Promise<void> {
  if (!(await giveNewName(temp, place))) throw exists(target);
  try {
    await syncDirectory(systemFiles, dirname(place));
  } catch (error) {
    await ignoring(unlink(place), "ENOENT");
    throw error;
  }
}

/** Returns how many secrets are damaged: they are saved as they are, because there is nothing better. */
async function readBack(temp: string, keys: StructureChecks, watch: Watch): Promise<number> {
  let damaged = 0;
  let outlines: BlobOutline[] = [];
  const count = async () => {
    const slice = outlines;
    outlines = [];
    damaged += (await keys.findFaults(slice)).filter((fault) => fault !== null).length;
  };
  const take: Take = async (name, bytes) => {
    if (name === headerName) return mustBeHeader(bytes, keys);
    if (placeOfFile(name)?.space !== "secrets") return; // what the other spaces hold is checked when it is used
    outlines.push({ head: bytes.slice(0, headBytes), length: bytes.length });
    if (outlines.length === sliceSize) await count();
  };
  await readArchive(temp, take, "verifying", watch);
  await count();
  return damaged;
}

async function mustBeHeader(header: Bytes, keys: StructureChecks): Promise<void> {
  if (await keys.understands(header)) return;
  const remedy = "restore it from an earlier backup; see strongroom doctor";
  throw new BackupError("damaged", `the vault's header cannot be used, and no restore would accept it: ${remedy}`);
}

/** Removes the temp files of earlier backups to this target that were killed. */
async function removeAbandoned(target: string): Promise<void> {
  const directory = dirname(target);
  for (const name of (await missingAsNull(readdir(directory))) ?? []) {
    if (!name.startsWith(`${basename(target)}.tmp-`)) continue;
    const path = join(directory, name);
    if (await isAbandoned(name.slice(basename(target).length), path)) await ignoring(unlink(path), "ENOENT");
  }
}

/** `.tmp-PID-RANDOM`, or without the pid from earlier versions. Another process may have that pid by now. */
const tempSuffix = new RegExp(`^\\.tmp-(?:([1-9][0-9]{0,9})-)?[0-9a-f]{16}(?:${sumsSuffix})?$`);
const abandonedMs = 3600 * 1000;

async function isAbandoned(suffix: string, path: string): Promise<boolean> {
  const [matched, pid] = tempSuffix.exec(suffix) ?? [];
  if (matched === undefined) return false;
  if (pid !== undefined && !isRunning(Number(pid))) return true;
  const found = await missingAsNull(stat(path));
  return found !== null && Date.now() - found.mtimeMs > abandonedMs;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}

function unwritable(target: string, error: unknown): BackupError {
  const reason = failureReason(systemCode(error));
  return new BackupError("unusable", `the backup ${target} cannot be written${reason}; nothing was kept`, error);
}

function exists(target: string): BackupError {
  return new BackupError("exists", `${target} already exists and is not overwritten: choose another name`);
}

const filesAtOnce = 8;

/**
 * Yields the files of a snapshot in the order of their names in the archive.
 * @param top names of files and directories of the snapshot, sorted
 */
function snapshotFiles(snapshot: string, top: readonly string[]): AsyncIterable<SnapshotFile> {
  return readInOrder(namesIn(snapshot, top), async (name) => ({ ...(await readAhead(join(snapshot, name))), name }));
}

/** Reads the named files ahead, in their order. */
function readInOrder(
  names: AsyncIterable<string> | Iterable<string>,
  read: (name: string) => Promise<SnapshotFile>,
): AsyncIterable<SnapshotFile> {
  return pMapIterable(names, read, { concurrency: filesAtOnce });
}

/** Yields the names of files, in their order; a name that ends in a slash is a directory. */
async function* namesIn(snapshot: string, names: readonly string[], prefix = ""): AsyncGenerator<string> {
  for (const name of names) {
    if (!name.endsWith("/")) yield prefix + name;
    else yield* namesIn(snapshot, await sortedEntries(join(snapshot, prefix, name)), prefix + name);
  }
}

/** Directories end in a slash, so that the order is that of whole paths. Links and pipes are left out. */
async function sortedEntries(directory: string): Promise<string[]> {
  const names: string[] = [];
  const opened = await missingAsNull(opendir(directory, { bufferSize: 1024 })); // a space without blobs has none
  for await (const entry of opened ?? []) {
    if (entry.isDirectory()) names.push(`${entry.name}/`);
    else if (entry.isFile()) names.push(entry.name);
  }
  return names.sort();
}

/**
 * Yields the files of a vault that is read in place of a snapshot: what a snapshot of it would hold, in the same order. All
 * names are in memory.
 */
export async function* directFiles(directory: string): AsyncGenerator<SnapshotFile> {
  const journals = await readJournals(systemFiles, directory);
  const changes = journals.flatMap((journal) => journal.changes);
  const changed = new Map(changes.map(({ space, path, blob }) => [blobFile(space, path), blob]));
  const read = async (name: string) =>
    fileOfBatch(name, changed) ?? { ...(await readAhead(join(directory, name))), name };
  yield* readInOrder(await sortedNames(directory, changed), read);
}

/** Blobs by the names of their files in the archive; null: removed. */
type Changed = ReadonlyMap<string, Bytes | null>;

/** Leftovers and foreign files are not in a backup. */
async function sortedNames(directory: string, changed: Changed): Promise<string[]> {
  const names: string[] = [];
  for await (const name of namesIn(directory, spaceNames)) {
    if (placeOfFile(name) !== null && !changed.has(name)) names.push(name);
  }
  for (const [name, blob] of changed) if (blob !== null) names.push(name);
  return [headerName, ...names].sort();
}

/** Returns a file of a batch that is committed, and that the disk did not let the server apply. */
function fileOfBatch(name: string, changed: Changed): SnapshotFile | null {
  const blob = changed.get(name) ?? null;
  return blob && { name, size: blob.length, modified: new Date(), content: [blob] };
}

/** Yields the audit log's files as they are now; a server may continue to write, and remove the oldest. */
async function* auditFiles(home: string): AsyncGenerator<SnapshotFile> {
  const directory = join(home, auditName);
  for (const file of await fileNumbers(systemFiles, directory)) {
    const path = join(directory, auditFileName(file));
    const [bytes, found] = [await readFileBytes(systemFiles, path, longestFile), await missingAsNull(stat(path))];
    if (bytes === null || found === null) continue;
    yield { name: `${auditName}/${auditFileName(file)}`, size: bytes.length, modified: found.mtime, content: [bytes] };
  }
}
