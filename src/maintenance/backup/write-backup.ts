/** Owns a backup: a snapshot of the vault becomes an archive that is checked before it gets its name. */
import { lstat, rm, unlink } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { systemCode } from "../../errors.js";
import { giveNewName, ignoring, missingAsNull, randomName, syncDirectory, systemFiles } from "../../files/durable.js";
import { reasonOf } from "../../files/file-problem.js";
import { headBytes, type Keys } from "../doctor/offline-keys.js";
import { brokenOff, headerName, readArchive, type Take, type Watch, writeArchive } from "./archive.js";
import { BackupError } from "./backup-error.js";

/** Where a snapshot was put, in the layout of an archive; see `SecretStore.snapshot`. `release`: it may go now. */
export type TakenSnapshot = {
  readonly directory: string;
  readonly secretCount: number;
  readonly release: () => Promise<void>;
};

/** Judges what is saved by its structure. */
type Judge = Pick<Keys, "understands" | "faultsOf">;

/** `damaged`: of the secrets, how many are no blobs that a key could open. */
export type Saved = { readonly secrets: number; readonly damaged: number };

/**
 * Makes a new file. It has its name only once it was read back and found whole, with a header that a restore takes.
 * @throws BackupError
 */
export async function backUp(
  takeSnapshot: () => Promise<TakenSnapshot>,
  file: string,
  judge: Judge,
  watch: Watch,
): Promise<Saved> {
  const target = resolve(file);
  await refuseExisting(target);
  const { directory, secretCount, release } = await takeSnapshot();
  try {
    watch.signal.throwIfAborted();
    return await archive(directory, secretCount, target, judge, watch);
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

async function archive(snapshot: string, wanted: number, target: string, judge: Judge, watch: Watch): Promise<Saved> {
  const temp = `${target}.tmp-${randomName()}`;
  try {
    const secrets = (await writeArchive(snapshot, temp, watch)) - 1; // the header is none
    if (secrets !== wanted)
      throw new BackupError("unusable", `the snapshot lost files: ${target} was not made, try again`);
    const damaged = await readBack(temp, judge, watch);
    await publish(temp, target);
    return { secrets, damaged };
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

/** Answers how many secrets are damaged: they are saved as they are, since nothing better is there. */
async function readBack(temp: string, judge: Judge, watch: Watch): Promise<number> {
  let damaged = 0;
  const take: Take = async (name, bytes) => {
    if (name === headerName) return mustBeHeader(bytes, judge);
    const [fault] = await judge.faultsOf([{ head: bytes.slice(0, headBytes), length: bytes.length }]);
    if (fault !== null) damaged++;
  };
  await readArchive(temp, take, { ...watch, tick: () => {} });
  return damaged;
}

async function mustBeHeader(header: Bytes, judge: Judge): Promise<void> {
  if (await judge.understands(header)) return;
  const mend = "put it back from an earlier backup; strongroom doctor  tells more";
  throw new BackupError("damaged", `the vault's header cannot be used, and no restore would take it: ${mend}`);
}

async function refuseExisting(target: string): Promise<void> {
  if ((await missingAsNull(lstat(target))) !== null) throw exists(target);
}

function exists(target: string): BackupError {
  return new BackupError("exists", `${target} exists already and is not overwritten: choose another name`);
}
