/**
 * Owns the claim of one server on one vault. On Linux it is an abstract socket, which the kernel frees however the
 * server ends; everywhere it is also a pid file, which says who holds the vault and counts only while that process,
 * told apart by its start time, is alive. Nothing ever has to be cleaned by hand.
 */
import { readFileSync } from "node:fs";
import { lstat, readFile, unlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { StartError, systemCode } from "../errors.js";
import { ignoring } from "./durable.js";

export interface Claim {
  release(): Promise<void>;
}

type Holder = { readonly pid: number; readonly started: string };

/** @throws StartError that names the server which holds the vault. */
export async function claimVault(vaultPath: string): Promise<Claim> {
  const pidFile = join(vaultPath, "server.pid");
  const socket = process.platform === "linux" ? await bindAbstract(await socketName(vaultPath)) : null;
  if (socket === "taken") throw heldBy(vaultPath, await patientHolder(pidFile));
  try {
    await writePidFile(vaultPath, pidFile);
  } catch (error) {
    socket?.close();
    throw error;
  }
  let released = false;
  return {
    async release() {
      if (released) return; // by now the pid file may be another server's
      released = true;
      await ignoring(unlink(pidFile), "ENOENT");
      socket?.close();
    },
  };
}

/** By device and inode, so that every name of the directory leads to the same claim. */
async function socketName(vaultPath: string): Promise<string> {
  const { dev, ino } = await lstat(vaultPath, { bigint: true });
  return `\0strongroom-${dev}-${ino}`;
}

function bindAbstract(path: string): Promise<Server | "taken"> {
  return new Promise((resolve, reject) => {
    const server = createServer((connection) => connection.destroy());
    server.once("error", (error) => {
      if (systemCode(error) === "EADDRINUSE") resolve("taken");
      else reject(error);
    });
    server.listen({ path }, () => {
      server.on("error", () => {}); // nobody has any business connecting
      resolve(server.unref());
    });
  });
}

async function writePidFile(vaultPath: string, pidFile: string): Promise<void> {
  const mine = JSON.stringify({ pid: process.pid, started: startTime(process.pid) ?? "" });
  for (;;) {
    if (await ignoring(writeFile(pidFile, mine, { flag: "wx", mode: 0o600 }), "EEXIST")) return;
    const holder = await readHolder(pidFile);
    if (holder !== null && isAlive(holder)) throw heldBy(vaultPath, holder);
    await ignoring(unlink(pidFile), "ENOENT"); // its server is dead
  }
}

/** A holder that is just starting writes its pid file a moment after it has bound the socket. */
async function patientHolder(pidFile: string): Promise<Holder | null> {
  for (let tries = 0; tries < 20; tries++) {
    const holder = await readHolder(pidFile);
    if (holder !== null && isAlive(holder)) return holder;
    await sleep(20);
  }
  return null;
}

async function readHolder(pidFile: string): Promise<Holder | null> {
  try {
    const { pid, started } = JSON.parse(await readFile(pidFile, "utf8")) as Holder;
    return Number.isSafeInteger(pid) && pid > 0 ? { pid, started } : null;
  } catch {
    return null;
  }
}

function isAlive({ pid, started }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (systemCode(error) !== "EPERM") return false;
  }
  const now = startTime(pid);
  return now === null || now === started; // otherwise the pid was given to another process
}

/** Boot and clock tick at which a process started (proc(5), field 22 of stat); null where /proc does not tell. */
function startTime(pid: number): string | null {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return `${boot} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}`;
  } catch {
    return null;
  }
}

function heldBy(vaultPath: string, holder: Holder | null): StartError {
  const who = holder === null ? "another server" : `another server (pid ${holder.pid})`;
  return new StartError(`${who} already serves ${vaultPath}: stop it, or choose another home with STRONGROOM_HOME`);
}
