/** Compressed content: gzip and zip are read; of everything else, `scan` says that it was not searched. */
import { gunzipSync, inflateRawSync } from "node:zlib";
import { mostBytes } from "./scanned-file.js";
import { reasons } from "./unsearched.js";

type Reason = (typeof reasons)["compressed" | "encrypted" | "large"];

/** `content` returns the reason where it cannot be read. */
type Archived = { readonly name: string; readonly content: () => Buffer | Reason };

/** First bytes of the compressed forms that are read here, in hex. */
const [gzip, zip] = ["1f8b08", "504b0304"];

/** First bytes of compressed forms that are not read here, in hex. */
const unread = [
  "fd377a585a00", // xz
  "425a68", // bzip2
  "28b52ffd", // zstd
  "377abcaf271c", // 7z
  "526172211a07", // rar
  "04224d18", // lz4
  "1f9d", // compress
  "4d534346", // cab
  "68737173", // squashfs
  "5041434b0000000", // git's pack
  "255044462d", // PDF, whose text is compressed
];

/** Returns whether content begins as gzip or zip. */
export function isArchive(bytes: Buffer): boolean {
  const start = bytes.toString("hex", 0, 4);
  return start.startsWith(gzip) || start.startsWith(zip);
}

/** Returns what is in compressed content, a reason where it is not read, or null for anything else. */
export function openArchive(bytes: Buffer): readonly Archived[] | Reason | null {
  const start = bytes.toString("hex", 0, 8);
  if (start.startsWith(gzip)) return [{ name: "", content: () => inflated(bytes, gunzipSync) }];
  if (start.startsWith(zip)) return filesOfZip(bytes);
  return unread.some((each) => start.startsWith(each)) ? reasons.compressed : null;
}

type Inflate = (bytes: Buffer, options: { readonly maxOutputLength: number }) => Buffer;

function inflated(bytes: Buffer, inflate: Inflate): Buffer | Reason {
  try {
    return inflate(bytes, { maxOutputLength: mostBytes });
  } catch (error) {
    return error instanceof RangeError ? reasons.large : reasons.compressed; // longer, or damaged
  }
}

const [endMark, entryMark] = ["PK\x05\x06", "PK\x01\x02"];
const [endBytes, entryBytes, localBytes] = [22, 46, 30];
const longestComment = 0xffff;

/** Reads the list at the end of a zip (APPNOTE 4.3). */
function filesOfZip(bytes: Buffer): readonly Archived[] | Reason {
  const end = bytes.lastIndexOf(endMark, undefined, "latin1");
  const lowest = Math.max(0, bytes.length - endBytes - longestComment);
  if (end < lowest || end + endBytes > bytes.length) return reasons.compressed;
  const files: Archived[] = [];
  let at = bytes.readUInt32LE(end + 16);
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left--) {
    if (at + entryBytes > end || bytes.toString("latin1", at, at + 4) !== entryMark) return reasons.compressed; // zip64, or cut off
    const [name, extra, comment] = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ];
    const entry = bytes.subarray(at, at + entryBytes);
    const next = at + entryBytes + name;
    files.push({ name: bytes.toString("utf8", at + entryBytes, next), content: () => memberContent(bytes, entry) });
    at = next + extra + comment;
  }
  return files;
}

function memberContent(bytes: Buffer, entry: Buffer): Buffer | Reason {
  const [flags, method] = [entry.readUInt16LE(8), entry.readUInt16LE(10)];
  if ((flags & 1) !== 0) return reasons.encrypted;
  const local = entry.readUInt32LE(42);
  if (local + localBytes > bytes.length) return reasons.compressed;
  const start = local + localBytes + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
  const packed = bytes.subarray(start, start + entry.readUInt32LE(20));
  if (method === 0) return packed;
  return method === deflated ? inflated(packed, inflateRawSync) : reasons.compressed;
}

const deflated = 8;
