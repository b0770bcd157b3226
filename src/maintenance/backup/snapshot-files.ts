/** Files of a snapshot in the order of their names in the archive, read ahead in bounded memory. */
import { constants, createReadStream } from "node:fs";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { pMapIterable } from "p-map";
import { missingAsNull, noFollow, OpenFile } from "../../files/durable.js";

export type SnapshotFile = {
  readonly name: string;
  readonly size: number;
  readonly modified: Date;
  readonly content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
};

/** Larger files are read piece by piece when their turn comes. */
const maxReadAheadBytes = 2 ** 20;
const filesAtOnce = 8;

/** `top`: names of files and directories of the snapshot, sorted. */
export function snapshotFiles(snapshot: string, top: readonly string[]): AsyncIterable<SnapshotFile> {
  return filesOf(namesIn(snapshot, top), async (name) => ({ ...(await readAhead(join(snapshot, name))), name }));
}

/** Reads the named files ahead, in their order. */
export function filesOf(
  names: AsyncIterable<string> | Iterable<string>,
  read: (name: string) => Promise<SnapshotFile>,
): AsyncIterable<SnapshotFile> {
  return pMapIterable(names, read, { concurrency: filesAtOnce });
}

/** Yields the names of files, in their order; a name that ends in a slash is a directory. */
export async function* namesIn(snapshot: string, names: readonly string[], prefix = ""): AsyncGenerator<string> {
  for (const name of names) {
    if (!name.endsWith("/")) yield prefix + name;
    else yield* namesIn(snapshot, await sortedNames(join(snapshot, prefix, name)), prefix + name);
  }
}

/** Directories end in a slash, so that the order is that of whole paths. Links and pipes are left out. */
async function sortedNames(directory: string): Promise<string[]> {
  const names: string[] = [];
  const opened = await missingAsNull(opendir(directory, { bufferSize: 1024 })); // a space without blobs has none
  for await (const entry of opened ?? []) {
    if (entry.isDirectory()) names.push(`${entry.name}/`);
    else if (entry.isFile()) names.push(entry.name);
  }
  return names.sort();
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
