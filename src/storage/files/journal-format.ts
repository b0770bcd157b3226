/**
 * Redo journal of one batch: everything that it writes or removes.
 *
 *   offset  size  what
 *   0       4     magic, "SRVJ"
 *   4       1     version, 1
 *   5       …     changes: length of path (2, big endian) ‖ path ‖ 1 ‖ length of blob (4) ‖ blob, or 0 for a removal
 *   end     32    SHA-256 of everything before
 */
import { createHash } from "node:crypto";
import type { Bytes } from "../../../workers/protocol.js";

/** Null removes. */
export type BatchChanges = ReadonlyMap<string, Bytes | null>;

const magic = Buffer.from("SRVJ\u0001", "latin1");
const digestBytes = 32;

export function encodeJournal(changes: BatchChanges): Buffer {
  const parts = [magic, ...[...changes].flatMap(([path, blob]) => encodeChange(path, blob))];
  return Buffer.concat([...parts, digestOf(parts)]);
}

function encodeChange(path: string, blob: Bytes | null): Uint8Array[] {
  const name = Buffer.from(path, "utf8");
  const length = Buffer.alloc(2);
  length.writeUInt16BE(name.length);
  if (blob === null) return [length, name, Buffer.of(0)];
  const head = Buffer.alloc(5, 1);
  head.writeUInt32BE(blob.length, 1);
  return [length, name, head, blob];
}

/** Returns null when the journal is damaged or of a later version. */
export function decodeJournal(bytes: Bytes): BatchChanges | null {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, Math.max(0, bytes.length - digestBytes));
  if (!digestOf([body]).equals(bytes.subarray(body.length)) || !body.subarray(0, magic.length).equals(magic))
    return null;
  const changes = new Map<string, Bytes | null>();
  for (let at = magic.length; at < body.length; ) {
    const flagAt = at + 2 + body.readUInt16BE(at);
    const path = body.toString("utf8", at + 2, flagAt);
    const blobAt = flagAt + 5;
    const isBlob = body[flagAt] === 1;
    at = isBlob ? blobAt + body.readUInt32BE(flagAt + 1) : flagAt + 1;
    changes.set(path, isBlob ? new Uint8Array(body.subarray(blobAt, at)) : null);
  }
  return changes;
}

function digestOf(parts: readonly Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}
