/**
 * Blob of a secret in the trash: the secret's blob as it is sealed, behind the time at which it was moved there.
 *
 *   offset  size  content
 *   0       4     magic, "SRVT"
 *   4       1     version, 1
 *   5       8     when it was moved, milliseconds since 1970, big endian
 *   13      8     random; with the last bytes of the time, it is the tag (see blob-tag.ts)
 *   21      …     the secret's blob
 *
 * The time is in the clear, because the trash is emptied while the vault is locked. A file system or a database shows about
 * the same time of the file or row.
 */
import { randomFillSync } from "node:crypto";
import type { Bytes } from "../../workers/protocol.js";
import { tagHeadBytes } from "./blob-tag.js";

const magic = Buffer.from("SRVT\x01", "latin1");
const timeAt = magic.length;
const randomAt = timeAt + 8;
const blobAt = randomAt + 8;

/** Bytes in front of the secret's blob. */
export const trashedHeadBytes = blobAt;

/** Bytes of a trashed blob that the etag of the secret in it needs. */
export const trashedTagBytes = blobAt + tagHeadBytes;

/** `deletedAt`: milliseconds since 1970. `blob`: the secret's, or as much of it as was read. */
export type Trashed = { readonly deletedAt: number; readonly blob: Bytes };

export function trashedBlob({ deletedAt, blob }: Trashed): Bytes {
  const bytes = new Uint8Array(blobAt + blob.length);
  bytes.set(magic);
  new DataView(bytes.buffer).setBigUint64(timeAt, BigInt(deletedAt));
  randomFillSync(bytes, randomAt, blobAt - randomAt);
  bytes.set(blob, blobAt);
  return bytes;
}

/** Reads a trashed blob, or its first bytes; null when it is none. */
export function readTrashed(bytes: Bytes): Trashed | null {
  if (bytes.length < blobAt || !magic.every((byte, i) => bytes[i] === byte)) return null;
  const deletedAt = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(timeAt));
  return deletedAt <= latestTime ? { deletedAt, blob: bytes.subarray(blobAt) } : null;
}

/** The latest time that RFC 3339 can write: the end of the year 9999. */
const latestTime = 253_402_300_799_999;
