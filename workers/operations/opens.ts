/** Opens of secrets for gets, packed in one message: see `Call` and `Opened` for the forms. */
import { etagOfCurrent, type HalfOpen, openHalves, openValue, type SealingKey } from "../crypto/blob.js";
import { allocate, decodeText, putUint32, readUint32, scratch, totalLength, writeParts } from "../memory.js";
import type { Bytes, Opened, Refusal } from "../protocol.js";
import { damaged, noSecret, unexpected } from "../refusals.js";
import { copySecret } from "../registers.js";
import type { Context } from "./context.js";
import { getResponseAround, isOfBinary, versionState, withoutMark } from "./entry.js";
import { readReply } from "./kv-data.js";
import { jsonLengthOfBinary, jsonOfValue } from "./value.js";

type Open = { readonly path: Uint8Array; readonly blob: Uint8Array; readonly forVault: boolean };

/** The parts of a response before and after the value, and the value still sealed. */
type Prepared = {
  readonly head: readonly (Uint8Array | string)[];
  readonly tail: readonly (Uint8Array | string)[];
  readonly length: number;
  /** Null: the value is in `head`. */
  readonly half: HalfOpen | null;
  readonly currentLength: number;
  readonly isBinary: boolean;
  readonly etag: string;
};

const fieldsLength = 4 + 4 + 16;

export function openPacked({ keyring, now }: Context, packed: Bytes): Opened {
  const opens = [...unpacked(packed)];
  try {
    const opened = keyring.withKey((key) => openAll(key, opens, now));
    return "ok" in opened ? refusingAll(opens, opened) : opened;
  } catch (error) {
    return refusingAll(opens, unexpected(error));
  }
}

function* unpacked(packed: Bytes): Iterable<Open> {
  for (let at = 0; at < packed.length; ) {
    const pathAt = at + 9;
    const blobAt = pathAt + readUint32(packed, at + 1);
    const end = blobAt + readUint32(packed, at + 5);
    yield { path: packed.subarray(pathAt, blobAt), blob: packed.subarray(blobAt, end), forVault: packed[at] === 1 };
    at = end;
  }
}

/** All metadata first: then the length of every response is known, and the values are opened into their places. */
function openAll(key: SealingKey, opens: readonly Open[], now: number): Opened {
  const refusals = new Map<number, Refusal>();
  const halves = openHalves(key, opens);
  const prepared = opens.map((open, i) => prepareKept(open, halves[i] ?? null, now));
  const bytes = allocate(prepared.reduce((sum, one) => sum + ("ok" in one ? 0 : fieldsLength + one.length), 0));
  let at = 0;
  for (const [i, one] of prepared.entries()) {
    if ("ok" in one) refusals.set(i, one);
    else if (writeResponse(bytes, at, one)) at += fieldsLength + one.length;
    else refusals.set(i, damaged(decodeText(opens[i]?.path ?? bytes.subarray(0, 0))));
  }
  return [bytes, refusals.size === 0 ? null : refusals];
}

function prepareKept({ path, blob, forVault }: Open, half: HalfOpen | null, now: number): Prepared | Refusal {
  if (half === null) return damaged(decodeText(path));
  if (versionState(half.metadata, now) !== "kept") return noSecret(decodeText(path));
  if (forVault) return prepareForVault(blob, half) ?? damaged(decodeText(path));
  return prepare(path, blob, half);
}

function prepare(path: Uint8Array, blob: Uint8Array, half: HalfOpen): Prepared {
  const etag = etagOfCurrent(blob);
  const metadata = withoutMark(half.metadata);
  const { head, tail } = getResponseAround(path, metadata, etag);
  const isBinary = isOfBinary(metadata);
  const valueLength = isBinary ? jsonLengthOfBinary(half.valueLength) : half.valueLength;
  return {
    head,
    tail,
    length: totalLength(head) + valueLength + totalLength(tail),
    half,
    currentLength: half.currentLength,
    isBinary,
    etag,
  };
}

/** The value is opened here, since its form decides the length; null when it is damaged. */
function prepareForVault(blob: Uint8Array, half: HalfOpen): Prepared | null {
  const value = openValue(half);
  if (value === null) return null;
  const head = readReply({ metadata: half.metadata, value }, null);
  return {
    head,
    tail: [],
    length: totalLength(head),
    half: null,
    currentLength: half.currentLength,
    isBinary: false,
    etag: etagOfCurrent(blob),
  };
}

/** Returns false, with nothing secret written, when the value is damaged. */
function writeResponse(bytes: Bytes, at: number, prepared: Prepared): boolean {
  const { head, tail, length, half, currentLength, isBinary, etag } = prepared;
  const valueAt = at + fieldsLength + totalLength(head);
  const end = at + fieldsLength + length - totalLength(tail);
  if (half !== null) {
    const opened = openValue(half, isBinary ? scratch(half.valueLength) : bytes.subarray(valueAt, end));
    if (opened === null) return false;
    if (isBinary) copySecret(bytes, jsonOfValue(opened), valueAt);
  }
  putUint32(bytes, at, length);
  putUint32(bytes, at + 4, currentLength);
  writeParts(bytes.subarray(at + 8), [etag, ...head]);
  writeParts(bytes.subarray(end), tail);
  return true;
}

function refusingAll(opens: readonly Open[], refusal: Refusal): Opened {
  return [allocate(0), new Map(opens.map((_, i) => [i, refusal]))];
}
