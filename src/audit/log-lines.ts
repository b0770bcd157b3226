/** Lines of an audit log's files, as bytes. */
import type { Bytes } from "./audit-format.js";

/** Returns the first line without its line feed; "" when there is no whole one. */
export function firstLine(bytes: Bytes): string {
  return textOf(bytes.subarray(0, Math.max(0, bytes.indexOf(10))));
}

/** Returns the number of the record in this line; null for any other line. */
export function seqOf(line: string): number | null {
  const digits = /^\{"seq":(\d{1,15}),/.exec(line)?.[1];
  return digits === undefined ? null : Number(digits);
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}
