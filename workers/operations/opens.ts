/** Opens of secrets for gets, packed in one message: see `Call` and `Opened` for the forms. */
import { etagOfCurrent, type HalfOpen, openHalf, openValue, type SealingKey } from "../crypto/blob.js";
import { allocate, lengthOf, putUint32, readUint32, scratch, textOf, writeParts } from "../memory.js";
import type { Bytes, Opened, Refusal } from "../protocol.js";
import { damaged, noSecret, unexpected } from "../refusals.js";
import type { Context } from "./context.js";
import { getReplyAround, isOfBinary, stateOf } from "./entry.js";
import { jsonLengthOfBinary, jsonOfValue } from "./value.js";

type Open = { readonly path: Uint8Array; readonly blob: Uint8Array };

/** What comes before and behind the value in a reply, and the value still sealed. */
type Prepared = {
  readonly head: readonly (Uint8Array | string)[];
  readonly tail: readonly (Uint8Array | string)[];
  readonly length: number;
  readonly half: HalfOpen;
  readonly isBinary: boolean;
  readonly etag: string;
};

const fieldsLength = 4 + 4 + 16;

export function openPacked({ keyring }: Context, packed: Bytes): Opened {
  const opens = [...unpacked(packed)];
  try {
    const opened = keyring.withKey((key) => openAll(key, opens));
    return "ok" in opened ? refusingAll(opens, opened) : opened;
  } catch (error) {
    return refusingAll(opens, unexpected(error));
  }
}

function* unpacked(packed: Bytes): Iterable<Open> {
  for (let at = 0; at < packed.length; ) {
    const pathAt = at + 8;
    const blobAt = pathAt + readUint32(packed, at);
    const end = blobAt + readUint32(packed, at + 4);
    yield { path: packed.subarray(pathAt, blobAt), blob: packed.subarray(blobAt, end) };
    at = end;
  }
}

/** All metadata first: then the length of every reply is known, and the values are opened into their places. */
function openAll(key: SealingKey, opens: readonly Open[]): Opened {
  const refusals = new Map<number, Refusal>();
  const prepared = opens.map(({ path, blob }, i) => {
    const half = openHalf(key, path, blob);
    if (half !== null && stateOf(half.metadata) === "kept") return prepare(path, blob, half);
    refusals.set(i, half === null ? damaged(textOf(path)) : noSecret(textOf(path)));
    return null;
  });
  const bytes = allocate(prepared.reduce((sum, one) => sum + (one === null ? 0 : fieldsLength + one.length), 0));
  let at = 0;
  for (const [i, one] of prepared.entries()) {
    if (one === null) continue;
    if (writeReply(bytes, at, one)) at += fieldsLength + one.length;
    else refusals.set(i, damaged(textOf(opens[i]?.path ?? bytes.subarray(0, 0))));
  }
  return { bytes, refusals };
}

function prepare(path: Uint8Array, blob: Uint8Array, half: HalfOpen): Prepared {
  const etag = etagOfCurrent(blob);
  const { head, tail } = getReplyAround(path, half.metadata, etag);
  const isBinary = isOfBinary(half.metadata);
  const valueLength = isBinary ? jsonLengthOfBinary(half.valueLength) : half.valueLength;
  return { head, tail, length: lengthOf(head) + valueLength + lengthOf(tail), half, isBinary, etag };
}

/** Returns false, with nothing secret written, when the value is damaged. */
function writeReply(bytes: Bytes, at: number, { head, tail, length, half, isBinary, etag }: Prepared): boolean {
  const valueAt = at + fieldsLength + lengthOf(head);
  const end = at + fieldsLength + length - lengthOf(tail);
  const opened = openValue(half, isBinary ? scratch(half.valueLength) : bytes.subarray(valueAt, end));
  if (opened === null) return false;
  if (isBinary) bytes.set(jsonOfValue(opened), valueAt);
  putUint32(bytes, at, length);
  putUint32(bytes, at + 4, half.currentLength);
  writeParts(bytes.subarray(at + 8), [etag, ...head]);
  writeParts(bytes.subarray(end), tail);
  return true;
}

function refusingAll(opens: readonly Open[], refusal: Refusal): Opened {
  return { bytes: allocate(0), refusals: new Map(opens.map((_, i) => [i, refusal])) };
}
