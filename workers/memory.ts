/** Owns how the key worker gets, compares and wipes memory. Nothing here ever makes a string of the bytes it is given. */
import { randomFillSync } from "node:crypto";
import type { Bytes } from "./protocol.js";

/**
 * Zeroed bytes outside V8's heap and Node's pool.
 *
 * DANGER: `new Uint8Array(n)` and `Buffer.alloc(n)` of small sizes start on V8's heap and are copied out at their first
 * native use; wiping then reaches only one of the two copies. An explicit ArrayBuffer never moves.
 */
export function allocate(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(length));
}

export function randomBytes(length: number): Bytes {
  return randomFillSync(allocate(length));
}

export function wipe(...parts: readonly (Uint8Array | null | undefined)[]): void {
  for (const part of parts) part?.fill(0);
}

/** UTF-8 of a text that is not secret. */
export function utf8(text: string): Bytes {
  return concat([text]);
}

/** One piece of memory of exactly the right size that holds the parts in order, texts as UTF-8. */
export function concat(parts: readonly (Uint8Array | string)[]): Bytes {
  const joined = allocate(parts.reduce((sum, part) => sum + byteLength(part), 0));
  const encoder = new TextEncoder();
  let at = 0;
  for (const part of parts) {
    if (typeof part === "string") encoder.encodeInto(part, joined.subarray(at));
    else joined.set(part, at);
    at += byteLength(part);
  }
  return joined;
}

function byteLength(part: Uint8Array | string): number {
  return typeof part === "string" ? Buffer.byteLength(part) : part.length;
}
