/** Search for a program as execvp(3) does it, and whether this process can turn into it. */
import { accessSync, closeSync, constants, openSync, readFileSync, readSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { systemCode } from "../../../errors.js";
import type { Io } from "../io.js";
import { say } from "../output.js";

/** Exit statuses as shells use them. */
export const notFound = 127;
const notExecutable = 126;

type Found = { readonly file: string } | { readonly status: number; readonly problem: string };

/** Where execvp looks when there is no PATH. */
const defaultPath = "/bin:/usr/bin";

/** Returns the program's file, or why it cannot be started. */
export function findProgram(program: string, path: string = defaultPath): Found {
  const files = program.includes("/")
    ? [program]
    : path
        .split(delimiter)
        .filter(isSearchable)
        .map((directory) => join(directory, program));
  const problems = program === "" ? ["ENOENT"] : files.map(problemOfFile);
  const file = files[problems.indexOf(null)];
  if (file !== undefined) return { file };
  const denied = problems.find((code) => code !== "ENOENT" && code !== "ENOTDIR");
  if (denied === undefined) return { status: notFound, problem: `${program}: the command is not found` };
  return { status: notExecutable, problem: `${program}: the command cannot be executed (${denied})` };
}

/** Returns whether a program can be started; if not, says why and sets the exit status. */
export function canStart(io: Io, program: string): boolean {
  const found = findProgram(program, io.env["PATH"]);
  if ("file" in found) return true;
  say(io, `strongroom: ${found.problem}\n`);
  io.exitCode = found.status;
  return false;
}

/** As for bash, a directory that may not be searched has no commands: such as root's own, in the PATH that `su` leaves. */
function isSearchable(directory: string): boolean {
  return problemOfAccess(directory === "" ? "." : directory) === null;
}

function problemOfFile(file: string): string | null {
  return problemOfAccess(file) ?? (statSync(file).isFile() ? null : "EACCES");
}

function problemOfAccess(path: string): string | null {
  try {
    accessSync(path, constants.X_OK);
    return null;
  } catch (error) {
    return systemCode(error) ?? "unknown reason";
  }
}

/**
 * Whether execve(2) is sure to accept the file and the texts. DANGER: where it refuses, older versions of Node abort
 * the process: what is not known here is started as a child instead.
 */
export function isSurelyExecutable(file: string, texts: readonly string[]): boolean {
  return totalBytes(texts) < sizeLimit() && (isBinaryLikeOurs(file) || isScriptOfBinary(file));
}

/** Counts bytes as execve(2) does: each text with its final NUL and a pointer. */
function totalBytes(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 9, 4096);
}

/** Linux allows a quarter of the stack's limit, at least 128 KiB and at most 6 MiB; other systems at least 256 KiB. */
function sizeLimit(): number {
  try {
    const [, soft] = /^Max stack size +(\d+|unlimited)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
    const stack = soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
    return Math.min(6 * 2 ** 20, Math.max(2 ** 17, stack / 4));
  } catch {
    return 2 ** 18;
  }
}

/** Whether a file has the format, processor and dynamic loader of the Node that runs this. */
function isBinaryLikeOurs(file: string): boolean {
  const [ours, its] = [process.execPath, file].map(readHead);
  if (ours === undefined || its === undefined || ours.length < 64 || its.length < 64) return false;
  if (!isElf64(ours)) return ours.subarray(0, 8).equals(its.subarray(0, 8)) || its.readUInt32BE(0) === universal;
  if (!ours.subarray(0, 6).equals(its.subarray(0, 6)) || ours.readUInt16LE(18) !== its.readUInt16LE(18)) return false;
  const loader = elfLoader(its);
  return loader === null || loader === elfLoader(ours);
}

/** Mach-O for several processors. */
const universal = 0xcafebabe;

function isElf64(head: Buffer): boolean {
  return head.readUInt32BE(0) === 0x7f454c46 && head[4] === 2 && head[5] === 1; // 64 bits, little-endian
}

/** The dynamic loader that an ELF file names; null for a static one, and "" where that is not in the head. */
function elfLoader(head: Buffer): string | null {
  const [offset, size, count] = [Number(head.readBigUInt64LE(32)), head.readUInt16LE(54), head.readUInt16LE(56)];
  for (let at = offset; at < offset + size * count; at += size) {
    if (at + 40 > head.length) return "";
    if (head.readUInt32LE(at) !== 3) continue; // PT_INTERP
    const start = Number(head.readBigUInt64LE(at + 8));
    return head.toString("latin1", start, start + Number(head.readBigUInt64LE(at + 32)));
  }
  return null;
}

/** A script with a line `#!/path/of/program`; without one, execvp gives it to a shell, and execve refuses it. */
function isScriptOfBinary(file: string): boolean {
  const [, interpreter] = /^#![ \t]*(\/[^\s]+)/.exec(readHead(file)?.toString("latin1", 0, 256) ?? "") ?? [];
  return interpreter !== undefined && problemOfFile(interpreter) === null && isBinaryLikeOurs(interpreter);
}

/** Undefined where the file may be executed and not read. */
function readHead(file: string): Buffer | undefined {
  try {
    const descriptor = openSync(file, "r");
    try {
      const head = Buffer.alloc(16_384);
      return head.subarray(0, readSync(descriptor, head));
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return undefined;
  }
}
