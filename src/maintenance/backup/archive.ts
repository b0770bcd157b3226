/** Archives, read and written whole: every file with its checksum, in bounded memory. */
import { createHash, hash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { open, unlink } from "node:fs/promises";
import { StartError, systemCode, VaultError } from "../../errors.js";
import { ignoring, noFollow, OpenFile } from "../../files/durable.js";
import { failureReason } from "../../files/file-problem.js";
import { Semaphore } from "../../locks.js";
import { BackupError, headerName, LineSet, type ListedSums, readSums, shownName, sumLine, sumsName } from "./format.js";
import { BufferedFile, InvalidTar, readTar, type TarEntry, TarWriter } from "./tar.js";

export type SnapshotFile = {
  readonly name: string;
  readonly size: number;
  readonly modified: Date;
  readonly content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
};

/** Larger files are read piece by piece when their turn comes. */
const maxReadAheadBytes = 2 ** 20;

/** Bounds memory: entries are held whole while they are used, and large ones one at a time. */
const entriesAtOnce = 16;
const largeEntryBytes = 4 * 2 ** 20;
const maxSecretBytes = 2 ** 30;

/** Suffix of the temp file with the checksums. */
export const sumsSuffix = "-sums";

/** Upper bound for a vault's header, in bytes. */
const maxHeaderBytes = 16_384;

export type Phase = "saving" | "verifying" | "restoring";

/** Progress and cancellation. */
export type Watch = {
  /** How much is done, of how much: files while saving, otherwise bytes. */
  readonly tick: (phase: Phase, done: number, total: number) => void;
  readonly signal: AbortSignal;
};

/** Writes files, in the order of their names, to a new, durable archive; returns their number. `count`: of secrets. */
export async function writeArchive(
  files: AsyncIterable<SnapshotFile>,
  count: number,
  file: string,
  watch: Watch,
): Promise<number> {
  const tar = await TarWriter.create(file);
  try {
    return await withSums(file, async (sums, sumsFile) => {
      let written = 0;
      for await (const each of files) {
        watch.signal.throwIfAborted();
        await sums.write(Buffer.from(sumLine(each.name, await addFile(tar, each)), "latin1"));
        watch.tick("saving", written++, count);
      }
      await sums.sync();
      await addFile(tar, { ...(await readAhead(sumsFile)), name: sumsName });
      await tar.end();
      return written;
    });
  } finally {
    await tar.close();
  }
}

/** Checksums are collected beside the archive: the snapshot's disk may be full. */
async function withSums<T>(archive: string, work: (sums: BufferedFile, file: string) => Promise<T>): Promise<T> {
  const file = `${archive}${sumsSuffix}`;
  const sums = await BufferedFile.create(file);
  try {
    return await work(sums, file);
  } finally {
    await sums.close();
    await ignoring(unlink(file), "ENOENT");
  }
}

/** Returns the SHA-256 of what was written. */
async function addFile(tar: TarWriter, { name, size, modified, content }: SnapshotFile): Promise<string> {
  const sum = createHash("sha256");
  const summed = async function* () {
    for await (const chunk of content) {
      sum.update(chunk);
      yield chunk;
    }
  };
  await tar.add(name, size, modified, summed());
  return sum.digest("hex");
}

export async function readAhead(path: string): Promise<Omit<SnapshotFile, "name">> {
  const file = await OpenFile.open(path, constants.O_RDONLY | noFollow);
  try {
    const { size, mtime: modified } = await file.stat();
    const content = size > maxReadAheadBytes ? createReadStream(path) : [await readWhole(file, size)];
    return { size, modified, content };
  } finally {
    await file.close();
  }
}

async function readWhole(file: OpenFile, size: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; ) {
    const more = await file.read(bytes, at);
    if (more === 0) return bytes.subarray(0, at);
    at += more;
  }
  return bytes;
}

/** Called with each file in the archive. */
export type Take = (name: string, bytes: Uint8Array<ArrayBuffer>) => Promise<void>;

/**
 * Reads a whole archive, passes each file to `take`, and verifies all checksums. Returns a digest that identifies it.
 * @throws BackupError damaged
 */
export async function readArchive(file: string, take: Take, phase: Phase, watch: Watch): Promise<string> {
  try {
    await mustBePlainTar(file);
    const found = new LineSet();
    const listed = await readEntries(file, found, take, phase, watch);
    if (listed === null) throw damaged(file, `has no valid ${sumsName}`);
    if (!found.equals(listed.lines))
      throw damaged(file, `is truncated or changed: its content does not match its ${sumsName}`);
    return listed.digest;
  } catch (error) {
    if (watch.signal.aborted) throw interrupted();
    if (error instanceof BackupError || error instanceof VaultError || error instanceof StartError) throw error;
    const code = systemCode(error);
    const isOfSystem = code !== undefined && error instanceof Error && "syscall" in error;
    if (isOfSystem) throw new BackupError("unusable", `${file} cannot be read${failureReason(code)}`, error);
    throw damaged(file, "is not a tar file, or is truncated", error);
  }
}

/** Several entries at once; returns what the checksum file lists. */
async function readEntries(
  file: string,
  found: LineSet,
  take: Take,
  phase: Phase,
  { tick, signal }: Watch,
): Promise<ListedSums | null> {
  const work = new ConcurrentWork();
  let listed: ListedSums | null = null;
  try {
    for await (const entry of readTar(file, (done, total) => tick(phase, done, total))) {
      signal.throwIfAborted();
      if (entry.name === sumsName) listed = await sumsIn(file, entry);
      else {
        const bytes = await checked(file, entry).read();
        found.add(sumLine(entry.name, hash("sha256", bytes, "hex")));
        await work.begin(() => take(entry.name, bytes));
        if (entry.size >= largeEntryBytes) await work.end();
      }
    }
  } finally {
    await work.settled(); // before the caller cleans up
  }
  await work.end();
  return listed;
}

/** Work in bounded concurrency, whose first failure is thrown by the next call. */
class ConcurrentWork {
  readonly #slots = new Semaphore(entriesAtOnce);
  readonly #running = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | null = null;

  async begin(work: () => Promise<void>): Promise<void> {
    await this.#slots.acquire();
    if (this.#failure !== null) throw this.#failure.error;
    const running = work()
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#running.delete(running);
        this.#slots.release();
      });
    this.#running.add(running);
  }

  /** Resolves once nothing runs. @throws the first failure */
  async end(): Promise<void> {
    await this.settled();
    if (this.#failure !== null) throw this.#failure.error;
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }
}

async function sumsIn(file: string, entry: TarEntry): Promise<ListedSums | null> {
  const sums = await readSums(mustBeFile(file, entry).chunks());
  if (sums !== null && "twice" in sums) throw twoFiles(file, sums.twice);
  return sums;
}

/** DANGER: sizes come from the archive, and must be checked before anything is read. */
function checked(file: string, entry: TarEntry): TarEntry {
  const most = entry.name === headerName ? maxHeaderBytes : maxSecretBytes;
  if (entry.size <= most) return mustBeFile(file, entry);
  throw damaged(file, `holds ${shownName(entry.name)} of ${entry.size} bytes, larger than any file of a vault`);
}

function mustBeFile(file: string, entry: TarEntry): TarEntry {
  if (entry.type === "File" || entry.type === "OldFile") return entry;
  throw damaged(file, `holds ${shownName(entry.name)}, which is not a plain file`);
}

/** Magic numbers of gzip (RFC 1952) and Zstandard (RFC 8878), which are not unpacked here. */
const compressed: readonly (readonly [magic: string, tool: string])[] = [
  ["1f8b", "gunzip"],
  ["28b52ffd", "unzstd"],
];

async function mustBePlainTar(file: string): Promise<void> {
  const handle = await open(file);
  try {
    const { buffer } = await handle.read(Buffer.alloc(512), 0, 512, 0);
    const start = buffer.toString("hex", 0, 4);
    const [, tool] = compressed.find(([magic]) => start.startsWith(magic)) ?? [];
    if (tool !== undefined) throw new BackupError("unusable", `${file} is compressed: unpack it with  ${tool}`);
    if (buffer.toString("latin1", 257, 262) !== "ustar") throw new InvalidTar();
  } finally {
    await handle.close();
  }
}

export function interrupted(): BackupError {
  return new BackupError("aborted", "interrupted: nothing was kept");
}

export function twoFiles(file: string, name: string): BackupError {
  return damaged(file, `has two files ${shownName(name)}`);
}

function damaged(file: string, how: string, cause?: unknown): BackupError {
  return new BackupError("damaged", `${file} ${how}: use another backup`, cause);
}
