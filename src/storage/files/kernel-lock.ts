/**
 * Kernel lock on a directory, released by the kernel however its process ends. Linux only.
 *
 * flock(2) on the directory works between containers that share it, leaves no file behind, and cannot be acquired by
 * users who may not open the directory. Node cannot call it, so flock(1) does, on an inherited descriptor: the lock
 * belongs to the open directory and outlives the command. Without flock(1), an abstract socket named after the directory
 * stands in; it works within one network namespace.
 */
import { spawnSync } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { StartError, systemCode } from "../../errors.js";

export interface Lock {
  release(): Promise<void>;
}

/** Returns null where the system has no such lock. @throws StartError when it is unknown whether it is taken. */
export async function lockDirectory(path: string): Promise<Lock | "taken" | null> {
  if (process.platform !== "linux") return null;
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  const outcome = await flock(directory).catch(async (error: unknown) => {
    await directory.close();
    throw error;
  });
  if (outcome === "ours") return { release: () => directory.close() };
  await directory.close();
  return outcome === "taken" ? outcome : bindAbstract(path);
}

async function flock({ fd }: FileHandle): Promise<"ours" | "taken" | "impossible"> {
  const env = { PATH: process.env["PATH"] ?? "" };
  const { status, error, signal } = spawnSync("flock", ["-n", "3"], { stdio: ["ignore", "ignore", "ignore", fd], env });
  if (error !== undefined && !missing.includes(systemCode(error) ?? "")) throw error;
  if (signal !== null) throw new StartError(`flock, which locks the vault, was killed by ${signal}: start again`);
  if (status === 0) return "ours";
  return status === 1 ? "taken" : "impossible"; // no such command, or a file system without locks
}

/** The command is missing or not permitted. Any other error may be transient, and must not weaken the claim. */
const missing: readonly string[] = ["ENOENT", "EACCES", "EPERM"];

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
