/** End of an audit log, where the next server continues, and the newest checkpoint before it. */
import { constants } from "node:fs";
import { join } from "node:path";
import { type FileOperations, noFollow, type OpenFile, readFileBytes } from "../files/durable.js";
import { fileNumbers, type LogPosition } from "./files.js";
import {
  auditFileName,
  type Bytes,
  base64url,
  type Checkpoint,
  chainBytes,
  checkpointIn,
  decodeLog,
  firstChain,
  firstLine,
  longestFile,
  nextChain,
  parseChainLine,
  parseHeaderLine,
} from "./format.js";
import { groupsIn } from "./groups.js";

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
  const handle = await files.open(join(directory, auditFileName(file)), flags);
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
    const whole = await readFileBytes(files, join(directory, auditFileName(file)), longestFile);
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
  const header = parseHeaderLine(decodeLog(bytes.subarray(0, Math.max(0, bytes.indexOf(10)))));
  const at = bytes.lastIndexOf('"event":"checkpoint"');
  if (at < 0) return { checkpoint: null, start: 0, chain: header?.chain ?? null };
  const lineStart = bytes.lastIndexOf(10, at) + 1;
  const line = decodeLog(bytes.subarray(lineStart, bytes.indexOf(10, at)));
  const before = decodeLog(bytes.subarray(bytes.lastIndexOf(10, lineStart - 2) + 1, Math.max(0, lineStart - 1)));
  const isFirst = header !== null && parseHeaderLine(before) !== null;
  const chain = isFirst ? header.chain : parseChainLine(before);
  const checkpoint = chain === null ? null : parseCheckpoint(line, log, chain);
  return { checkpoint, start: isFirst ? 0 : lineStart, chain: checkpoint === null ? null : chain };
}

function parseCheckpoint(line: string, log: string, chain: string): Checkpoint | null {
  try {
    return checkpointIn(JSON.parse(line) as object, log, chain);
  } catch {
    return null;
  }
}

/** Returns the chain's value at the end; null when a group does not continue it. */
function chainThrough(bytes: Bytes, start: number, before: string): string | null {
  let chain = chainBytes(before);
  for (const { content, chain: claimed } of groupsIn(bytes, start)) {
    chain = nextChain(chain, content);
    if (base64url(chain) !== claimed) return null;
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
  for (const { content, chain, seq, next } of groupsIn(bytes)) {
    if (end !== null && isLostPage(end.chain, content, chain)) return end;
    if (seq > 0) end = { length: next, seq, chain: chainBytes(chain) };
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
