/**
 * Exclusive claim of one server on one vault: the kernel lock on its directory, where available, and the pid file, which
 * names the holder. Never has to be cleaned by hand.
 *
 * The lock is released by the kernel however its process ends (Linux only). flock(2) on the directory works between
 * containers that share it, leaves no file behind, and cannot be acquired by users who may not open the directory. Node
 * cannot call it, so flock(1) does, on an inherited descriptor: the lock belongs to the open directory and outlives the
 * command. Without flock(1), an abstract socket named after the directory stands in; it works within one network namespace.
 *
 * The pid file in the directory says which server holds the vault, and where it listens. It counts only while that process
 * (identified by pid and start time) is alive, and only in that directory, not in a copy of it.
 */
import { constants } from "node:fs";
import { lstat, open, stat, unlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { StartError, systemCode, takesNoFiles } from "../../errors.js";
import {
  type FileOperations,
  ignoring,
  moveIntoPlace,
  NotPlainFile,
  readFileBytes,
  systemFiles,
} from "../../files/durable.js";
import { isAlive, startTime } from "../../files/process-identity.js";

export interface Claim {
  /** Publishes the server's address for `findHolder`. */
  announce(announcement: Announcement): Promise<void>;
  release(): Promise<void>;
}

/** @throws StartError that names the server holding the vault. */
export async function claimVault(vaultPath: string, files = systemFiles): Promise<Claim> {
  const lock = await lockDirectory(vaultPath, files);
  if (lock === "taken") throw heldBy(vaultPath, await patientHolder(vaultPath));
  try {
    const holder = await enter(vaultPath, lock !== null);
    if (holder !== null) throw heldBy(vaultPath, holder);
  } catch (error) {
    await lock?.release();
    throw error;
  }
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

/** `url` is null until the server listens. */
export type Holder = { readonly pid: number; readonly url: string | null };

/** How a server was started, for the commands that start one. */
export type ServerStart = {
  /** All settings, under the names of their flags. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The texts of those that were given as flags or variables. */
  readonly given: Readonly<Record<string, string>>;
  /** The command that restarts it, where a service manager runs it. */
  readonly restartedBy: string | null;
};

/** Where the server listens; `socket` is null unless it is outside the home. `files`: the settings' secret files. */
export type Announcement = {
  readonly url: string;
  readonly socket: string | null;
  readonly files?: readonly string[];
  readonly start?: ServerStart | undefined;
};

/** `vault`: device and inode of the directory; null in files of earlier versions. */
type Entry = Holder & { readonly started: string; readonly vault: string | null; readonly start: ServerStart | null };

/** Returns the live server that holds the vault; null when there is none. */
export async function findHolder(vaultPath: string): Promise<Holder | null> {
  const entry = await readEntry(pidFilePath(vaultPath));
  if (entry === null || !isAlive(entry.pid, entry.started)) return null;
  if (entry.vault !== null && entry.vault !== (await vaultIdentity(vaultPath))) return null;
  return { pid: entry.pid, url: entry.url };
}

/** Returns how the live server that holds the vault was started; null before it listens, and for an earlier version's. */
export async function findServerStart(vaultPath: string): Promise<ServerStart | null> {
  const holder = await findHolder(vaultPath);
  const entry = holder === null ? null : await readEntry(pidFilePath(vaultPath));
  return entry?.pid === holder?.pid ? (entry?.start ?? null) : null;
}

/** Enters this process and returns null, or returns the live server that holds the vault. */
export async function enterHolder(vaultPath: string): Promise<Holder | null> {
  const file = pidFilePath(vaultPath);
  for (;;) {
    const entry = await ownEntry(vaultPath, null);
    if (await ignoring(writeFile(file, entry, { flag: "wx", mode: 0o600 }), "EEXIST")) return null;
    const holder = await findHolder(vaultPath);
    if (holder !== null) return holder;
    await ignoring(unlink(file), "ENOENT"); // its server is dead, or serves another home
  }
}

/** Adds where this process, which must have been entered, listens. */
async function announceHolder(vaultPath: string, announcement: Announcement): Promise<void> {
  await moveIntoPlace(systemFiles, pidFilePath(vaultPath), await ownEntry(vaultPath, announcement));
}

export async function removeHolder(vaultPath: string): Promise<void> {
  await ignoring(unlink(pidFilePath(vaultPath)), "ENOENT");
}

function pidFilePath(vaultPath: string): string {
  return join(vaultPath, "server.pid");
}

async function ownEntry(vaultPath: string, announcement: Announcement | null): Promise<Buffer> {
  const vault = await vaultIdentity(vaultPath);
  const entry: Entry = { pid: process.pid, started: startTime(process.pid) ?? "", url: null, start: null, vault };
  return Buffer.from(JSON.stringify({ ...entry, ...announcement }));
}

/** Identifies a directory independently of its path. */
async function vaultIdentity(vaultPath: string): Promise<string> {
  const { dev, ino } = await stat(vaultPath, { bigint: true });
  return `${dev}:${ino}`;
}

/** Paths and an address: an entry is shorter. */
const maxEntryBytes = 64 * 1024;

async function readEntry(file: string): Promise<Entry | null> {
  const bytes = await readFileBytes(systemFiles, file, maxEntryBytes).catch((error: unknown) => {
    if (error instanceof NotPlainFile) return null; // a claim replaces it, or says what it is
    throw error;
  });
  if (bytes === null) return null;
  try {
    const { pid, started, url, vault, start } = JSON.parse(Buffer.from(bytes).toString("utf8")) as Partial<Entry>;
    if (!Number.isSafeInteger(pid) || pid === undefined || pid <= 0) return null;
    return { pid, started: String(started), url: textOrNull(url), vault: textOrNull(vault), start: startOrNull(start) };
  } catch {
    return null;
  }
}

/** The entry may be of any version, or edited. */
function startOrNull(value: unknown): ServerStart | null {
  const { settings, given, restartedBy } = { ...(value as Partial<ServerStart> | null) };
  if (typeof settings !== "object" || settings === null || typeof given !== "object" || given === null) return null;
  return { settings, given, restartedBy: textOrNull(restartedBy) };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

interface Lock {
  release(): Promise<void>;
}

/** Returns null where the system has no such lock. @throws StartError when it is unknown whether it is taken. */
async function lockDirectory(path: string, { flock }: FileOperations): Promise<Lock | "taken" | null> {
  if (process.platform !== "linux") return null;
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  const outcome = await flock(directory.fd).catch(async (error: unknown) => {
    await directory.close();
    throw error;
  });
  if (outcome === "ours") return { release: () => directory.close() };
  await directory.close();
  return outcome === "taken" ? outcome : bindAbstract(path);
}

/** Named by device and inode, so that every path of the directory means the same lock. */
async function bindAbstract(path: string): Promise<Lock | "taken"> {
  const { dev, ino } = await lstat(path, { bigint: true });
  const server = createServer((connection) => connection.destroy()).unref();
  try {
    await listening(server, `\0strongroom-${dev}-${ino}`);
  } catch (error) {
    if (systemCode(error) === "EADDRINUSE") return "taken";
    throw error;
  }
  server.on("error", () => {}); // connections are not expected
  return { release: async () => void server.close() };
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path }, resolve);
  });
}
