/**
 * Tar file written entry by entry, in the order given (POSIX ustar, and pax for long names). The library's `create` looks
 * through its queue at each file with several hard links, and all files of a snapshot have them: that is quadratic.
 */
import { Header, Pax } from "tar";
import { BufferedFile } from "./buffered-file.js";

const blockBytes = 512;

const zeros = Buffer.alloc(2 * blockBytes);

/** Bytes that fill the last block of an entry of this size. */
function paddingOf(size: number): number {
  return (blockBytes - (size % blockBytes)) % blockBytes;
}

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
    await this.#file.write(headerOf(name, size, modified));
    let left = size;
    for await (const chunk of content) {
      left -= chunk.length;
      await this.#file.write(chunk);
    }
    if (left !== 0) throw new Error(`${name} changed while it was read`);
    await this.#file.write(zeros.subarray(0, paddingOf(size)));
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

function headerOf(path: string, size: number, mtime: Date): Uint8Array {
  const header = new Header({ path, size, mtime, mode: 0o600, type: "File" });
  const needsPax = header.encode();
  if (header.block === undefined) throw new Error("a header is always encoded");
  return needsPax ? Buffer.concat([new Pax({ path, size, mtime }).encode(), header.block]) : header.block;
}
