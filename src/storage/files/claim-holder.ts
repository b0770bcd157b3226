/**
 * Pid file in the vault's directory: which server holds the vault, and where it listens. It counts only while that
 * process (identified by pid and start time) is alive, and only in that directory, not in a copy of it. It never has to be
 * cleaned by hand.
 */
import { readFile, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ignoring, missingAsNull, moveIntoPlace, systemFiles } from "../../files/durable.js";
import { isAlive, startTime } from "../../files/process-identity.js";

/** `url` is null until the server listens. */
export type Holder = { readonly pid: number; readonly url: string | null };

/** Where the server listens; `socket` is null unless it is outside the home. */
export type Announcement = { readonly url: string; readonly socket: string | null };

/** `vault`: device and inode of the directory; null in files of earlier versions. */
type Entry = Holder & { readonly started: string; readonly vault: string | null };

/** Returns the live server that holds the vault; null when there is none. */
export async function findHolder(vaultPath: string): Promise<Holder | null> {
  const entry = await readEntry(pidFileOf(vaultPath));
  if (entry === null || !isAlive(entry.pid, entry.started)) return null;
  if (entry.vault !== null && entry.vault !== (await identityOf(vaultPath))) return null;
  return { pid: entry.pid, url: entry.url };
}

/** Enters this process and returns null, or returns the live server that holds the vault. */
export async function enterHolder(vaultPath: string): Promise<Holder | null> {
  const file = pidFileOf(vaultPath);
  for (;;) {
    const entry = await ownEntry(vaultPath, null);
    if (await ignoring(writeFile(file, entry, { flag: "wx", mode: 0o600 }), "EEXIST")) return null;
    const holder = await findHolder(vaultPath);
    if (holder !== null) return holder;
    await ignoring(unlink(file), "ENOENT"); // its server is dead, or serves another home
  }
}

/** Adds where this process, which must have been entered, listens. */
export async function announceHolder(vaultPath: string, announcement: Announcement): Promise<void> {
  await moveIntoPlace(systemFiles, pidFileOf(vaultPath), await ownEntry(vaultPath, announcement));
}

export async function removeHolder(vaultPath: string): Promise<void> {
  await ignoring(unlink(pidFileOf(vaultPath)), "ENOENT");
}

function pidFileOf(vaultPath: string): string {
  return join(vaultPath, "server.pid");
}

async function ownEntry(vaultPath: string, announcement: Announcement | null): Promise<Buffer> {
  const vault = await identityOf(vaultPath);
  const entry: Entry = { pid: process.pid, started: startTime(process.pid) ?? "", url: null, vault };
  return Buffer.from(JSON.stringify({ ...entry, ...announcement }));
}

/** Identifies a directory independently of its path. */
async function identityOf(vaultPath: string): Promise<string> {
  const { dev, ino } = await stat(vaultPath, { bigint: true });
  return `${dev}:${ino}`;
}

async function readEntry(file: string): Promise<Entry | null> {
  const text = await missingAsNull(readFile(file, "utf8"));
  if (text === null) return null;
  try {
    const { pid, started, url, vault } = JSON.parse(text) as Partial<Entry>;
    if (!Number.isSafeInteger(pid) || pid === undefined || pid <= 0) return null;
    return { pid, started: String(started), url: textOrNull(url), vault: textOrNull(vault) };
  } catch {
    return null;
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
