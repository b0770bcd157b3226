/** Hardening of the process before it holds a secret. */
import { writeFile } from "node:fs/promises";
import inspector from "node:inspector";

/** Returns, for the log, one sentence for each protection that is not available here. */
export async function hardenProcess(): Promise<readonly string[]> {
  process.umask(0o077);
  process.on("SIGUSR1", () => {}); // without a handler, Node opens its debugger on SIGUSR1
  const weak: string[] = [];
  if (!(await keepMemoryOutOfCoreDumps())) weak.push("memory may be written into a core dump: set ulimit -c 0");
  if (inspector.url() !== undefined)
    weak.push("the debugger is open: anyone who reaches its port can read every secret");
  return weak;
}

/** Linux, core(5): a filter of 0 leaves no mapping to dump; the kernel applies it to all threads. */
async function keepMemoryOutOfCoreDumps(): Promise<boolean> {
  try {
    await writeFile("/proc/self/coredump_filter", "0");
    return true;
  } catch {
    return false;
  }
}
