/**
 * End of an audit log, where the next server continues. Only the last part of the last file is read; `verifyLog` checks
 * the rest.
 */
import { constants } from "node:fs";
import { join } from "node:path";
import { type FileOperations, noFollow } from "../files/durable.js";
import type { OpenFile } from "../files/open-file.js";
import { type Bytes, chainBytes, chainOf, fileNameOf, firstChain, nextChain, parseHeaderLine } from "./audit-format.js";
import type { LogPosition } from "./group-maker.js";
import { fileNumbers } from "./log-files.js";
import { firstLine, seqOf, textOf } from "./log-lines.js";

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
