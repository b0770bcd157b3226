/**
 * Owns the claim of one server on one vault: the kernel's lock on its directory, where there is one, and the pid file,
 * which says who the holder is. Nothing ever has to be cleaned by hand.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { StartError, systemCode } from "../../errors.js";
import { announceHolder, enterHolder, findHolder, type Holder, removeHolder } from "./claim-holder.js";
import { type Lock, lockDirectory } from "./kernel-lock.js";

export interface Claim {
  /** Tells `findHolder` where this server listens. */
  announce(url: string): Promise<void>;
  release(): Promise<void>;
}

/** @throws StartError that names the server which holds the vault. */
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

const fullDisk = new Set(["ENOSPC", "EDQUOT", "EROFS"]);

/** Beside the lock, the pid file only informs: a disk that cannot take it is no reason not to let secrets be read. */
async function enter(vaultPath: string, locked: boolean): Promise<Holder | null> {
  try {
    return await enterHolder(vaultPath);
  } catch (error) {
    if (["EISDIR", "EPERM"].includes(systemCode(error) ?? "")) throw oddPidFile(vaultPath);
    if (!locked || !fullDisk.has(systemCode(error) ?? "")) throw error;
    await removeHolder(vaultPath).catch(() => {}); // it may be there, empty
    return null;
  }
}

/** What unlinking says of a directory. */
function oddPidFile(vaultPath: string): StartError {
  return new StartError(`${join(vaultPath, "server.pid")} is not a plain file: move it away, then start again`);
}

function claimOf(vaultPath: string, lock: Lock | null): Claim {
  let released = false;
  let announced = Promise.resolve();
  return {
    announce(url) {
      if (!released) announced = announceHolder(vaultPath, url);
      return announced;
    },
    async release() {
      if (released) return; // by now the pid file may be another server's
      released = true;
      await announced.catch(() => {}); // who asked for it was told
      await removeHolder(vaultPath).catch(() => {}); // what stays counts only while this process lives
      await lock?.release();
    },
  };
}

/** A holder that is just starting writes its pid file a moment after it has the lock. */
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
