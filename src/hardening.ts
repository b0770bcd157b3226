/** Protections of a process that handles secrets: no memory in core dumps, no debugger on SIGUSR1. */
import { readFileSync, writeFileSync } from "node:fs";

/** Linux, core(5): which mappings a core dump holds; children inherit it, also across exec. */
const filterFile = "/proc/self/coredump_filter";

/** The filter as this process was started with it, in hex; null where there is none. */
export const inheritedDumpFilter = readDumpFilter();

/** Hardens the process, as far as the system allows. */
export function hardenProcess(): void {
  process.on("SIGUSR1", () => {}); // without a handler, Node opens its debugger
  try {
    writeFileSync(filterFile, "0"); // no mapping is dumped; the kernel applies it to all threads
  } catch {
    // not Linux, or not permitted: weaknesses() says so
  }
}

/** Returns a sentence for the log for each protection that is missing. */
export async function weaknesses(): Promise<readonly string[]> {
  const { default: inspector } = await import("node:inspector"); // slow to load: not for every command
  const weak: string[] = [];
  if (!/^0+$/.test(readDumpFilter() ?? "none")) {
    weak.push("memory may be written into a core dump: set ulimit -c 0");
  }
  if (inspector.url() !== undefined)
    weak.push("the debugger is open: anyone who reaches its port can read every secret");
  return weak;
}

function readDumpFilter(): string | null {
  try {
    return readFileSync(filterFile, "latin1").trim();
  } catch {
    return null;
  }
}
