/** Owns a backup: a snapshot of the vault becomes an archive that is checked before it gets its name. */
import { link, lstat, rename, rm, unlink } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { systemCode } from "../errors.js";
import { ignoring, missingAsNull, randomName, syncDirectory, systemFiles } from "../storage/durable.js";
import { readArchive, type Tick, writeArchive } from "./archive.js";
import { BackupError } from "./backup-error.js";

/** Where a snapshot was put, in the layout of an archive; see `SecretStore.snapshot`. */
export type TakenSnapshot = { readonly directory: string };

/**
 * Makes a new file, and answers how many secrets it holds. It has its name only once it was read back and found whole.
 * @throws BackupError
 */
export async function backUp(takeSnapshot: () => Promise<TakenSnapshot>, file: string, tick: Tick): Promise<number> {
  const target = resolve(file);
  await refuseExisting(target);
  const { directory } = await takeSnapshot();
  try {
    return await archive(directory, target, tick);
  } catch (error) {
    if (error instanceof BackupError) throw error;
    const reason = systemCode(error) ?? "unknown reason";
    throw new BackupError("unusable", `the backup ${target} cannot be written (${reason}): nothing was kept`, error);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function archive(snapshot: string, target: string, tick: Tick): Promise<number> {
  const temp = `${target}.tmp-${randomName()}`;
  try {
    const files = await writeArchive(snapshot, temp, tick);
    await readArchive(temp, async () => {});
    await publish(temp, target);
    return files - 1; // the header is no secret
  } finally {
    await ignoring(unlink(temp), "ENOENT");
  }
}

/** Gives the file its name unless something has that name. */
async function publish(temp: string, target: string): Promise<void> {
  try {
    await link(temp, target);
  } catch (error) {
    if (systemCode(error) === "EEXIST") throw exists(target);
    await refuseExisting(target); // no hard links here
    await rename(temp, target);
  }
  await syncDirectory(systemFiles, dirname(target));
}

async function refuseExisting(target: string): Promise<void> {
  if ((await missingAsNull(lstat(target))) !== null) throw exists(target);
}

function exists(target: string): BackupError {
  return new BackupError("exists", `${target} exists already and is not overwritten: choose another name`);
}
