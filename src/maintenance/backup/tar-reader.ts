/** Tar file read entry by entry. Nothing is unpacked, and the content of an entry is kept only when it is asked for. */
import { on } from "node:events";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Parser, type ReadEntry } from "tar";

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

const headerBytes = 512;

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
  // What follows the end costs the parser memory, as much as a hostile file likes. It says so while it still parses a chunk, and
  // is ended after that.
  parser.once("eof", () => {
    source.unpipe(parser).destroy();
    setImmediate(() => parser.end());
  });
  source.pipe(parser);
  let done = 0;
  try {
    for await (const [entry] of entries) {
      current = entry.on("error", () => {}); // thrown by its reader, if it has one
      done += headerBytes + entry.startBlockSize;
      tick(done, total);
      if (entry.type !== "Directory") yield contentOf(entry, () => failure);
      entry.resume();
    }
  } finally {
    source.destroy();
  }
}

function contentOf(entry: ReadEntry, failure: () => Error | null): TarEntry {
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
