/**
 * Reader of one member of a ZIP archive (APPNOTE.TXT 6.3). Not a library: the small ones skip the checksum or start
 * threads, and an export needs no more than this: stored or deflated, neither encrypted nor Zip64.
 */
import { crc32, inflateRawSync } from "node:zlib";
import { CommandFailure } from "../kit/errors.js";

const signatures = { end: 0x06054b50, entry: 0x02014b50, member: 0x04034b50 } as const;
const sizes = { end: 22, entry: 46, member: 30 } as const;
const maxCommentBytes = 0xffff;
const isEncrypted = 1;
const methods = { stored: 0, deflated: 8 } as const;
/** Below this size nothing is a bomb; above it, no export is packed so well. */
const unsuspiciousBytes = 16 * 2 ** 20;
const maxRatio = 100;
/** Far above any export without its attachments. */
const maxBytes = 128 * 2 ** 20;

export function isZip(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && Buffer.from(bytes.buffer, bytes.byteOffset, 4).readUInt32LE() === signatures.member;
}

type Entry = {
  readonly name: string;
  readonly flags: number;
  readonly method: number;
  readonly checksum: number;
  readonly packed: number;
  readonly size: number;
  readonly at: number;
};

/** Returns the bytes of a member; null where there is none. `file` is for messages. @throws CommandFailure usage */
export function readMember(archive: Buffer, name: string, file: string): Buffer | null {
  return readable(file, () => {
    const entry = archiveEntries(archive).find((each) => each.name === name);
    return entry === undefined ? null : entryContent(archive, entry);
  });
}

/** Returns the names of all members. @throws CommandFailure usage */
export function memberNames(archive: Buffer, file: string): string[] {
  return readable(file, () => archiveEntries(archive).map(({ name }) => name));
}

function readable<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof CommandFailure) throw new CommandFailure("usage", `${file}: ${error.message}`);
    throw new CommandFailure("usage", `${file} is a damaged ZIP archive: export it again`); // a range, or data that does not inflate
  }
}

function archiveEntries(archive: Buffer): Entry[] {
  const end = endRecordOffset(archive);
  const [count, from] = [archive.readUInt16LE(end + 10), archive.readUInt32LE(end + 16)];
  if (count === 0xffff || from === 0xffffffff) throw refusal("it is a Zip64 archive, which is not read");
  const entries: Entry[] = [];
  for (let at = from; entries.length < count; ) {
    if (archive.readUInt32LE(at) !== signatures.entry) throw new RangeError("no entry");
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => archive.readUInt16LE(at + offset));
    const nameEnd = at + sizes.entry + (nameLength ?? 0);
    entries.push({
      flags: archive.readUInt16LE(at + 8),
      method: archive.readUInt16LE(at + 10),
      checksum: archive.readUInt32LE(at + 16),
      packed: archive.readUInt32LE(at + 20),
      size: archive.readUInt32LE(at + 24),
      at: archive.readUInt32LE(at + 42),
      name: archive.toString("utf8", at + sizes.entry, nameEnd),
    });
    at = nameEnd + (extra ?? 0) + (comment ?? 0);
  }
  return entries;
}

/** Returns where the end record is: a comment may follow it. */
function endRecordOffset(archive: Buffer): number {
  const last = archive.length - sizes.end;
  for (let at = last; at >= Math.max(0, last - maxCommentBytes); at--) {
    if (archive.readUInt32LE(at) === signatures.end) return at;
  }
  throw new RangeError("no end record");
}

function entryContent(archive: Buffer, { flags, method, checksum, packed, size, at }: Entry): Buffer {
  if ((flags & isEncrypted) !== 0) throw refusal("it is encrypted: export it without a password");
  if (size > maxBytes) throw refusal(`its content has more than ${maxBytes / 2 ** 20} MiB, which is not read`);
  if (size > Math.max(unsuspiciousBytes, maxRatio * packed)) {
    throw refusal(`its content is ${maxRatio} times as large as the archive, which no export is: it is not read`);
  }
  if (archive.readUInt32LE(at) !== signatures.member) throw new RangeError("no member");
  const begin = at + sizes.member + archive.readUInt16LE(at + 26) + archive.readUInt16LE(at + 28);
  if (begin + packed > archive.length) throw new RangeError("cut off");
  const bytes = archive.subarray(begin, begin + packed);
  const content = unpacked(bytes, method, size);
  if (content.length !== size || crc32(content) !== checksum) throw new RangeError("wrong checksum");
  return content;
}

function unpacked(bytes: Buffer, method: number, size: number): Buffer {
  if (method === methods.stored) return bytes;
  if (method === methods.deflated) return inflateRawSync(bytes, { maxOutputLength: Math.max(1, size) });
  throw refusal(`it is compressed by method ${method}, which is not read`);
}

function refusal(message: string): CommandFailure {
  return new CommandFailure("usage", message);
}
