/** Descriptors that this process was started with, beside its standard streams. */
import { closeSync, readdirSync, readFileSync } from "node:fs";

/** O_CLOEXEC in the `flags` of proc_pid_fdinfo(5). */
const closeOnExec = 0o2000000;

/**
 * Closes what the caller left open (Linux). Node opens its own with O_CLOEXEC, and sets that at its start for the lowest 16
 * descriptors and those next to them alone: any other would pass to programs.
 */
export function closeForeignDescriptors(): void {
  for (const descriptor of readdirSync("/proc/self/fd").map(Number)) {
    if (descriptor > 2 && isInherited(descriptor)) closeSync(descriptor);
  }
}

function isInherited(descriptor: number): boolean {
  try {
    const [, flags = "0"] = /^flags:\s+([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1")) ?? [];
    return (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    return false; // that of the directory itself, which is closed by now
  }
}
