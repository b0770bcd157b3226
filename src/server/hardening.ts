/** Owns what the process does about itself before it holds a secret; answers what could not be done. */
import { stat, writeFile } from "node:fs/promises";
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

/**
 * For the log: which of the files that settings name are open to others. That is no error as it is in the home: who else
 * may use them, a supervisor that hands them out for instance, is not ours to decide.
 */
export async function warnOfOpenFiles(files: readonly (string | null)[]): Promise<readonly string[]> {
  const weak: string[] = [];
  for (const file of files) {
    if (file === null || process.platform === "win32") continue;
    const { mode } = await stat(file);
    if ((mode & 0o027) !== 0) weak.push(`others may use ${file}: take their rights away (chmod 600)`);
  }
  return weak;
}
