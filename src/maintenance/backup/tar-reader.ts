/** Tar file read entry by entry. Nothing is unpacked, and the content of an entry is read only when it is asked for. */
import { type FileHandle, open } from "node:fs/promises";
import { Header, Pax } from "tar";
import { blockBytes, paddingOf } from "./tar-writer.js";

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
const maxPaxBytes = 64 * 1024;

/** Yields all entries but directories. `tick` is called with bytes read, of how many. @throws InvalidTar */
export async function* readTar(
  file: string,
  tick: (done: number, total: number) => void,
): AsyncGenerator<TarEntry, void, undefined> {
  const handle = await open(file);
  try {
    const reader = new ChunkedReader(handle);
    const { size: total } = await handle.stat();
    for await (const { begin, ...header } of entriesIn(reader)) {
      const end = begin + header.size;
      if (end > total) throw new InvalidTar();
      tick(end, total);
      if (header.type !== "Directory") yield { ...header, ...contentAt(reader, begin, header.size) };
    }
  } finally {
    await handle.close();
  }
}

type EntryHeader = Pick<TarEntry, "name" | "type" | "size">;

/** Entries with the extended headers before them applied. */
async function* entriesIn(reader: ChunkedReader): AsyncGenerator<EntryHeader & { readonly begin: number }> {
  let extended: Pax | undefined;
  for (let at = 0; ; ) {
    const header = await headerAt(reader, at);
    if (header === null) return;
    const entry = isPax(header.type) ? header : { ...header, ...overrides(extended) };
    const begin = at + blockBytes;
    if (entry === header) extended = parsePax(entry.type, await reader.read(begin, checkedPax(entry.size)), extended);
    else {
      yield { ...entry, begin };
      extended = undefined;
    }
    at = begin + entry.size + paddingOf(entry.size);
  }
}

/** Returns null at the end mark. */
async function headerAt(reader: ChunkedReader, at: number): Promise<EntryHeader | null> {
  const block = await reader.read(at, blockBytes);
  const header = new Header(Buffer.from(block.buffer));
  if (header.nullBlock) return null;
  const { path: name, type, size } = header;
  if (!header.cksumValid || name === undefined || size === undefined) throw new InvalidTar();
  return { name, type, size: validSize(size) };
}

function validSize(size: number): number {
  if (!Number.isSafeInteger(size) || size < 0) throw new InvalidTar();
  return size;
}

function overrides(extended: Pax | undefined): Partial<EntryHeader> {
  return {
    ...(extended?.path !== undefined && { name: extended.path }),
    ...(extended?.size !== undefined && { size: validSize(extended.size) }),
  };
}

function contentAt(reader: ChunkedReader, begin: number, size: number): Pick<TarEntry, "read" | "chunks"> {
  const chunks = async function* () {
    for (let at = 0; at < size; at += chunkBytes) yield await reader.read(begin + at, Math.min(chunkBytes, size - at));
  };
  return { read: () => reader.read(begin, size), chunks };
}

const paxTypes: readonly string[] = [
  "ExtendedHeader",
  "OldExtendedHeader",
  "GlobalExtendedHeader",
  "NextFileHasLongPath",
];

function isPax(type: string): boolean {
  return paxTypes.includes(type);
}

function checkedPax(size: number): number {
  if (size > maxPaxBytes) throw new InvalidTar();
  return size;
}

/** Attributes of the next file. Global ones do not matter here. */
function parsePax(type: string, bytes: Uint8Array, before: Pax | undefined): Pax | undefined {
  const text = Buffer.from(bytes).toString("utf8");
  if (type === "GlobalExtendedHeader") return before;
  if (type === "NextFileHasLongPath") return new Pax({ ...before, path: text.replace(/\0.*$/s, "") });
  return Pax.parse(text, before);
}

/** Reads small pieces in order out of large chunks. */
class ChunkedReader {
  readonly #handle: FileHandle;
  #chunk = new Uint8Array(0);
  #begin = 0;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Returns bytes of their own. @throws InvalidTar at the end of the file */
  async read(at: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(new ArrayBuffer(length));
    if (at < this.#begin || at + length > this.#begin + this.#chunk.length) {
      if (length >= chunkBytes) return this.#fill(bytes, at);
      await this.#load(at);
    }
    const from = at - this.#begin;
    if (from + length > this.#chunk.length) throw new InvalidTar();
    bytes.set(this.#chunk.subarray(from, from + length));
    return bytes;
  }

  async #fill(bytes: Uint8Array<ArrayBuffer>, at: number): Promise<Uint8Array<ArrayBuffer>> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesRead } = await this.#handle.read(bytes, done, bytes.length - done, at + done);
      if (bytesRead === 0) throw new InvalidTar();
      done += bytesRead;
    }
    return bytes;
  }

  async #load(at: number): Promise<void> {
    const chunk = new Uint8Array(chunkBytes);
    let length = 0;
    while (length < chunkBytes) {
      const { bytesRead } = await this.#handle.read(chunk, length, chunkBytes - length, at + length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    [this.#chunk, this.#begin] = [chunk.subarray(0, length), at];
  }
}
