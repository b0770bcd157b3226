/**
 * Owns the claim of one server on one vault. On Linux it is an abstract socket, which the kernel frees however the
 * server ends; everywhere it is also the pid file, which says who the holder is. Nothing ever has to be cleaned by hand.
 */
import { lstat } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { StartError, systemCode } from "../errors.js";
import { announceHolder, enterHolder, findHolder, type Holder, removeHolder } from "./holder.js";

export interface Claim {
  /** Tells `findHolder` where this server listens. */
  announce(url: string): Promise<void>;
  release(): Promise<void>;
}

/** @throws StartError that names the server which holds the vault. */
export async function claimVault(vaultPath: string): Promise<Claim> {
  const socket = process.platform === "linux" ? await bindAbstract(await socketName(vaultPath)) : null;
  if (socket === "taken") throw heldBy(vaultPath, await patientHolder(vaultPath));
  try {
    const holder = await enterHolder(vaultPath);
    if (holder !== null) throw heldBy(vaultPath, holder);
  } catch (error) {
    socket?.close();
    throw error;
  }
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
      await announced.catch(() => {}); // it was told where it was asked for
      await removeHolder(vaultPath);
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

/** A holder that is just starting writes its pid file a moment after it has bound the socket. */
async function patientHolder(vaultPath: string): Promise<Holder | null> {
  for (let tries = 0; tries < 20; tries++) {
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
