/**
 * Archive format of backups: a plain tar file of ciphertext, which any tar can read.
 *
 *   header.json
 *   secrets/…      the tree of blobs, as in the vault
 *   SHA256SUMS     of every file but itself: detects truncation and changes
 */
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { open, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { pipeline } from "node:stream/promises";
import pLimit from "p-limit";
import pMap from "p-map";
import { create, Parser, type ReadEntry } from "tar";
import { BackupError } from "./backup-error.js";
import { formatSums, parseSums, type Sums, sameSums, sumOf, sumsName } from "./checksums.js";

export const headerName = "header.json";
export const secretsName = "secrets";

/** Bounds memory: entries are held whole while they are looked at. */
const entriesAtOnce = 8;
const maxEntryBytes = 512 * 2 ** 20;

/** Who waits for the work. */
export type Watch = {
  /** Told how much is done, of how much: files that are written, bytes that are read. */
  readonly tick: (done: number, total: number) => void;
  /** Breaks it off. */
  readonly signal: AbortSignal;
};

/** Makes a new archive of a snapshot, and answers how many files are in it. The file lasts when this resolves. */
export async function writeArchive(snapshot: string, file: string, { tick, signal }: Watch): Promise<number> {
  const sums = await sumTree(snapshot, signal);
  await writeFile(join(snapshot, sumsName), formatSums(sums), { flag: "wx", mode: 0o600 });
  let done = 0;
  const onWriteEntry = () => tick(Math.min(++done, sums.size), sums.size); // directories are entries too
  const tar = create({ cwd: snapshot, portable: true, strict: true, onWriteEntry }, [
    headerName,
    secretsName,
    sumsName,
  ]);
  await pipeline(tar, createWriteStream(file, { flags: "wx", mode: 0o600, flush: true }), { signal });
  return sums.size;
}

/** Told of each file in the archive. */
export type Take = (name: string, bytes: Uint8Array<ArrayBuffer>) => Promise<void>;

/**
 * Reads an archive to its end, hands out each file, and checks all checksums.
 * @throws BackupError damaged
 */
export async function readArchive(file: string, take: Take, watch: Watch): Promise<void> {
  const found: Sums = new Map();
  let promised: Sums | null = null;
  const sort: Take = async (name, bytes) => {
    if (name === sumsName) promised = parseSums(Buffer.from(bytes).toString("latin1"));
    else if (found.has(name)) throw damaged(file, `has two files ${name}`);
    else {
      found.set(name, sumOf(bytes));
      await take(name, bytes);
    }
  };
  await readEntries(file, sort, watch);
  if (promised === null) throw damaged(file, `has no ${sumsName}`);
  if (!sameSums(found, promised))
    throw damaged(file, `was cut short or changed: it does not hold what its ${sumsName} says`);
}

/** Several entries at once; the archive is not read on before there is room for the next. */
async function readEntries(file: string, take: Take, { tick, signal }: Watch): Promise<void> {
  const limit = pLimit(entriesAtOnce);
  const work: Promise<void>[] = [];
  const parser = new Parser({ strict: true });
  const failed = new AbortController();
  let failure: unknown = null;
  const abort = (error: unknown) => {
    failure ??= error;
    failed.abort();
  };
  parser.on("entry", (entry: ReadEntry) => {
    work.push(limit(() => takeEntry(file, entry, take)).catch(abort));
  });
  parser.on("error", abort); // it may come while the end is not awaited
  await parse(file, parser, AbortSignal.any([failed.signal, signal]), tick).catch(abort);
  if (failure === null) await Promise.all(work);
  if (failure !== null) throw signal.aborted ? interrupted() : readFailure(file, failure);
}

async function parse(file: string, parser: Parser, signal: AbortSignal, tick: Watch["tick"]): Promise<void> {
  await mustBePlainTar(file);
  const ended = once(parser, "end", { signal });
  ended.catch(() => {}); // awaited below, if it is reached
  const { size } = await stat(file);
  const input = createReadStream(file, { signal });
  for await (const chunk of input) {
    if (!parser.write(chunk as Buffer)) await once(parser, "drain", { signal });
    tick(input.bytesRead, size);
  }
  parser.end();
  await ended;
}

/** RFC 1952, section 2.3.1. */
const gzipMagic = 0x1f8b;

/** The parser would unpack compressed ones by itself, however large that makes them; ours never are. */
async function mustBePlainTar(file: string): Promise<void> {
  const handle = await open(file);
  try {
    const { buffer } = await handle.read(Buffer.alloc(512), 0, 512, 0);
    if (buffer.readUInt16BE(0) === gzipMagic)
      throw new BackupError("unusable", `${file} is compressed: unpack it with  gunzip`);
    if (buffer.toString("latin1", 257, 262) !== "ustar") throw damaged(file, "is not a tar file, or was cut short");
  } finally {
    await handle.close();
  }
}

async function takeEntry(file: string, entry: ReadEntry, take: Take): Promise<void> {
  if (entry.type === "Directory") {
    entry.resume();
    return;
  }
  if (entry.type !== "File" && entry.type !== "OldFile") throw damaged(file, `holds ${entry.path}, which is no file`);
  if (entry.size > maxEntryBytes) throw damaged(file, `holds ${entry.path}, which is larger than any secret`);
  const chunks: Buffer[] = [];
  for await (const chunk of entry) chunks.push(chunk);
  await take(entry.path, new Uint8Array(Buffer.concat(chunks)));
}

function readFailure(file: string, error: unknown): unknown {
  if (error instanceof BackupError) return error;
  const code = error instanceof Error && "tarCode" in error ? String(error.tarCode) : null;
  if (code !== null) return damaged(file, "is not a tar file, or was cut short");
  return new BackupError("unusable", `${file} cannot be read: see that it is there and yours`, error);
}

export function interrupted(): BackupError {
  return new BackupError("aborted", "interrupted: nothing was kept");
}

function damaged(file: string, how: string): BackupError {
  return new BackupError("damaged", `${file} ${how}: use another backup`);
}

/** The checksums of all files under a directory. */
async function sumTree(directory: string, signal: AbortSignal): Promise<Sums> {
  const sums: Sums = new Map();
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const add = async (file: string) => {
    sums.set(relative(directory, file).replaceAll("\\", "/"), sumOf(await readFile(file)));
  };
  await pMap(files, add, { concurrency: entriesAtOnce, signal });
  return sums;
}
