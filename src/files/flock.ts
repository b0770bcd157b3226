/** The kernel's lock on an open directory, through flock(1), since Node cannot call flock(2). */
import { spawnSync } from "node:child_process";
import { StartError, systemCode } from "../errors.js";

/** `impossible`: there is no such command, or the file system has no locks. */
type LockOutcome = "ours" | "taken" | "impossible";

/** @throws StartError or a system error when it is unknown whether the lock is taken */
export async function flock(descriptor: number): Promise<LockOutcome> {
  const env = { PATH: process.env["PATH"] ?? "" };
  const stdio = ["ignore", "ignore", "ignore", descriptor] as const;
  const { status, error, signal } = spawnSync("flock", ["-n", "3"], { stdio: [...stdio], env });
  if (error !== undefined && !missing.includes(systemCode(error) ?? "")) throw error;
  if (signal !== null) throw new StartError(`flock, which locks the vault, was killed by ${signal}: start again`);
  if (status === 0) return "ours";
  return status === 1 ? "taken" : "impossible";
}

/** The command is missing or not permitted. Any other error may be transient, and must not weaken the claim. */
const missing: readonly string[] = ["ENOENT", "EACCES", "EPERM"];
