/**
 * Redo journals of batches: everything that one writes or removes, in a file of its own in the vault's directory. They are
 * numbered in the order of the batches; one without a number is older than all others.
 *
 *   vault/gen-1/journal-7
 *
 *   offset  size  what
 *   0       4     magic, "SRVJ"
 *   4       1     version: 1, or 2 when another space than the secrets is changed
 *   5       …     changes, one after the other:
 *                 in version 2: the space, 0 secrets, 1 trash, 2 keys (1)
 *                 length of path (2, big endian) ‖ path ‖ 1 ‖ length of blob (4) ‖ blob, or 0 for a removal
 *   end     32    SHA-256 of everything before
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Bytes } from "../../../workers/protocol.js";
import { StartError } from "../../errors.js";
import { type FileOperations, readFileBytes } from "../../files/durable.js";
import { type Space, spaces } from "../secret-store.js";

/** Change of a blob; null removes it. */
export type BlobChange = { readonly space: Space; readonly path: string; readonly blob: Bytes | null };

const journalName = /^journal(?:-([1-9][0-9]{0,14}))?$/;

export function isJournal(name: string): boolean {
  return journalName.test(name);
}

/** Upper bound for a journal, in bytes: larger than any batch with its paths. */
export const maxJournalBytes = 2 ** 30;

export function journalFile(directory: string, number: number): string {
  return join(directory, `journal-${number}`);
}

type Journal = { readonly file: string; readonly number: number; readonly changes: readonly BlobChange[] };

/** Reads a vault's journals, oldest first. @throws StartError for a damaged one */
export async function readJournals(files: FileOperations, directory: string): Promise<Journal[]> {
  const journalNumber = (name: string) => Number(journalName.exec(name)?.[1] ?? 0);
  const names = (await files.readdir(directory)).filter(isJournal).sort((a, b) => journalNumber(a) - journalNumber(b));
  const found: Journal[] = [];
  for (const name of names) {
    const file = join(directory, name);
    const bytes = await readFileBytes(files, file, maxJournalBytes);
    if (bytes === null) continue; // removed since, by the server whose vault a backup reads
    const changes = decodeJournal(bytes);
    if (changes === null) throw damagedJournal(file);
    found.push({ file, number: journalNumber(name), changes });
  }
  return found;
}

function damagedJournal(file: string): StartError {
  return new StartError(
    `${file}, which completes a batch of changes, is damaged or from a newer version: install that, restore the vault from a backup, or move it away ` +
      "(the batch may then be incomplete), then start again",
  );
}

const magic = Buffer.from("SRVJ", "latin1");
const digestBytes = 32;

/** @throws Error beyond `maxJournalBytes` */
export function encodeJournal(changes: readonly BlobChange[]): Buffer {
  const version = changes.every(({ space }) => space === "secrets") ? 1 : 2;
  const parts = [magic, Buffer.of(version), ...changes.flatMap((change) => encodeChange(change, version))];
  const journal = Buffer.concat([...parts, journalDigest(parts)]);
  if (journal.length > maxJournalBytes) throw new Error(`a journal has more than ${maxJournalBytes} bytes`);
  return journal;
}

function encodeChange({ space, path, blob }: BlobChange, version: number): Uint8Array[] {
  const start = version === 1 ? Buffer.alloc(0) : Buffer.of(spaces.indexOf(space));
  const name = Buffer.from(path, "utf8");
  const length = Buffer.alloc(2);
  length.writeUInt16BE(name.length);
  if (blob === null) return [start, length, name, Buffer.of(0)];
  const head = Buffer.alloc(5, 1);
  head.writeUInt32BE(blob.length, 1);
  return [start, length, name, head, blob];
}

/** Returns null when the journal is damaged or of a later version. */
export function decodeJournal(bytes: Bytes): readonly BlobChange[] | null {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, Math.max(0, bytes.length - digestBytes));
  if (!journalDigest([body]).equals(bytes.subarray(body.length))) return null;
  if (!body.subarray(0, magic.length).equals(magic)) return null;
  const version = body[magic.length];
  return version === 1 || version === 2 ? decodeChanges(body.subarray(magic.length + 1), version) : null;
}

function decodeChanges(body: Buffer, version: number): readonly BlobChange[] | null {
  const changes: BlobChange[] = [];
  for (let at = 0; at < body.length; ) {
    const space = version === 1 ? "secrets" : spaces[body.readUInt8(at++)];
    if (space === undefined) return null; // of a later version
    const flagAt = at + 2 + body.readUInt16BE(at);
    const path = body.toString("utf8", at + 2, flagAt);
    const blobAt = flagAt + 5;
    const isBlob = body[flagAt] === 1;
    at = isBlob ? blobAt + body.readUInt32BE(flagAt + 1) : flagAt + 1;
    changes.push({ space, path, blob: isBlob ? new Uint8Array(body.subarray(blobAt, at)) : null });
  }
  return changes;
}

function journalDigest(parts: readonly Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}
