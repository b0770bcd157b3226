/**
 * Owns the kernel's lock on a directory: one process at a time has it, and it is free at once however that process ends.
 *
 * Linux only. It is flock(2) on the directory itself, which holds between containers that share it, leaves no file behind,
 * and is out of reach for whoever may not open the directory. Node cannot call it, so flock(1) does, on a directory that
 * it inherits: the lock belongs to the open directory, not to the command, and stays when that has ended. Where there is
 * no flock(1), an abstract socket named after the directory stands in; it holds within one network namespace.
 */
import { spawnSync } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { StartError, systemCode } from "../../errors.js";

export interface Lock {
  release(): Promise<void>;
}

/** Null where this system has no such lock. @throws StartError when nobody can tell whether it is taken. */
export async function lockDirectory(path: string): Promise<Lock | "taken" | null> {
  if (process.platform !== "linux") return null;
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  const outcome = flock(directory);
  if (outcome === "ours") return { release: () => directory.close() };
  await directory.close();
  return outcome === "taken" ? outcome : bindAbstract(path);
}

function flock({ fd }: FileHandle): "ours" | "taken" | "impossible" {
  const env = { PATH: process.env["PATH"] ?? "" };
  const { status, error, signal } = spawnSync("flock", ["-n", "3"], { stdio: ["ignore", "ignore", "ignore", fd], env });
  if (error !== undefined && !missing.includes(systemCode(error) ?? "")) throw error;
  if (signal !== null) throw new StartError(`flock, which locks the vault, was ended by ${signal}: start again`);
  if (status === 0) return "ours";
  return status === 1 ? "taken" : "impossible"; // no such command, or a file system without locks
}

/** There is no such command, or it may not be run here; anything else may pass, and must not weaken the claim. */
const missing: readonly string[] = ["ENOENT", "EACCES", "EPERM"];

/** By device and inode, so that every name of the directory leads to the same lock. */
async function bindAbstract(path: string): Promise<Lock | "taken"> {
  const { dev, ino } = await lstat(path, { bigint: true });
  const server = createServer((connection) => connection.destroy()).unref();
  try {
    await listening(server, `\0strongroom-${dev}-${ino}`);
  } catch (error) {
    if (systemCode(error) === "EADDRINUSE") return "taken";
    throw error;
  }
  server.on("error", () => {}); // nobody has any business connecting
  return { release: async () => void server.close() };
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path }, resolve);
  });
}
