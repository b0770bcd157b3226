/** The process and its files as the system shows them: core dumps, debugger, environment, listeners, owners and modes. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { type Home, missingAsNull } from "./home.js";
import type { Check } from "./report.js";
import { debuggerFlags, dumpFilter, hasEmptyDumps } from "./weaknesses.js";

const sigusr1 = 10;

/** @param ports the ports that the server announces; null when they are unknown */
export function checkSurroundings(pid: number, home: Home | null, ports: readonly number[] | null): Check[] {
  const listeners = ports === null ? [] : [checkListeners(pid, ports)];
  return [...checkProcess(pid), ...listeners, ...(home === null ? [] : [checkModes(home)])];
}

function checkProcess(pid: number): Check[] {
  const caught = BigInt(`0x${/^SigCgt:\s*(\w+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? "0"}`);
  const isCaught = ((caught >> BigInt(sigusr1 - 1)) & 1n) === 1n;
  const flags = debuggerFlags(pid).map(shown);
  return [
    check("memory in core dumps", "none", hasEmptyDumps(pid) ? "none" : `filter ${dumpFilter(pid)}`),
    check("SIGUSR1, which would open Node's debugger", "handled", isCaught ? "handled" : "not handled"),
    check("debugger flags at start", "none", flags.length === 0 ? "none" : flags.join(" ")),
  ];
}

function checkListeners(pid: number, ports: readonly number[]): Check {
  const own = socketInodes(pid);
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

function socketInodes(pid: number): ReadonlySet<string> {
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
function checkModes(home: Home): Check {
  return sharedFiles(home.asOwner(() => sharedIn(home.path, home.owner)));
}

/** Returns the paths that others may use in a file or directory tree. A file removed since it was listed is ignored. */
function sharedIn(path: string, owner: number): string[] {
  const found = missingAsNull(() => lstatSync(path));
  if (found === null) return [];
  const others = path.endsWith("/cert.pem") ? 0o033 : 0o077;
  const own = found.uid !== owner || (found.mode & others) !== 0 ? [path] : [];
  const names = found.isDirectory() ? (missingAsNull(() => readdirSync(path)) ?? []) : [];
  return [...own, ...names.flatMap((name) => sharedIn(join(path, name), owner))];
}

export function sharedFiles(open: readonly string[]): Check {
  const found = open.length === 0 ? "none" : shown(open.slice(0, 3).join(", "));
  return check("files in the home that others may use", "none", found);
}

function check(what: string, expected: string, found: string): Check {
  return { step: "surroundings", state: null, what, expected, found, holds: expected === found };
}

function read(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}

/** Escapes what could control a terminal. */
export function shown(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
