/**
 * Weaknesses that no promise covers, but that limit their worth: the only list, for prove's reports, the review page
 * and the server's log.
 */
import { existsSync, readFileSync } from "node:fs";

export type MachineFacts = { readonly ptraceScope: number | null; readonly swapDevices: number };

/** Facts of the machine. `ptraceScope`: null when it cannot be read. */
export function factsOfMachine(): MachineFacts {
  const scope = read(`${kernel}/yama/ptrace_scope`).trim();
  return {
    ptraceScope: scope === "" ? null : Number(scope),
    swapDevices: Math.max(0, read("/proc/swaps").trimEnd().split("\n").length - 1),
  };
}

/** All weaknesses of a process and its machine, as sentences. `isDebugged`: a debugger's port is known to be open. */
export function findWeaknesses(pid: number | "self", isDebugged = false): string[] {
  return [...startWeaknesses(pid, isDebugged), ...machineWeaknesses(pid)];
}

/** Returns the weaknesses that starting the server differently would avoid. */
export function startWeaknesses(pid: number | "self", isDebugged = false): string[] {
  const weak: string[] = [];
  if (!hasEmptyDumps(pid)) weak.push("memory may be written into a core dump: set ulimit -c 0");
  const flags = debuggerFlags(pid);
  if (isDebugged || flags.some((flag) => flag.startsWith("--inspect")))
    weak.push("the debugger is open: anyone who reaches its port can read every secret");
  for (const flag of flags.filter((each) => !each.startsWith("--inspect")))
    weak.push(`Node may write memory to files: start the server without ${flag}`);
  return weak;
}

const kernel = "/proc/sys/kernel";

function machineWeaknesses(pid: number | "self"): string[] {
  if (process.platform !== "linux") return [];
  const { ptraceScope, swapDevices } = factsOfMachine();
  const weak: string[] = [];
  if (ptraceScope === null && !existsSync(kernel))
    weak.push(
      "other programs of the server's user may be able to read its memory: kernel.yama.ptrace_scope cannot be seen",
    );
  else if (ptraceScope === null || ptraceScope === 0)
    weak.push(
      "other programs of the server's user can read its memory while it is unlocked: kernel.yama.ptrace_scope is not 1 or more",
    );
  if (swapDevices > 0) {
    const swapped = swappedKiB(pid);
    const now = swapped > 0 ? `, as ${swapped} KiB of it are now` : "";
    weak.push(`memory may be swapped out${now}, and stay on the swap device: encrypt it, or set MemorySwapMax=0`);
  }
  return weak;
}

export function hasEmptyDumps(pid: number | "self"): boolean {
  return /^0+$/.test(dumpFilter(pid)) || dumpLimit(pid) === "0";
}

export function dumpFilter(pid: number | "self"): string {
  return read(`/proc/${pid}/coredump_filter`).trim();
}

function dumpLimit(pid: number | "self"): string | undefined {
  return /^Max core file size +(\S+)/m.exec(read(`/proc/${pid}/limits`))?.[1];
}

/** Returns the debugger's flags in the arguments and in NODE_OPTIONS. */
export function debuggerFlags(pid: number | "self"): string[] {
  const environment = read(`/proc/${pid}/environ`).split("\0");
  const options = environment.find((line) => line.startsWith("NODE_OPTIONS="))?.slice("NODE_OPTIONS=".length) ?? "";
  const words = [...options.split(/\s+/), ...read(`/proc/${pid}/cmdline`).split("\0")];
  return words.filter((word) => /^--inspect|^--heapsnapshot|^--heap-prof|^--diagnostic/.test(word));
}

function swappedKiB(pid: number | "self"): number {
  return Number(/^VmSwap:\s*(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0);
}

function read(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}
