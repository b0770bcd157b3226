/**
 * Files of the audit log: groups of records, which number the records and continue the chain; their appending; and the removal
 * of the oldest files.
 */
import { constants } from "node:fs";
import { basename, join } from "node:path";
import {
  type FileOperations,
  makeDirectory,
  missingAsNull,
  noFollow,
  type OpenFile,
  syncDirectory,
} from "../files/durable.js";
import {
  auditFileName,
  auditFileNumber,
  type Bytes,
  base64url,
  chainLine,
  chainLineBytes,
  headerLine,
  keptFiles,
  nextChain,
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
    for (const number of old) await this.#files.unlink(join(this.#directory, auditFileName(number))).catch(() => {});
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
 * others. A restored file, for example, must not be taken for the log's end, or the log would continue after it.
 */
export async function logFilesIn(
  files: Pick<FileOperations, "readdir">,
  directory: string,
): Promise<{ readonly numbers: number[]; readonly strays: readonly number[] }> {
  const names = (await missingAsNull(files.readdir(directory))) ?? [];
  const all = names.flatMap((name) => auditFileNumber(basename(name)) ?? []).sort((a, b) => a - b);
  const runs: number[][] = [];
  for (const number of all) {
    const last = runs.at(-1);
    if (last !== undefined && number - (last.at(-1) ?? 0) <= keptFiles) last.push(number);
    else runs.push([number]);
  }
  const [longest = []] = runs.toSorted((a, b) => b.length - a.length); // of equal ones the first
  return { numbers: longest, strays: all.filter((number) => !longest.includes(number)) };
}

/** Place of the next group. `length`: bytes in the file; 0: no first line yet. `seq`: number of the next record. */
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
  /** Offset in the file. */
  readonly at: number;
  readonly bytes: Bytes;
  readonly records: number;
  /** Number of its last record. */
  readonly seq: number;
  readonly chain: string;
  /** Whether it is synced to the disk immediately. */
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
    const before =
      this.isFull && !stays ? { ...this.#position, file: this.#position.file + 1, length: 0 } : this.#position;
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
    const place = { fileName: auditFileName(file), file, at: length };
    return { ...place, bytes, records: records.length, seq: seq - 1, chain: base64url(after), durable };
  }
}
