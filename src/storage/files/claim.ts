/**
 * Exclusive claim of one server on one vault: the kernel lock on its directory, where available, and the pid file, which
 * names the holder. Never has to be cleaned by hand.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { StartError, systemCode, takesNoFiles } from "../../errors.js";
import {
  type Announcement,
  announceHolder,
  enterHolder,
  findHolder,
  type Holder,
  removeHolder,
} from "./claim-holder.js";
import { type Lock, lockDirectory } from "./kernel-lock.js";

export interface Claim {
  /** Publishes the server's address for `findHolder`. */
  announce(announcement: Announcement): Promise<void>;
  release(): Promise<void>;
}

/** @throws StartError that names the server holding the vault. */
export async function claimVault(vaultPath: string): Promise<Claim> {
  const lock = await lockDirectory(vaultPath);
  if (lock === "taken") throw heldBy(vaultPath, await patientHolder(vaultPath));
  try {
    const holder = await enter(vaultPath, lock !== null);
    if (holder !== null) throw heldBy(vaultPath, holder);
  } catch (error) {
    await lock?.release();
    throw error;
  }
  return claimOf(vaultPath, lock);
}

/** With the lock held, the pid file only informs: secrets stay readable on a disk that cannot take it. */
async function enter(vaultPath: string, locked: boolean): Promise<Holder | null> {
  try {
    return await enterHolder(vaultPath);
  } catch (error) {
    if (["EISDIR", "EPERM"].includes(systemCode(error) ?? "")) throw invalidPidFile(vaultPath);
    if (!locked || !takesNoFiles(error)) throw error;
    await removeHolder(vaultPath).catch(() => {}); // it may exist, empty
    return null;
  }
}

/** EISDIR and EPERM: unlink of a directory. */
function invalidPidFile(vaultPath: string): StartError {
  return new StartError(`${join(vaultPath, "server.pid")} is not a plain file: move it away, then start again`);
}

function claimOf(vaultPath: string, lock: Lock | null): Claim {
  let released = false;
  let announced = Promise.resolve();
  return {
    announce(announcement) {
      if (!released) announced = announceHolder(vaultPath, announcement);
      return announced;
    },
    async release() {
      if (released) return; // the pid file may be another server's by now
      released = true;
      await announced.catch(() => {}); // its caller got the error
      await removeHolder(vaultPath).catch(() => {}); // a leftover counts only while this process lives
      await lock?.release();
    },
  };
}

/** A starting server writes its pid file a moment after it acquires the lock. */
async function patientHolder(vaultPath: string): Promise<Holder | null> {
  for (let tries = 0; tries < 50; tries++) {
    const holder = await findHolder(vaultPath);
    if (holder !== null) return holder;
    await sleep(20);
  }
  return null;
}

function heldBy(vaultPath: string, holder: Holder | null): StartError {
  const who = holder === null ? "another server" : `another server (pid ${holder.pid})`;
  return new StartError(`${who} already serves ${vaultPath}: stop it, or choose another home with STRONGROOM_HOME`);
}
