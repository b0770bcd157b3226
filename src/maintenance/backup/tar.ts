/** Tar files, read and written entry by entry. Nothing is unpacked, and content is kept only when it is asked for. */
import { on } from "node:events";
import { constants, createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Header, Parser, Pax, type ReadEntry } from "tar";
import { noFollow, OpenFile } from "../../files/durable.js";

const bufferBytes = 2 ** 20;

/** New file that collects small writes into large ones. */
export class BufferedFile {
  readonly #file: OpenFile;
  readonly #buffer = Buffer.allocUnsafeSlow(bufferBytes);
  #used = 0;

  private constructor(file: OpenFile) {
    this.#file = file;
  }

  /** Creates a private file that does not exist yet. */
  static async create(path: string): Promise<BufferedFile> {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow;
    return new BufferedFile(await OpenFile.open(path, flags, 0o600));
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (bytes.length > bufferBytes - this.#used) await this.#flush();
    if (bytes.length > bufferBytes) return this.#file.writeFile(bytes);
    this.#buffer.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  /** Writes the rest and makes the file's bytes durable. */
  async sync(): Promise<void> {
    await this.#flush();
    await this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #flush(): Promise<void> {
    await this.#file.writeFile(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }
}

const blockBytes = 512;

const zeros = Buffer.alloc(2 * blockBytes);

/** Bytes that fill the last block of an entry of this size. */
function blockPadding(size: number): number {
  return (blockBytes - (size % blockBytes)) % blockBytes;
}

/**
 * Tar file written in the order given (POSIX ustar, and pax for long names). The library's `create` looks through its queue
 * at each file with several hard links, and all files of a snapshot have them: that is quadratic.
 */
export class TarWriter {
  readonly #file: BufferedFile;

  private constructor(file: BufferedFile) {
    this.#file = file;
  }

  static async create(path: string): Promise<TarWriter> {
    return new TarWriter(await BufferedFile.create(path));
  }

  /** Adds a file of exactly `size` bytes. */
  async add(
    name: string,
    size: number,
    modified: Date,
    content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  ): Promise<void> {
    await this.#file.write(tarHeader(name, size, modified));
    let left = size;
    for await (const chunk of content) {
      left -= chunk.length;
      await this.#file.write(chunk);
    }
    if (left !== 0) throw new Error(`${name} changed while it was read`);
    await this.#file.write(zeros.subarray(0, blockPadding(size)));
  }

  /** Writes the end mark and makes the file's bytes durable. */
  async end(): Promise<void> {
    await this.#file.write(zeros);
    await this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

function tarHeader(path: string, size: number, mtime: Date): Uint8Array {
  const header = new Header({ path, size, mtime, mode: 0o600, type: "File" });
  const needsPax = header.encode();
  if (header.block === undefined) throw new Error("a header is always encoded");
  return needsPax ? Buffer.concat([new Pax({ path, size, mtime }).encode(), header.block]) : header.block;
}

/** It is not a tar file, or is truncated. */
export class InvalidTar extends Error {}

export type TarEntry = {
  readonly name: string;
  /** As the `tar` library names it: "File", "SymbolicLink", … */
  readonly type: string;
  readonly size: number;
  /** Whole; check `size` first. */
  readonly read: () => Promise<Uint8Array<ArrayBuffer>>;
  readonly chunks: () => AsyncIterable<Uint8Array>;
};

const chunkBytes = 2 ** 20;

/** Longer than any name with its attributes. */
const maxMetaEntrySize = 64 * 1024;

/**
 * Yields all entries but directories, each of which must be read before the next, or is passed over. `tick` is called with
 * bytes read, of how many. @throws InvalidTar
 */
export async function* readTar(
  file: string,
  tick: (done: number, total: number) => void,
): AsyncGenerator<TarEntry, void, undefined> {
  const { size: total } = await stat(file);
  const source = createReadStream(file, { highWaterMark: chunkBytes });
  const parser = new Parser({ strict: true, maxMetaEntrySize });
  const entries = on(parser, "entry", { close: ["end"] }) as AsyncIterable<readonly [ReadEntry]>;
  source.on("error", (error) => parser.emit("error", error));
  parser.on("ignoredEntry", () => parser.emit("error", new InvalidTar()));
  let current: ReadEntry | null = null;
  let failure: Error | null = null;
  parser.on("error", (error: Error) => {
    failure ??= error;
    source.destroy();
    current?.destroy(error); // or its reader would wait for the rest
  });
  // Bytes after the end cost the parser memory, as much as a hostile file likes. It reports the end while it still
  // parses a chunk, and is ended after that.
  parser.once("eof", () => {
    source.unpipe(parser).destroy();
    setImmediate(() => parser.end());
  });
  source.pipe(parser);
  let done = 0;
  try {
    for await (const [entry] of entries) {
      current = entry.on("error", () => {}); // thrown by its reader, if it has one
      done += blockBytes + entry.startBlockSize;
      tick(done, total);
      if (entry.type !== "Directory") yield readTarEntry(entry, () => failure);
      entry.resume();
    }
  } finally {
    source.destroy();
  }
}

function readTarEntry(entry: ReadEntry, failure: () => Error | null): TarEntry {
  const { path: name, type, size } = entry;
  if (!Number.isSafeInteger(size) || size < 0) throw new InvalidTar();
  const chunks = async function* () {
    const error = failure();
    if (error !== null) throw error; // else the iteration would wait for an entry that is destroyed
    for await (const chunk of entry) {
      yield chunk;
      const later = failure();
      if (later !== null) throw later;
    }
  };
  const read = async () => {
    const bytes = new Uint8Array(new ArrayBuffer(size));
    let length = 0;
    for await (const chunk of chunks()) {
      bytes.set(chunk, length);
      length += chunk.length;
    }
    if (length !== size) throw new InvalidTar();
    return bytes;
  };
  return { name, type, size, read, chunks };
}
