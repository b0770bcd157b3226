/** The process and its files as the system shows them: core dumps, debugger, environment, listeners, owners and modes. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { Check } from "./report.js";

const sigusr1 = 10;
const statusOfPid = (pid: number) => read(`/proc/${pid}/status`);

/** Facts of the machine that no promise covers, but that decide what the promises are worth. */
export function machineFacts(pid: number | null): Readonly<Record<string, string | number | null>> {
  const swapDevices = read("/proc/swaps").trimEnd().split("\n").length - 1;
  return {
    system: `${process.platform} ${process.arch}`,
    node: process.version,
    ptraceScope: numberOrNull(read("/proc/sys/kernel/yama/ptrace_scope")),
    swapDevices,
    pid,
  };
}

/** Returns what the facts of the machine leave open. */
export function weaknessesOf(facts: ReturnType<typeof machineFacts>): string[] {
  const weak: string[] = [];
  if (facts["ptraceScope"] === null || facts["ptraceScope"] === 0) {
    weak.push(
      "Other programs of the server's user can read its memory while it is unlocked: kernel.yama.ptrace_scope is not 1 or more",
    );
  }
  if (facts["swapDevices"] !== 0)
    weak.push("Whether the swap device is encrypted: pages that were swapped out may stay on it");
  return weak;
}

/** `ports`: those that the server announces. */
export function checkSurroundings(pid: number, home: string, ports: readonly number[]): Check[] {
  return [...checkProcess(pid), checkListeners(pid, ports), checkModes(home)];
}

function checkProcess(pid: number): Check[] {
  const filter = read(`/proc/${pid}/coredump_filter`).trim();
  const limit = /^Max core file size +(\S+)/m.exec(read(`/proc/${pid}/limits`))?.[1];
  const caught = BigInt(`0x${/^SigCgt:\s*(\w+)/m.exec(statusOfPid(pid))?.[1] ?? "0"}`);
  const isCaught = ((caught >> BigInt(sigusr1 - 1)) & 1n) === 1n;
  const swapped = /^VmSwap:\s*(\d+)/m.exec(statusOfPid(pid))?.[1] ?? "0";
  const options = nodeOptions(pid);
  return [
    check("memory in core dumps", "none", /^0+$/.test(filter) || limit === "0" ? "none" : `filter ${filter}`),
    check("SIGUSR1, which would open Node's debugger", "handled", isCaught ? "handled" : "not handled"),
    check("debugger flags at start", "none", options.length === 0 ? "none" : options.join(" ")),
    reported("memory swapped out", `${swapped} kB`),
    reported("ptrace scope", read("/proc/sys/kernel/yama/ptrace_scope").trim() || "no restriction by Yama"),
  ];
}

/** In the arguments and in NODE_OPTIONS. */
function nodeOptions(pid: number): string[] {
  const environment = read(`/proc/${pid}/environ`).split("\0");
  const options = environment.find((line) => line.startsWith("NODE_OPTIONS="))?.slice("NODE_OPTIONS=".length) ?? "";
  const words = [...options.split(/\s+/), ...read(`/proc/${pid}/cmdline`).split("\0")];
  return words.filter((word) => /^--inspect|^--heapsnapshot|^--heap-prof|^--diagnostic/.test(word)).map(shown);
}

function checkListeners(pid: number, ports: readonly number[]): Check {
  const own = socketsOf(pid);
  const listeners = ["tcp", "tcp6"].flatMap((table) => {
    const rows = read(`/proc/${pid}/net/${table}`).trimEnd().split("\n").slice(1);
    return rows
      .map((row) => row.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => {
        return state === "0A" && own.has(inode ?? "");
      });
  });
  const open = listeners.map(([, local = ""]) => Number.parseInt(local.split(":")[1] ?? "", 16)).sort((a, b) => a - b);
  const list = (numbers: readonly number[]) => [...new Set(numbers)].join(", ") || "none";
  const unknown = open.filter((port) => !ports.includes(port));
  return check("TCP ports that were not announced", "none", list(unknown));
}

function socketsOf(pid: number): ReadonlySet<string> {
  const inodes = new Set<string>();
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    } catch {
      // closed since the directory was read
    }
  }
  return inodes;
}

/** The home and all in it: owned by one user and readable by no other, except the certificate. */
function checkModes(home: string): Check {
  const owner = lstatSync(home).uid;
  const open: string[] = [];
  const look = (path: string): void => {
    const { mode, uid } = lstatSync(path);
    const isDirectory = (mode & 0o170000) === 0o040000;
    const others = path.endsWith("/cert.pem") ? 0o033 : 0o077;
    if (uid !== owner || (mode & others) !== 0) open.push(path);
    if (isDirectory) for (const name of readdirSync(path)) look(join(path, name));
  };
  try {
    look(home);
  } catch {
    // a file that is replaced while this looks: the next run sees it
  }
  return check(
    "files in the home that others may use",
    "none",
    open.length === 0 ? "none" : shown(open.slice(0, 3).join(", ")),
  );
}

function check(what: string, expected: string, found: string): Check {
  return { step: "surroundings", state: null, what, expected, found, holds: expected === found };
}

function reported(what: string, found: string): Check {
  return { step: "surroundings", state: null, what, expected: "reported", found, holds: true };
}

function read(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}

function numberOrNull(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

/** Escapes what could control a terminal. */
export function shown(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
