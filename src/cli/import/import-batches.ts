/** Division of an import into batches that the server accepts. */
import { maxOperations } from "../../client/batch-requests.js";
import type { ImportEntry } from "./formats/import-entry.js";

/** The server's default limit for the body of a batch. One with a lower limit refuses, and the batch is divided again. */
const maxBodyBytes = 16 * 2 ** 20;

/** Names and punctuation of an operation. */
const overheadBytes = 128;

/** A single entry may be larger than a batch. */
export function* batchesOf(entries: readonly ImportEntry[]): Generator<readonly ImportEntry[], void, void> {
  let from = 0;
  let bytes = 0;
  for (const [at, entry] of entries.entries()) {
    const size = bodyBytesOf(entry);
    if (at > from && (at - from === maxOperations || bytes + size > maxBodyBytes)) {
      yield entries.slice(from, at);
      [from, bytes] = [at, 0];
    }
    bytes += size;
  }
  if (from < entries.length) yield entries.slice(from);
}

function bodyBytesOf({ path, value, description = "" }: ImportEntry): number {
  return overheadBytes + [path, value, description].reduce((sum, text) => sum + jsonBytesOf(text), 0);
}

/** As the client writes it: a control character takes 6 bytes, a quote or backslash 2. */
function jsonBytesOf(text: string): number {
  const controls = text.match(/\p{Cc}/gu)?.length ?? 0;
  const escaped = text.match(/["\\]/g)?.length ?? 0;
  return Buffer.byteLength(text) + 5 * controls + escaped;
}
