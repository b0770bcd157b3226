/**
 * Open file or directory, as a bare descriptor. Node's FileHandle does the same, and costs the main thread more for each
 * durable replace.
 */
import { close, closeSync, fstat, fsync, ftruncate, open, read, rename, type Stats, write } from "node:fs";

export class OpenFile {
  readonly #descriptor: number;
  #synced = false;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  static async open(path: string, flags: number, mode?: number): Promise<OpenFile> {
    return new OpenFile(await outcome<number>((done) => open(path, flags, mode, done)));
  }

  /** Writes all bytes; on a disk that fills up, a first write is short and the next one fails. */
  async writeFile(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const left = bytes.length - at;
      at += await outcome<number>((done) => write(this.#descriptor, bytes, at, left, null, done));
    }
  }

  /** Reads into `bytes` at index `at`; returns the number of bytes, 0 at the end of the file. */
  read(bytes: Uint8Array, at: number): Promise<number> {
    return outcome((done) => read(this.#descriptor, bytes, at, bytes.length - at, null, done));
  }

  /** As `read`, from this place in the file. */
  readAt(bytes: Uint8Array, at: number, position: number): Promise<number> {
    return outcome((done) => read(this.#descriptor, bytes, at, bytes.length - at, position, done));
  }

  /** Cuts the file to this length. */
  truncate(length: number): Promise<void> {
    return outcome((done) => ftruncate(this.#descriptor, length, done));
  }

  stat(): Promise<Stats> {
    return outcome((done) => fstat(this.#descriptor, done));
  }

  async sync(): Promise<void> {
    await outcome((done) => fsync(this.#descriptor, done));
    this.#synced = true;
  }

  /** Synchronous after a sync. Otherwise closing may free the space of a replaced file, which takes time. */
  async close(): Promise<void> {
    if (this.#synced) closeSync(this.#descriptor);
    else await outcome((done) => close(this.#descriptor, done));
  }
}

/** As in node:fs/promises, at a lower cost. */
export function renameFile(from: string, to: string): Promise<void> {
  return outcome((done) => rename(from, to, done));
}

type Done<T> = (error: Error | null, result?: T) => void;

function outcome<T = void>(call: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, result) => {
      if (error) reject(error);
      else resolve(result as T);
    });
  });
}
