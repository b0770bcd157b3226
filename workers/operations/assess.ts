/**
 * Judgements of values: strength, which are equal, and digests to search files and lists of breached passwords with. A value is
 * bytes in scratch memory; of it, only scores and digests get onto V8's heap.
 *
 *   reuse   the first 16 bytes of HMAC-SHA-256(HMAC-SHA-256(K("reuse check "), the caller's key), the value)
 *   search  of a text: start, a polynomial hash of its first 8 bytes, and digest, HMAC-SHA-256(the caller's key, "search" ‖ text)
 *   breach  the first 4 bytes of the value's SHA-1, and HMAC-SHA-256(the caller's key, "breach" ‖ SHA-1 of the value)
 *
 * The caller can test guesses of a value with the last two, so only those may ask who may also read the value. With the
 * first, no one can: its key never leaves this thread.
 */
import { createHash, createHmac } from "node:crypto";
import { WordTable } from "../check/words.js";
import { openCurrent, type SealingKey } from "../crypto/blob.js";
import { base64url, readUint32, takeOver, utf8, wipe } from "../memory.js";
import type { AssessPart, RequestOf, ResultOf } from "../protocol.js";
import type { Context } from "./context.js";
import { bytesOfValue, isBinary } from "./value.js";
import { encodeValue } from "./value-encodings.js";
import { judgeText } from "./value-form.js";

const reuseUse = "reuse check ";
const digestBytes = 16;

/** A shorter text is found by chance. */
const shortestSearched = 8;

/** Minimum bytes of a searched line: shorter lines may occur elsewhere. */
const shortestLine = 20;

export function assess({ keyring }: Context, request: RequestOf<"assess">): ResultOf<"assess"> {
  return keyring.withKey((key) => {
    const words = new WordTable(request.words);
    const reuseKey = hmac(key.masterKey.deriveKey(reuseUse), request.key);
    try {
      const damaged: string[] = [];
      const entries = request.secrets.flatMap(({ path, blob }) => {
        const entry = assessOne(key, path, blob, { ...request, words, reuseKey });
        if (entry === null) damaged.push(path);
        return entry ?? [];
      });
      return { ok: true, response: utf8(entries.map((entry) => JSON.stringify(entry)).join(",")), damaged };
    } finally {
      wipe(reuseKey);
    }
  });
}

type How = {
  readonly key: Uint8Array;
  readonly parts: readonly AssessPart[];
  readonly words: WordTable;
  readonly reuseKey: Uint8Array;
};

/** Returns null for a damaged secret. */
function assessOne(
  sealing: SealingKey,
  path: string,
  blob: Uint8Array,
  { key, parts, words, reuseKey }: How,
): object | null {
  const opened = openCurrent(sealing, path, blob);
  if (opened === null) return null;
  const value = bytesOfValue(opened.value);
  const isText = !isBinary(opened.value);
  return {
    path,
    bytes: value.length,
    ...(parts.includes("strength") && isText && judgeText(trimmed(value), words)),
    ...(parts.includes("reuse") && { reuse: shown(hmac(reuseKey, value)) }),
    ...(parts.includes("search") && { search: searchable(value, isText).map((text) => searchPattern(key, text)) }),
    ...(parts.includes("breach") && { breach: breachDigest(key, value) }),
  };
}

/** Returns the bytes to search for: the value, its encodings, and a long line of it; none for a short value. */
function searchable(value: Uint8Array, isText: boolean): readonly Uint8Array[] {
  const whole = isText ? trimmed(value) : value;
  if (whole.length < shortestSearched) return [];
  const line = longestLine(value);
  const lines = isText && line.length < whole.length && line.length >= shortestLine ? [line] : [];
  return [whole, ...encodeValue(whole, isText), ...lines].filter((text) => text.length >= shortestSearched);
}

function isWhite(byte = 0): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
}

function trimmed(text: Uint8Array): Uint8Array {
  let [start, end] = [0, text.length];
  while (start < end && isWhite(text[start])) start++;
  while (end > start && isWhite(text[end - 1])) end--;
  return text.subarray(start, end);
}

const lineFeed = 0x0a;

function longestLine(text: Uint8Array): Uint8Array {
  let longest = text.subarray(0, 0);
  for (let at = 0; at < text.length; ) {
    const found = text.indexOf(lineFeed, at);
    const end = found < 0 ? text.length : found;
    const line = trimmed(text.subarray(at, end));
    if (line.length > longest.length) longest = line;
    at = end + 1;
  }
  return longest;
}

const searchLabel = utf8("search");
const breachLabel = utf8("breach");

function searchPattern(key: Uint8Array, text: Uint8Array): object {
  const base = readUint32(key, 0) | 1;
  let start = 0;
  for (let at = 0; at < shortestSearched; at++) start = (Math.imul(start, base) + (text[at] ?? 0)) | 0;
  return { bytes: text.length, start: start >>> 0, digest: shown(hmac(key, searchLabel, text)) };
}

function breachDigest(key: Uint8Array, value: Uint8Array): object {
  const hash = takeOver(createHash("sha1").update(value).digest());
  const prefix = [...hash.subarray(0, 4)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const digest = shown(hmac(key, breachLabel, hash));
  wipe(hash);
  return { prefix, digest };
}

function hmac(key: Uint8Array, ...parts: readonly Uint8Array[]): Uint8Array {
  const mac = createHmac("sha256", key);
  for (const part of parts) mac.update(part);
  return takeOver(mac.digest());
}

function shown(mac: Uint8Array): string {
  return base64url(mac.subarray(0, digestBytes));
}
