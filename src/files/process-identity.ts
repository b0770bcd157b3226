/** Identity of processes beyond their pid, which the system reuses. */
import { readFileSync } from "node:fs";
import { systemCode } from "../errors.js";

/** `started`: see `startTime`. */
type ProcessIdentity = { readonly pid: number; readonly started: string };

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, started: startTime(process.pid) ?? "" };
}

/** Returns whether the process of this pid is alive and `started` identifies it. */
export function isAlive(pid: number, started: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (systemCode(error) !== "EPERM") return false;
  }
  const now = startTime(pid);
  return now === null || now === started; // otherwise the pid was reused
}

/** Returns boot id and start tick of a process (proc(5), field 22 of stat); null without /proc. */
export function startTime(pid: number): string | null {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return `${boot} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}`;
  } catch {
    return null;
  }
}
