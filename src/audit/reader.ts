/** Pages of an audit log: finds a record by its number, and reads the records after it. */
import { constants } from "node:fs";
import { join } from "node:path";
import { type FileOperations, noFollow, type OpenFile } from "../files/durable.js";
import { fileNumbers } from "./files.js";
import { auditFileName, type Bytes, firstLine, lineSequenceNumber, parseHeaderLine } from "./format.js";
import { linesIn } from "./groups.js";

export type AuditRecord = { readonly seq: number; readonly time: string; readonly event: string } & {
  readonly [member: string]: unknown;
};

/** Far more than a line, so that each piece has a whole one. */
const pieceBytes = 128 * 1024;

/** Returns up to `limit` records that follow record `after`. Lines that are not records are skipped. */
export async function readRecords(
  files: FileOperations,
  directory: string,
  after: number,
  limit: number,
): Promise<readonly AuditRecord[]> {
  const records: AuditRecord[] = [];
  for (const file of await filesFrom(files, directory, after)) {
    await withFile(files, join(directory, auditFileName(file)), async (handle) => {
      const start = await placeBefore(handle, after);
      for await (const record of parseRecords(handle, start)) {
        if (record.seq > after) records.push(record);
        if (records.length === limit) return;
      }
    });
    if (records.length === limit) break;
  }
  return records;
}

/** Returns the files that may have records after this one, ascending. */
async function filesFrom(files: FileOperations, directory: string, after: number): Promise<readonly number[]> {
  const numbers = await fileNumbers(files, directory);
  for (let i = numbers.length - 1; i > 0; i--) {
    const path = join(directory, auditFileName(numbers[i] ?? 0));
    const first = await withFile(files, path, async (handle) => parseHeaderLine(firstLine(await piece(handle, 0))));
    if (first !== null && first.seq <= after + 1) return numbers.slice(i);
  }
  return numbers;
}

/** Returns the start of a line before which no record is newer than `after`, by binary search. */
async function placeBefore(handle: OpenFile, after: number): Promise<number> {
  let [low, high] = [0, (await handle.stat()).size];
  while (high - low > pieceBytes) {
    const middle = Math.floor((low + high) / 2);
    const found = firstRecordIn(await piece(handle, middle));
    if (found !== null && found.seq <= after) low = middle + found.at;
    else high = middle;
  }
  return low;
}

/** Returns the first record that begins in this piece, and where it does. */
function firstRecordIn(bytes: Bytes): { readonly seq: number; readonly at: number } | null {
  for (const { text, start } of linesIn(bytes, bytes.indexOf(10) + 1)) {
    const seq = lineSequenceNumber(text);
    if (seq !== null) return { seq, at: start };
  }
  return null;
}

async function* parseRecords(handle: OpenFile, start: number): AsyncGenerator<AuditRecord, void, void> {
  for (let position = start; ; ) {
    let read = 0;
    for (const { text, next } of linesIn(await piece(handle, position))) {
      const record = parseRecord(text);
      if (record !== null) yield record;
      read = next;
    }
    if (read === 0) return;
    position += read;
  }
}

function parseRecord(line: string): AuditRecord | null {
  if (!line.startsWith('{"seq":')) return null;
  try {
    const record = JSON.parse(line) as AuditRecord;
    return Number.isSafeInteger(record.seq) && typeof record.event === "string" ? record : null;
  } catch {
    return null;
  }
}

async function piece(handle: OpenFile, position: number): Promise<Bytes> {
  const bytes = new Uint8Array(new ArrayBuffer(pieceBytes));
  return bytes.subarray(0, await handle.readAt(bytes, 0, position));
}

async function withFile<T>(files: FileOperations, path: string, work: (handle: OpenFile) => Promise<T>): Promise<T> {
  const handle = await files.open(path, constants.O_RDONLY | noFollow);
  try {
    return await work(handle);
  } finally {
    await handle.close();
  }
}
