/** Files of the audit log: appending of groups, and removal of the oldest files. */
import { constants } from "node:fs";
import { basename, join } from "node:path";
import { type FileOperations, makeDirectory, missingAsNull, noFollow, syncDirectory } from "../files/durable.js";
import type { OpenFile } from "../files/open-file.js";
import { fileNameOf, fileNumberOf, keptFiles } from "./audit-format.js";
import type { Group } from "./group-maker.js";

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
  const names = (await missingAsNull(files.readdir(directory))) ?? [];
  return names.flatMap((name) => fileNumberOf(basename(name)) ?? []).sort((a, b) => a - b);
}
