/** Protections of a process that handles secrets: no memory in core dumps, no debugger on SIGUSR1. */
import { readFileSync, writeFileSync } from "node:fs";
import { findWeaknesses, startWeaknesses } from "../prove/weaknesses.js";

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

/** Returns all weaknesses of this process and its machine, as `strongroom prove` lists them. */
export async function weaknesses(): Promise<readonly string[]> {
  return findWeaknesses("self", await isDebugged());
}

/** Returns a sentence for the log for each protection that is missing because of how the process was started. */
export async function missingProtections(): Promise<readonly string[]> {
  return startWeaknesses("self", await isDebugged());
}

async function isDebugged(): Promise<boolean> {
  const { default: inspector } = await import("node:inspector"); // slow to load: not for every command
  return inspector.url() !== undefined;
}

function readDumpFilter(): string | null {
  try {
    return readFileSync(filterFile, "latin1").trim();
  } catch {
    return null;
  }
}
