/** Owns what the process does about itself before it holds a secret; answers what could not be done. */
import { writeFile } from "node:fs/promises";
import inspector from "node:inspector";

/** For the log: one sentence for each protection that this machine or this start does not allow. */
export async function hardenProcess(): Promise<readonly string[]> {
  process.umask(0o077);
  process.on("SIGUSR1", () => {}); // without a handler, Node answers SIGUSR1 by opening its debugger
  const weak: string[] = [];
  if (!(await keepMemoryOutOfCoreDumps())) weak.push("memory may be written into a core dump: set ulimit -c 0");
  if (inspector.url() !== undefined) weak.push("the debugger is open: whoever reaches its port can read every secret");
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
