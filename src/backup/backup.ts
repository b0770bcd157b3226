/** Owns a backup: a snapshot of the vault becomes an archive that is checked before it gets its name. */
import { lstat, rm, unlink } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { systemCode } from "../errors.js";
import { reasonOf } from "../reason.js";
import { giveNewName, ignoring, missingAsNull, randomName, syncDirectory, systemFiles } from "../storage/durable.js";
import { brokenOff, readArchive, type Watch, writeArchive } from "./archive.js";
import { BackupError } from "./backup-error.js";

/** Where a snapshot was put, in the layout of an archive; see `SecretStore.snapshot`. `release`: it may go now. */
export type TakenSnapshot = {
  readonly directory: string;
  readonly secretCount: number;
  readonly release: () => Promise<void>;
};

/**
 * Makes a new file, and answers how many secrets it holds. It has its name only once it was read back and found whole.
 * @throws BackupError
 */
export async function backUp(takeSnapshot: () => Promise<TakenSnapshot>, file: string, watch: Watch): Promise<number> {
  const target = resolve(file);
  await refuseExisting(target);
  const { directory, secretCount, release } = await takeSnapshot();
  try {
    watch.signal.throwIfAborted();
    return await archive(directory, secretCount, target, watch);
  } catch (error) {
    if (error instanceof BackupError) throw error;
    if (watch.signal.aborted) throw brokenOff();
    throw new BackupError(
      "unusable",
      `the backup ${target} cannot be written${reasonOf(systemCode(error))}; nothing was kept`,
      error,
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
    await release();
  }
}

async function archive(snapshot: string, wanted: number, target: string, watch: Watch): Promise<number> {
  const temp = `${target}.tmp-${randomName()}`;
  try {
    const secrets = (await writeArchive(snapshot, temp, watch)) - 1; // the header is none
    if (secrets !== wanted)
      throw new BackupError("unusable", `the snapshot lost files: ${target} was not made, try again`);
    await readArchive(temp, async () => {}, { ...watch, tick: () => {} });
    await publish(temp, target);
    return secrets;
  } finally {
    await ignoring(unlink(temp), "ENOENT");
  }
}

/** Gives the file its name unless something has that name. */
async function publish(temp: string, target: string): Promise<void> {
  if (!(await giveNewName(temp, target))) throw exists(target);
  try {
    await syncDirectory(systemFiles, dirname(target));
  } catch (error) {
    await ignoring(unlink(target), "ENOENT");
    throw error;
  }
}

async function refuseExisting(target: string): Promise<void> {
  if ((await missingAsNull(lstat(target))) !== null) throw exists(target);
}

function exists(target: string): BackupError {
  return new BackupError("exists", `${target} exists already and is not overwritten: choose another name`);
}
