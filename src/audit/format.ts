/**
 * Format of the audit log: files of JSON lines, in groups that a hash chain links.
 *
 *   {"format":"strongroom audit","version":1,"file":1,"log":<16>,"seq":1,"chain":<32>}      first line of a file
 *   {"seq":1,"time":<ISO 8601>,"event":"start"}                                             a record
 *   {"seq":2,"time":…,"event":"get","token":"root","address":…,"path":…,"etag":…,"status":200}
 *   {"chain":<32>}                                                                          end of a group
 *   {"seq":3,"time":…,"event":"checkpoint","reason":"unlock","from":1,"key":<9>,"mac":<32>} alone in its group
 *   {"chain":<32>}
 *
 *   chain 0 = SHA-256("strongroom audit 1\n" ‖ the log's name ‖ "\n")
 *   chain n = SHA-256(chain n-1 ‖ all bytes of the group, its last line excepted)
 *   mac     = see `checkpointText`, and the key worker
 *
 * A checkpoint vouches for the records from `from` on, which its server wrote. Those of an earlier version have no
 * `from`, and their MAC does not cover the reason. With reason "key" or "init", it is a bridge: it vouches for what is
 * before it as its server knew it, although the checkpoints there were made under a key that is gone.
 *
 * Binary members are base64url without padding. `seq` counts the records from 1, without holes, over all files; in the first
 * line of a file it is that of the next record, and `chain` the value before it. That line belongs to the file's first group.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { CheckpointSignature, SignedCheckpoint } from "../../workers/protocol.js";

export type Bytes = Uint8Array<ArrayBuffer>;

/** A file that has so many bytes is followed by a new one. */
export const maxFileBytes = 64 * 2 ** 20;

/** The last group of a file may exceed that. */
export const longestFile = maxFileBytes + 16 * 2 ** 20;

/** The newest files are kept, older ones are removed. */
export const keptFiles = 16;

/** A checkpoint is made after so many records, or so many milliseconds after a record, whichever is first. */
export const checkpointRecords = 1_000;
export const checkpointMs = 60_000;

/** First line of a file. `chain`: the value before the file. */
export type FileHeader = { readonly file: number; readonly log: string; readonly seq: number; readonly chain: string };

/** End of a log. */
export type LogHead = { readonly log: string; readonly seq: number; readonly chain: string };

/** Most checkpoints in one request to verify them. */
export const maxCheckpoints = 1_000;

const format = { format: "strongroom audit", version: 1 };
const fileName = /^audit-(\d{6,12})\.jsonl$/;
const chainPattern = /^\{"chain":"([A-Za-z0-9_-]{43})"\}$/;

export function auditDirectory(home: string): string {
  return join(home, "audit");
}

export function auditFileName(file: number): string {
  return `audit-${String(file).padStart(6, "0")}.jsonl`;
}

/** Returns the file's number; null for a foreign name. */
export function auditFileNumber(name: string): number | null {
  const digits = fileName.exec(name)?.[1];
  return digits === undefined || auditFileName(Number(digits)) !== name ? null : Number(digits);
}

export function firstChain(log: string): Bytes {
  return sha256(Buffer.from(`strongroom audit 1\n${log}\n`));
}

export function nextChain(chain: Uint8Array, group: Uint8Array): Bytes {
  return sha256(chain, group);
}

export function headerLine({ file, log, seq, chain }: FileHeader): string {
  return `${JSON.stringify({ ...format, file, log, seq, chain })}\n`;
}

/** Returns null for a line that this program did not write. */
export function parseHeaderLine(line: string): FileHeader | null {
  try {
    const { file, log, seq, chain } = JSON.parse(line) as FileHeader;
    return headerLine({ file, log, seq, chain }) === `${line}\n` && isChain(chain) ? { file, log, seq, chain } : null;
  } catch {
    return null;
  }
}

export function chainLine(chain: Uint8Array): string {
  return `{"chain":"${base64url(chain)}"}\n`;
}

export const chainLineBytes = chainLine(new Uint8Array(32)).length;

/** Returns the chain's value; null for any other line. `line`: without its line feed. */
export function parseChainLine(line: string): string | null {
  return chainPattern.exec(line)?.[1] ?? null;
}

/**
 * A checkpoint's claim. `seq` and `time` are its own; `chain` is the value before its group, and so stands for all that
 * was written before. An earlier version's has neither `from` nor `reason`.
 */
export type CheckpointClaim = LogHead & { readonly time: string; readonly from?: number; readonly reason?: string };

/** Returns the text under a checkpoint's MAC. */
export function checkpointText({ log, seq, time, chain, from, reason }: CheckpointClaim): string {
  if (from === undefined) return JSON.stringify(["strongroom audit checkpoint 1", log, seq, time, chain]);
  return JSON.stringify(["strongroom audit checkpoint 2", log, seq, time, chain, from, reason]);
}

/** A checkpoint, as its record and the chain before it say. */
export type Checkpoint = CheckpointClaim & CheckpointSignature;

export function checkpointIn(record: object, log: string, chain: string): Checkpoint | null {
  const { seq, time, from, reason, key, mac } = record as Readonly<Record<string, unknown>>;
  if (typeof seq !== "number" || typeof time !== "string" || typeof key !== "string" || typeof mac !== "string")
    return null;
  const checkpoint = { log, seq, time, chain, key, mac };
  if (from === undefined) return checkpoint;
  return typeof from === "number" && typeof reason === "string" ? { ...checkpoint, from, reason } : null;
}

export function signedCheckpoint(checkpoint: Checkpoint): SignedCheckpoint {
  return { text: checkpointText(checkpoint), key: checkpoint.key, mac: checkpoint.mac };
}

export function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64url");
}

export function chainBytes(chain: string): Bytes {
  return new Uint8Array(Buffer.from(chain, "base64url"));
}

function isChain(chain: unknown): boolean {
  return typeof chain === "string" && /^[A-Za-z0-9_-]{43}$/.test(chain);
}

function sha256(...parts: readonly Uint8Array[]): Bytes {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return new Uint8Array(hash.digest());
}

/** Returns the first line without its line feed; "" when there is no whole one. */
export function firstLine(bytes: Bytes): string {
  return decodeLog(bytes.subarray(0, Math.max(0, bytes.indexOf(10))));
}

/** Returns the number of the record in this line; null for any other line. */
export function lineSequenceNumber(line: string): number | null {
  const digits = /^\{"seq":(\d{1,15}),/.exec(line)?.[1];
  return digits === undefined ? null : Number(digits);
}

export function decodeLog(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}
