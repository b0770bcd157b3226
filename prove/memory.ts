/**
 * A copy of a process's memory (Linux, proc(5)), or a core dump. The process stands still only while its pages are copied;
 * everything is judged afterwards.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, read, readdirSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";
import { promisify } from "node:util";
import { readPlain } from "./home.js";
import { CouldNotLook } from "./report.js";

/** Bytes that follow each other in memory. `offset`: in the copy. */
export type Region = { readonly address: number; readonly offset: number; readonly length: number };

export type MemoryCopy = {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly regions: readonly Region[];
  /** Milliseconds for which the process stood still; 0 for a dump. */
  readonly stoodStillMs: number;
  /** Bytes of memory that the copy should have and has not. */
  readonly missing: number;
};

type Range = { readonly start: number; readonly end: number };

const pageBytes = 4096;
/** Room for pages that the process touches between the count of its pages and the stop. */
const spareBytes = 16 * 2 ** 20;

/**
 * Copies all readable memory of a process, except pages that are the unchanged pages of a file. The caller wipes the copy.
 * @throws CouldNotLook
 */
export async function copyMemory(pid: number): Promise<MemoryCopy> {
  const files: number[] = [];
  const open = (name: string): number => {
    const file = openSync(`/proc/${pid}/${name}`, "r");
    files.push(file);
    return file;
  };
  try {
    const [memory, pagemap] = [open("mem"), open("pagemap")];
    const changed = changedMappings(pid);
    const bytes = zeroed(totalLength(presentRanges(pid, changed, pagemap)) + spareBytes);
    return await whileStopped(pid, async () => {
      const ranges = joined(presentRanges(pid, changed, pagemap));
      const regions = rangeRegions(ranges, bytes.length);
      const unread = await readRegions(memory, regions, bytes);
      const end = regions.at(-1);
      const length = end === undefined ? 0 : end.offset + end.length;
      return { regions, bytes: bytes.subarray(0, length), missing: totalLength(ranges) - length + unread };
    });
  } catch (error) {
    throw isDenied(error)
      ? new CouldNotLook(`this user may not read the memory of process ${pid}: run prove as root`)
      : error;
  } finally {
    for (const file of files) closeSync(file);
  }
}

/**
 * @param asRoot command line that repeats the call as root
 * @throws CouldNotLook when there is no such process, or this user may not read its memory
 */
export function mustBeReadable(pid: number, asRoot: string): void {
  try {
    closeSync(openSync(`/proc/${pid}/mem`, "r"));
  } catch (error) {
    if (!isDenied(error)) throw new CouldNotLook(`there is no process ${pid}: see --pid`);
    throw new CouldNotLook(
      `this user may not read the memory of process ${pid}. Run  ${asRoot}  or make a dump with  ${gcore(pid)}  ` +
        "and pass it with --dump FILE",
    );
  }
}

/** Touched, so that the copy meets no page fault. */
function zeroed(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new ArrayBuffer(length)).fill(1).fill(0);
}

function isDenied(error: unknown): boolean {
  return error instanceof Error && "code" in error && ["EACCES", "EPERM"].includes(String(error.code));
}

/** The command that makes a dump of a process whose core dumps have no memory. */
export function gcore(pid: number | "PID"): string {
  return `sudo gdb -p ${pid} -batch -ex "set use-coredump-filter off" -ex "gcore FILE"`;
}

/** Returns the addresses of the read-only mappings of files of which the process has changed pages. */
function changedMappings(pid: number): ReadonlySet<number> {
  const changed = new Set<number>();
  let start = 0;
  for (const line of readFileSync(`/proc/${pid}/smaps`, "latin1").split("\n")) {
    const mapping = /^([0-9a-f]+)-/.exec(line);
    if (mapping) start = Number.parseInt(mapping[1] ?? "", 16);
    if (/^Anonymous: +[1-9]/.test(line)) changed.add(start);
  }
  return changed;
}

/** Pages that are in memory or swapped out; all others were never written to. */
function presentRanges(pid: number, changed: ReadonlySet<number>, pagemap: number): Range[] {
  const lines = readFileSync(`/proc/${pid}/maps`, "latin1").trimEnd().split("\n");
  return lines.flatMap((line) => {
    const [, from = "", to = "", mode = "", file = ""] = /^(\w+)-(\w+) (\S+) \S+ \S+ \S+ *(.*)$/.exec(line) ?? [];
    const mapping = { start: Number.parseInt(from, 16), end: Number.parseInt(to, 16) };
    const isFilePage = mode[1] !== "w" && file.startsWith("/") && !changed.has(mapping.start);
    return mode[0] !== "r" || isFilePage || file.startsWith("[v") ? [] : presentPages(mapping, pagemap);
  });
}

/** Reads 8 bytes a page from the page map: bit 63, present; bit 62, swapped out. */
function presentPages({ start, end }: Range, pagemap: number): Range[] {
  const pages = (end - start) / pageBytes;
  const entries = Buffer.alloc(pages * 8);
  readSync(pagemap, entries, 0, entries.length, (start / pageBytes) * 8);
  const ranges: Range[] = [];
  for (let i = 0, from = -1; i <= pages; i++) {
    const present = i < pages && ((entries[i * 8 + 7] ?? 0) & 0xc0) !== 0;
    if (present && from < 0) from = i;
    if (present || from < 0) continue;
    ranges.push({ start: start + from * pageBytes, end: start + i * pageBytes });
    from = -1;
  }
  return ranges;
}

function totalLength(ranges: readonly Range[]): number {
  return ranges.reduce((sum, { start, end }) => sum + end - start, 0);
}

/** A key may lie across the boundary of two mappings. */
function joined(ranges: readonly Range[]): Range[] {
  const result: Range[] = [];
  for (const range of ranges) {
    const last = result.at(-1);
    if (last?.end === range.start) result[result.length - 1] = { start: last.start, end: range.end };
    else result.push(range);
  }
  return result;
}

/** The places of the ranges in a copy of `most` bytes. */
function rangeRegions(ranges: readonly Range[], most: number): Region[] {
  const regions: Region[] = [];
  let offset = 0;
  for (const { start, end } of ranges) {
    const length = Math.min(end - start, most - offset);
    if (length > 0) regions.push({ address: start, offset, length });
    offset += length;
  }
  return regions;
}

const pieceBytes = 2 * 2 ** 20;
const readPiece = promisify(read);

/**
 * Reads pieces in parallel, in the threads in which Node reads files: the processors of the stopped process are free. Returns
 * how many bytes could not be read.
 */
async function readRegions(memory: number, regions: readonly Region[], bytes: Uint8Array): Promise<number> {
  const pieces = regions.flatMap(({ address, offset, length }) =>
    Array.from({ length: Math.ceil(length / pieceBytes) }, (_, i) => {
      const at = i * pieceBytes;
      return { address: address + at, offset: offset + at, length: Math.min(pieceBytes, length - at) };
    }),
  );
  let unread = 0;
  await Promise.all(
    pieces.map(async (piece) => {
      for (let done = 0; done < piece.length; ) {
        const length = await readPages(memory, bytes, piece, done);
        if (length === 0) unread += pageBytes;
        done += length || pageBytes;
      }
    }),
  );
  return unread;
}

/** Returns 0 for a page that cannot be read. */
async function readPages(memory: number, bytes: Uint8Array, { address, offset, length }: Region, done: number) {
  try {
    return (await readPiece(memory, bytes, offset + done, length - done, address + done)).bytesRead;
  } catch {
    return 0;
  }
}

/** Stops a process, runs `copy`, and lets it continue, also if this process is killed in between. */
async function whileStopped(pid: number, copy: () => Promise<Omit<MemoryCopy, "stoodStillMs">>): Promise<MemoryCopy> {
  const guard = await continueAtTheLatest(pid);
  const usual = ownPriority();
  try {
    setOwnPriority({ threads: constants.priority.PRIORITY_HIGHEST, session: constants.priority.PRIORITY_HIGHEST });
    const begun = performance.now();
    process.kill(pid, "SIGSTOP");
    waitUntilStopped(pid);
    const copied = await copy();
    process.kill(pid, "SIGCONT");
    return { ...copied, stoodStillMs: performance.now() - begun };
  } finally {
    setOwnPriority(usual);
    guard.stdin?.end(); // the guard lets the process continue
    await once(guard, "close");
  }
}

/** Nice values: of this process's threads, and of its session among the others (sched(7), autogroup). */
type Priority = { readonly threads: number; readonly session: number };

const autogroup = "/proc/self/autogroup";

function ownPriority(): Priority {
  const text = existsSync(autogroup) ? readFileSync(autogroup, "latin1") : "";
  return { threads: getPriority(), session: Number(/nice (-?\d+)/.exec(text)?.[1] ?? 0) };
}

/** Only root may raise it: then the stopped process does not wait for other programs that keep the processors busy. */
function setOwnPriority({ threads, session }: Priority): void {
  unlessRefused(() => existsSync(autogroup) && writeFileSync(autogroup, String(session)));
  for (const thread of readdirSync("/proc/self/task")) unlessRefused(() => setPriority(Number(thread), threads));
}

function unlessRefused(change: () => unknown): void {
  try {
    change();
  } catch {
    // it stays as it is
  }
}

/** A shell that waits for the end of its input, which comes when this process closes it or dies. */
async function continueAtTheLatest(pid: number): Promise<ChildProcess> {
  const guard = spawn("/bin/sh", ["-c", 'read -r _; kill -CONT "$0"', String(pid)], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true, // a Ctrl-C must not end it
  });
  await once(guard, "spawn");
  return guard;
}

/** SIGSTOP reaches threads that run on other processors a moment later. */
function waitUntilStopped(pid: number): void {
  const isStopped = (thread: string) => /^\d+ \(.*\) [TtZX] /s.test(threadStat(pid, thread));
  const deadline = performance.now() + 1000;
  while (performance.now() < deadline) {
    if (readdirSync(`/proc/${pid}/task`).every(isStopped)) return;
  }
}

function threadStat(pid: number, thread: string): string {
  try {
    return readFileSync(`/proc/${pid}/task/${thread}/stat`, "latin1");
  } catch {
    return "0 () X "; // the thread ended
  }
}

/** Node reads no more in one piece. */
const mostDumpBytes = 2 ** 31 - 1;

/** Reads a core dump as `gcore` writes it (ELF, 64 bits, little endian), or raw bytes. @throws CouldNotLook */
export function readDump(file: string): MemoryCopy {
  const read = readPlain(file, mostDumpBytes);
  const bytes = new Uint8Array(new ArrayBuffer(0));
  const whole = read.buffer instanceof ArrayBuffer ? new Uint8Array(read.buffer, read.byteOffset, read.length) : bytes;
  const raw = { regions: [{ address: 0, offset: 0, length: read.length }], missing: 0 };
  return { bytes: whole, stoodStillMs: 0, ...(loadSegments(read) ?? raw) };
}

const elfMagic = "7f454c460201";
const coreType = 4;
const loadType = 1;
const writable = 2;
const headerBytes = 56;

/** Null for raw bytes. @throws CouldNotLook */
function loadSegments(file: Buffer): Pick<MemoryCopy, "regions" | "missing"> | null {
  if (file.subarray(0, 6).toString("hex") !== elfMagic || file.length < 64 || file.readUInt16LE(16) !== coreType)
    return null;
  const [headersAt, size, count] = [Number(file.readBigUInt64LE(32)), file.readUInt16LE(54), file.readUInt16LE(56)];
  if (count > 0 && (size < headerBytes || headersAt + count * size > file.length))
    throw new CouldNotLook("the core dump is cut off");
  const regions: Region[] = [];
  let missing = 0;
  for (let i = 0; i < count; i++) {
    const at = headersAt + i * size;
    const field = (offset: number) => Number(file.readBigUInt64LE(at + offset));
    const [offset, address, length, inMemory] = [field(8), field(16), field(32), field(40)];
    if (file.readUInt32LE(at) !== loadType) continue;
    const present = Math.max(0, Math.min(length, file.length - offset));
    if (present > 0) regions.push({ address, offset, length: present });
    // Memory that is not writable may be left out: it is in the program's files.
    const isWritable = (file.readUInt32LE(at + 4) & writable) !== 0;
    missing += (isWritable ? Math.max(length, inMemory) : length) - present;
  }
  return { regions, missing };
}
