/**
 * Files of the audit log: groups of records, which number the records and continue the chain; their appending; the removal of
 * the oldest files; and the end of a log, where the next server continues.
 */
import { constants } from "node:fs";
import { basename, join } from "node:path";
import {
  type FileOperations,
  makeDirectory,
  missingAsNull,
  noFollow,
  type OpenFile,
  readFileBytes,
  syncDirectory,
} from "../files/durable.js";
import {
  type Bytes,
  base64url,
  type Checkpoint,
  chainBytes,
  chainLine,
  chainLineBytes,
  chainOf,
  checkpointIn,
  fileNameOf,
  fileNumberOf,
  firstChain,
  firstLine,
  headerLine,
  keptFiles,
  longestFile,
  nextChain,
  parseHeaderLine,
  seqOf,
  textOf,
} from "./format.js";

const appending = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | noFollow;

type Current = { readonly handle: OpenFile; readonly file: number; readonly inode: number | bigint };

export class LogFiles {
  readonly #files: FileOperations;
  readonly #directory: string;
  #current: Current | null = null;
  /** The group whose last attempt failed: part of it may be in the file. */
  #failed: Group | null = null;

  constructor(files: FileOperations, directory: string) {
    this.#files = files;
    this.#directory = directory;
  }

  /** Makes the directory if it is missing. */
  async prepare(): Promise<void> {
    await makeDirectory(this.#files, this.#directory);
  }

  /**
   * Appends a group. After an error part of it may be in the file: append the same group again, and no other.
   * DANGER: only what a failed attempt at this very group left is cut off, never anything else.
   */
  async append(group: Group): Promise<void> {
    try {
      const { handle } = await this.#at(group);
      await handle.writeFile(group.bytes);
      if (group.durable) await handle.sync();
      this.#failed = null;
    } catch (error) {
      this.#failed = group;
      await this.#close();
      throw error;
    }
    if (group.durable) await this.#closeIfReplaced(group);
  }

  /** Makes all that was appended durable. */
  async close(): Promise<void> {
    await this.#current?.handle.sync().finally(() => this.#close());
  }

  async #at(group: Group): Promise<Current> {
    if (this.#current?.file === group.file) return this.#current;
    await this.#current?.handle.sync();
    await this.#close();
    const handle = await this.#files.open(join(this.#directory, group.fileName), appending, 0o600);
    const found = await handle.stat();
    this.#current = { handle, file: group.file, inode: found.ino };
    const left = found.size - group.at;
    if (this.#failed === group && left > 0 && left <= group.bytes.length) await handle.truncate(group.at);
    if (group.at === 0) await this.#begun(group.file);
    return this.#current;
  }

  /** An old file that cannot be removed must not stop the log; the next file tries again. */
  async #begun(file: number): Promise<void> {
    await syncDirectory(this.#files, this.#directory);
    const old = (await fileNumbers(this.#files, this.#directory)).filter((number) => number <= file - keptFiles);
    for (const number of old) await this.#files.unlink(join(this.#directory, fileNameOf(number))).catch(() => {});
  }

  /** If another program replaced the file, the new one is appended to, so that the break in the chain shows. */
  async #closeIfReplaced({ fileName }: Group): Promise<void> {
    const found = await this.#files.lstat(join(this.#directory, fileName)).catch(() => null);
    if (found?.ino !== this.#current?.inode) await this.#close();
  }

  async #close(): Promise<void> {
    const handle = this.#current?.handle;
    this.#current = null;
    await handle?.close().catch(() => {}); // what was written is in the file
  }
}

/** Returns the numbers of the log's files, ascending. */
export async function fileNumbers(files: Pick<FileOperations, "readdir">, directory: string): Promise<number[]> {
  return (await logFilesIn(files, directory)).numbers;
}

/**
 * Returns the numbers of the log's files, ascending; and of files that only have such a name: their numbers are far from all
 * others. One that was put there, or restored, must not be taken for the log's end, or the log would continue behind it.
 */
export async function logFilesIn(
  files: Pick<FileOperations, "readdir">,
  directory: string,
): Promise<{ readonly numbers: number[]; readonly strays: readonly number[] }> {
  const names = (await missingAsNull(files.readdir(directory))) ?? [];
  const all = names.flatMap((name) => fileNumberOf(basename(name)) ?? []).sort((a, b) => a - b);
  const runs: number[][] = [];
  for (const number of all) {
    const last = runs.at(-1);
    if (last !== undefined && number - (last.at(-1) ?? 0) <= keptFiles) last.push(number);
    else runs.push([number]);
  }
  const [longest = []] = runs.toSorted((a, b) => b.length - a.length); // of equal ones the first
  return { numbers: longest, strays: all.filter((number) => !longest.includes(number)) };
}

/** Where the next group goes. `length`: bytes in the file; 0: no first line yet. `seq`: number of the next record. */
export type LogPosition = {
  readonly log: string;
  readonly file: number;
  readonly length: number;
  readonly seq: number;
  readonly chain: Bytes;
};

export type Group = {
  readonly fileName: string;
  readonly file: number;
  /** Where in the file it begins. */
  readonly at: number;
  readonly bytes: Bytes;
  readonly records: number;
  /** Number of its last record. */
  readonly seq: number;
  readonly chain: string;
  /** Whether it is synced to the disk at once. */
  readonly durable: boolean;
};

type GroupOptions = {
  /** The group goes into the current file, even if that is full. */
  readonly stays?: boolean;
  readonly durable?: boolean;
};

export class GroupMaker {
  #position: LogPosition;
  readonly #maxFileBytes: number;

  constructor(position: LogPosition, maxFileBytes: number) {
    this.#position = position;
    this.#maxFileBytes = maxFileBytes;
  }

  get position(): LogPosition {
    return this.#position;
  }

  /** The next group begins a new file, unless it stays. */
  get isFull(): boolean {
    return this.#position.length >= this.#maxFileBytes;
  }

  /** `records`: the text of each behind its `seq`, with a line feed. */
  make(records: readonly string[], { stays = false, durable = false }: GroupOptions = {}): Group {
    const before = this.isFull && !stays ? nextFile(this.#position) : this.#position;
    const { log, file, length, chain } = before;
    const header = length === 0 ? headerLine({ file, log, seq: before.seq, chain: base64url(chain) }) : "";
    const content = header + records.map((text, i) => `{"seq":${before.seq + i}${text}`).join("");
    const size = Buffer.byteLength(content);
    const bytes = new Uint8Array(new ArrayBuffer(size + chainLineBytes));
    const buffer = Buffer.from(bytes.buffer);
    buffer.write(content);
    const after = nextChain(chain, bytes.subarray(0, size));
    buffer.write(chainLine(after), size, "latin1");
    const seq = before.seq + records.length;
    this.#position = { log, file, length: length + bytes.length, seq, chain: after };
    const place = { fileName: fileNameOf(file), file, at: length };
    return { ...place, bytes, records: records.length, seq: seq - 1, chain: base64url(after), durable };
  }
}

function nextFile(position: LogPosition): LogPosition {
  return { ...position, file: position.file + 1, length: 0 };
}

/** Longer than any two groups: a longer end without a whole group was not left by a server. */
const windowBytes = 2 ** 20;
const maxHeaderBytes = 512;

/** `cut`: length of the unfinished group that a crash left, and that was cut off. */
type LogEnd = { readonly position: LogPosition; readonly cut: number };

/** `newName`: the name of a new log, which begins when there is none. */
export async function findEnd(files: FileOperations, directory: string, newName: string): Promise<LogEnd> {
  const [newest = 0, ...older] = (await fileNumbers(files, directory)).reverse();
  const last = newest === 0 ? "unreadable" : await endOfFile(files, directory, newest, true);
  if (typeof last !== "string") return last;
  const begun = { file: last === "empty" ? newest : newest + 1, length: 0 };
  for (const file of older) {
    const end = await endOfFile(files, directory, file, false);
    if (typeof end !== "string") return { position: { ...end.position, ...begun }, cut: 0 };
  }
  return { position: { log: newName, ...begun, seq: 1, chain: firstChain(newName) }, cut: 0 };
}

/** `cuts`: an unfinished group is removed. "empty": the file has at most an unfinished first line. */
async function endOfFile(
  files: FileOperations,
  directory: string,
  file: number,
  cuts: boolean,
): Promise<LogEnd | "empty" | "unreadable"> {
  const flags = (cuts ? constants.O_RDWR : constants.O_RDONLY) | noFollow;
  const handle = await files.open(join(directory, fileNameOf(file)), flags);
  try {
    const { size } = await handle.stat();
    const end = await findLastGroup(handle, size);
    if (end === "unreadable") return end;
    const length = end === "empty" ? 0 : end.length;
    if (cuts && length < size) await handle.truncate(length);
    if (end === "empty") return end;
    const { log, seq, chain } = end;
    return { position: { log, file, length, seq: seq + 1, chain }, cut: size - length };
  } finally {
    await handle.close();
  }
}

/** `isIntact`: the chain behind the checkpoint, or from the log's beginning where there is none, leads to the end. */
type LatestCheckpoint = { readonly checkpoint: Checkpoint | null; readonly isIntact: boolean };

/** Finds the newest checkpoint before this end of the log, and follows the chain from there to the end. */
export async function findLatestCheckpoint(
  files: FileOperations,
  directory: string,
  end: LogPosition,
): Promise<LatestCheckpoint> {
  const numbers = (await fileNumbers(files, directory)).filter((file) => file <= end.file).reverse();
  let next = base64url(end.chain);
  for (const file of numbers) {
    const whole = await readFileBytes(files, join(directory, fileNameOf(file)), longestFile);
    const bytes = whole !== null && file === end.file ? whole.subarray(0, end.length) : whole;
    if (bytes === null || bytes.length === 0) continue;
    const { checkpoint, start, chain } = latestIn(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), end.log);
    if (chain === null || chainThrough(bytes, start, chain) !== next) return { checkpoint: null, isIntact: false };
    if (checkpoint !== null) return { checkpoint, isIntact: true };
    next = chain;
  }
  return { checkpoint: null, isIntact: true };
}

/** `start`: of the group with the checkpoint, or of the file; `chain`: the value before it, null when that is missing. */
type LatestInFile = { readonly checkpoint: Checkpoint | null; readonly start: number; readonly chain: string | null };

function latestIn(bytes: Buffer, log: string): LatestInFile {
  const header = parseHeaderLine(textOf(bytes.subarray(0, Math.max(0, bytes.indexOf(10)))));
  const at = bytes.lastIndexOf('"event":"checkpoint"');
  if (at < 0) return { checkpoint: null, start: 0, chain: header?.chain ?? null };
  const lineStart = bytes.lastIndexOf(10, at) + 1;
  const line = textOf(bytes.subarray(lineStart, bytes.indexOf(10, at)));
  const before = textOf(bytes.subarray(bytes.lastIndexOf(10, lineStart - 2) + 1, Math.max(0, lineStart - 1)));
  const isFirst = header !== null && parseHeaderLine(before) !== null;
  const chain = isFirst ? header.chain : chainOf(before);
  const checkpoint = chain === null ? null : checkpointOf(line, log, chain);
  return { checkpoint, start: isFirst ? 0 : lineStart, chain: checkpoint === null ? null : chain };
}

function checkpointOf(line: string, log: string, chain: string): Checkpoint | null {
  try {
    return checkpointIn(JSON.parse(line) as object, log, chain);
  } catch {
    return null;
  }
}

/** Returns the chain's value at the end; null when a group does not continue it. */
function chainThrough(bytes: Bytes, start: number, before: string): string | null {
  let chain = chainBytes(before);
  let [groupStart, lineStart] = [start, start];
  for (let at = bytes.indexOf(10, start); at >= 0; at = bytes.indexOf(10, lineStart)) {
    const claimed = chainOf(textOf(bytes.subarray(lineStart, at)));
    if (claimed !== null) {
      chain = nextChain(chain, bytes.subarray(groupStart, lineStart));
      if (base64url(chain) !== claimed) return null;
      groupStart = at + 1;
    }
    lineStart = at + 1;
  }
  return base64url(chain);
}

type FoundEnd = GroupEnd & { readonly log: string };

async function findLastGroup(handle: OpenFile, size: number): Promise<FoundEnd | "empty" | "unreadable"> {
  const start = await readPart(handle, 0, Math.min(size, maxHeaderBytes));
  const header = parseHeaderLine(firstLine(start));
  if (header === null) return size < maxHeaderBytes && !start.includes(10) ? "empty" : "unreadable";
  const from = Math.max(0, size - windowBytes);
  const end = lastGroup(await readPart(handle, from, size - from));
  if (end !== null) return { ...end, log: header.log, length: from + end.length };
  const before = { length: 0, seq: header.seq - 1, chain: chainBytes(header.chain) };
  return from > 0 ? "unreadable" : { ...before, log: header.log };
}

type GroupEnd = { readonly length: number; readonly seq: number; readonly chain: Bytes };

/** `bytes`: a file from its beginning, or from anywhere, to its end. */
function lastGroup(bytes: Bytes): GroupEnd | null {
  let end: GroupEnd | null = null;
  let seq = 0;
  let [groupStart, lineStart] = [0, 0];
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, lineStart)) {
    const line = textOf(bytes.subarray(lineStart, at));
    const chain = chainOf(line);
    if (chain === null) seq = seqOf(line) ?? seq;
    else {
      if (end !== null && isLostPage(end.chain, bytes.subarray(groupStart, lineStart), chain)) return end;
      end = seq === 0 ? end : { length: at + 1, seq, chain: chainBytes(chain) };
      groupStart = at + 1;
    }
    lineStart = at + 1;
  }
  return end;
}

/** After a power cut a file may have zeros where a page was not written; records have none. */
function isLostPage(before: Bytes, group: Bytes, claimed: string): boolean {
  return group.includes(0) && Buffer.compare(nextChain(before, group), chainBytes(claimed)) !== 0;
}

async function readPart(handle: OpenFile, position: number, length: number): Promise<Bytes> {
  const bytes = new Uint8Array(new ArrayBuffer(length));
  let read = 0;
  while (read < length) {
    const more = await handle.readAt(bytes, read, position + read);
    if (more === 0) break;
    read += more;
  }
  return bytes.subarray(0, read);
}
