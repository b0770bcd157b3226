/**
 * Memory of the key worker: nothing else in `workers/` may make a buffer. Everything that holds a secret is off V8's heap,
 * outside Node's pool, and wiped by the code that allocated it.
 */
import { type Cipher, type Decipher, randomFillSync } from "node:crypto";
import type { Bytes } from "./protocol.js";
import { clearRegisters, copySecret } from "./registers.js";

/**
 * Zeroed bytes outside V8's heap and Node's pool.
 *
 * DANGER: `new Uint8Array(n)` and `Buffer.alloc(n)` of small sizes start on V8's heap and are copied out at their first
 * native use; wiping then reaches only one of the two copies. An explicit ArrayBuffer never moves.
 */
export function allocate(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(length));
}

declare global {
  interface ArrayBufferConstructor {
    new (byteLength: number, options: { readonly maxByteLength: number }): ArrayBuffer;
  }
}

/**
 * Zeroed bytes for keys, which must be gone even when the thread is killed before it can wipe them. V8 maps a page for a
 * resizable buffer, and unmaps it when the buffer is freed, with its thread at the latest. DANGER: not
 * blocks of the size that malloc maps: V8 counts several for each derivation as memory pressure, and stops both threads for
 * full collections.
 */
export function allocateMapped(length: number): Bytes {
  return new Uint8Array(new ArrayBuffer(length, { maxByteLength: length }), 0, length);
}

/** Moves a key that must last over a wait into mapped memory, and wipes the original. */
export function mapped(key: Uint8Array): Bytes {
  const moved = allocateMapped(key.length);
  copySecret(moved, key);
  wipe(key);
  return moved;
}

/** One block for all operations, which run one at a time: an operation needs dozens of buffers. */
const block = allocate(256 * 1024);
let used = 0;
let isOpen = false;
/** Buffers that did not fit into the block. */
const overflow: Bytes[] = [];

/**
 * Runs an operation within one turn of the event loop and wipes all scratch memory that it used.
 * @throws Error inside another operation, whose scratch memory it would wipe.
 */
export function withScratch<T>(operation: () => T): T {
  if (isOpen) throw new Error("withScratch inside withScratch");
  isOpen = true;
  try {
    return operation();
  } finally {
    block.fill(0, 0, used);
    clearRegisters();
    for (const bytes of overflow.splice(0)) wipe(bytes); // not spread: the number of arguments is limited
    used = 0;
    isOpen = false;
  }
}

/**
 * Zeroed bytes that are wiped when the operation ends: do not keep or move them.
 * @throws Error outside an operation: nothing would wipe them.
 */
export function scratch(length: number): Uint8Array {
  if (!isOpen) throw new Error("scratch outside withScratch");
  if (length > block.length - used) {
    const bytes = allocate(length);
    overflow.push(bytes);
    return bytes;
  }
  used += length;
  return block.subarray(used - length, used);
}

export function randomize(target: Bytes): Bytes {
  randomFillSync(target);
  clearRegisters();
  return target;
}

/** Random bytes in stock: each call of the system costs as much as sealing a small value. */
const nonceStock = allocate(4096);
let nonceStockAt = nonceStock.length;

/** Returns random bytes that it has not returned before. They are not secret: the stock is in memory as it is. */
export function freshNonce(length: number): Uint8Array {
  const nonce = scratch(length);
  putFreshNonce(nonce, length);
  return nonce;
}

/** Like `freshNonce`, at the beginning of `target`. */
export function putFreshNonce(target: Uint8Array, length: number): void {
  if (nonceStockAt + length > nonceStock.length) {
    randomFillSync(nonceStock);
    nonceStockAt = 0;
  }
  for (let i = 0; i < length; i++) target[i] = nonceStock[nonceStockAt + i] ?? 0;
  nonceStockAt += length; // DANGER: a nonce that is returned twice reveals plaintexts
}

export function wipe(...parts: readonly (Uint8Array | null | undefined)[]): void {
  for (const part of parts) part?.fill(0);
}

/**
 * Overwrites copies of this length that OpenSSL's decoders have freed without clearing. glibc keeps up to seven freed blocks
 * of each size for the next allocations of the thread; OpenSSL rounds the size of a growing buffer up by a third.
 */
export function scrubFreed(length: number): void {
  const sizes = [length, Math.floor((length + 3) / 3) * 4];
  const blocks = sizes.flatMap((size) => Array.from({ length: 8 }, () => Buffer.allocUnsafeSlow(size)));
  wipe(...blocks);
}

/** Random bytes in stock for masks, each of which is used once. */
const masks = allocate(64 * 1024);
const maskWords = new Int32Array(masks.buffer);
let masksAt = masks.length;

/** Returns random bytes, at most 64 KiB, that it has not returned before. The caller wipes them. */
export function freshMask(length: number): Uint8Array {
  if (length > masks.length - masksAt) {
    randomFillSync(masks);
    masksAt = 0;
  }
  const mask = masks.subarray(masksAt, masksAt + length);
  masksAt += 4 * Math.ceil(length / 4); // to a whole word
  return mask;
}

/** How much is decrypted at once, and where: in words, which JavaScript combines faster than bytes. */
const partBytes = 16 * 1024;
const blockBytes = 16;
const keystream = allocate(masks.length);
const keystreamWords = new Int32Array(keystream.buffer);
const part = allocate(partBytes);
const partWords = new Int32Array(part.buffer);

/**
 * Decrypts into `target`, of the ciphertext's length, and leaves no other copy. The cipher is one whose ciphertext is the
 * plaintext xor a keystream.
 *
 * DANGER: not by the `update` of a decipher. It decrypts into a block that is a little too long, copies it and frees it
 * unwiped, and a garbage collection at that moment puts the block out of reach. Here the cipher encrypts random bytes, which
 * are wiped then: what Node frees is the keystream xor those bytes, and tells nothing.
 */
export function decryptInto(target: Uint8Array, cipher: Cipher, ciphertext: Uint8Array): void {
  for (let at = 0; at < ciphertext.length; at += partBytes) {
    decryptPart(target.subarray(at), cipher, ciphertext.subarray(at, at + partBytes));
  }
}

function decryptPart(target: Uint8Array, cipher: Cipher, ciphertext: Uint8Array): void {
  const { length } = ciphertext;
  const mask = freshMask(length);
  const maskAt = mask.byteOffset / 4;
  keystream.set(cipher.update(mask));
  part.set(ciphertext);
  for (let i = 0; 4 * i < length; i++) {
    partWords[i] = (partWords[i] ?? 0) ^ (keystreamWords[i] ?? 0) ^ (maskWords[maskAt + i] ?? 0);
  }
  copySecret(target, length === partBytes ? part : part.subarray(0, length));
  mask.fill(0);
  part.fill(0, 0, length + 3);
}

const blockWords = 4;

/** Texts that are hidden or shown at once, each of at most a KiB: two blocks of a mask for each of theirs fit into the stock. */
const mostPadded = 24;

/** Xors each text with the AES-CTR keystream of its nonce of 12 bytes, which hides it, or shows it again. */
export function xorWithPads(
  cipher: Decipher,
  texts: readonly { readonly nonce: Uint8Array; readonly bytes: Uint8Array }[],
): void {
  for (let at = 0; at < texts.length; at += mostPadded) xorAtOnce(cipher, texts.slice(at, at + mostPadded));
}

/**
 * CFB decrypts a block by xor with the encryption of the block before it. Each counter block has a random one behind it, so
 * that the output, which Node frees unwiped, is the keystream xor random bytes; one more takes the place of the last one in
 * the cipher's memory.
 */
function xorAtOnce(cipher: Decipher, texts: Parameters<typeof xorWithPads>[1]): void {
  let blocks = 0;
  for (const { bytes } of texts) blocks += Math.ceil(bytes.length / blockBytes);
  const mask = freshMask((2 * blocks + 1) * blockBytes);
  const maskAt = mask.byteOffset / 4;
  let at = maskAt;
  for (const { nonce, bytes } of texts) at = putCounters(at, nonce, bytes.length);
  keystream.set(cipher.update(mask));
  at = 0;
  for (const { bytes } of texts) {
    copySecret(part, bytes);
    const words = Math.ceil(bytes.length / blockBytes) * blockWords;
    for (let i = 0; i < words; i++) {
      const masked = at + 2 * i - (i & 3) + blockWords; // the second of each two blocks
      partWords[i] = (partWords[i] ?? 0) ^ (keystreamWords[masked] ?? 0) ^ (maskWords[maskAt + masked] ?? 0);
    }
    copySecret(bytes, part.subarray(0, bytes.length));
    part.fill(0, 0, words * 4);
    at += 2 * words;
  }
  mask.fill(0);
}

/** Puts a counter block before each random one, as far as the text needs; returns where they end. */
function putCounters(start: number, nonce: Uint8Array, length: number): number {
  let at = start;
  const [first, second, third] = [readUint32(nonce, 0), readUint32(nonce, 4), readUint32(nonce, 8)];
  for (let block = 0; block * blockBytes < length; block++, at += 2 * blockWords) {
    maskWords[at] = first;
    maskWords[at + 1] = second;
    maskWords[at + 2] = third;
    maskWords[at + 3] = block;
  }
  return at;
}

/** Copies the result of a native function into memory of our own, and wipes the original. */
export function takeOver(native: Uint8Array): Bytes {
  const owned = concat([native]);
  wipe(native);
  return owned;
}

/** Views a buffer's memory as bytes, without a copy. */
export function bytesView(buffer: Buffer): Bytes {
  return new Uint8Array(buffer.buffer as ArrayBuffer, buffer.byteOffset, buffer.byteLength);
}

/** Concatenates the parts, texts as UTF-8, in memory of exactly their size. */
export function concat(parts: readonly (Uint8Array | string)[]): Bytes {
  const joined = allocate(totalLength(parts));
  writeParts(joined, parts);
  return joined;
}

/** Like `concat`, in scratch memory. */
export function concatScratch(...parts: readonly (Uint8Array | string)[]): Uint8Array {
  const joined = scratch(totalLength(parts));
  writeParts(joined, parts);
  return joined;
}

export function totalLength(parts: readonly (Uint8Array | string)[]): number {
  let length = 0;
  for (const part of parts) length += byteLength(part);
  return length;
}

const encoder = new TextEncoder();

export function writeParts(target: Uint8Array, parts: readonly (Uint8Array | string)[]): void {
  let at = 0;
  for (const part of parts) {
    if (typeof part === "string") {
      at += putText(target, at, part);
    } else {
      copySecret(target, part, at);
      at += part.length;
    }
  }
}

/** A call of a native function takes as long as this many characters. */
const shortText = 40;

function isShortAscii(text: string): boolean {
  if (text.length > shortText) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}

/** Writes a text as UTF-8; returns its length in bytes. */
export function putText(target: Uint8Array, at: number, text: string): number {
  if (!isShortAscii(text)) return encoder.encodeInto(text, target.subarray(at)).written;
  for (let i = 0; i < text.length; i++) target[at + i] = text.charCodeAt(i);
  return text.length;
}

/** UTF-8 of a text that is not secret. */
export function utf8(text: string): Bytes {
  return concat([text]);
}

export function bytesFrom(...values: readonly number[]): Bytes {
  return concat([Uint8Array.from(values)]);
}

/** Four bytes, big endian. */
export function uint32(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value);
}

export function putUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

export function readUint32(bytes: Uint8Array, at: number): number {
  return (
    (byteAt(bytes, at) * 256 + byteAt(bytes, at + 1)) * 65536 + byteAt(bytes, at + 2) * 256 + byteAt(bytes, at + 3)
  );
}

function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

export function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

export function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  for (let i = 0; i < start.length; i++) if (bytes[i] !== start[i]) return false;
  return true;
}

/** Decodes bytes that are not secret: a string cannot be wiped. */
export function decodeText(bytes: Uint8Array): string {
  return asBuffer(bytes).toString("utf8");
}

/** Bytes of a string of one character a byte, in scratch memory. */
export function fromLatin1(text: string): Uint8Array {
  const bytes = scratch(text.length);
  asBuffer(bytes).write(text, "latin1");
  return bytes;
}

/** Base64url without padding, of bytes that are not secret. */
export function base64url(bytes: Uint8Array): string {
  return base64urlOfPart(bytes, 0, bytes.length);
}

/** Like `base64url`, without a view of the part. */
export function base64urlOfPart(bytes: Uint8Array, start: number, end: number): string {
  return asBuffer(bytes).toString("base64url", start, end);
}

export function fromBase64url(text: string): Bytes {
  return takeOver(Buffer.from(text, "base64url"));
}

export function byteLength(part: Uint8Array | string): number {
  return typeof part === "string" && !isShortAscii(part) ? Buffer.byteLength(part) : part.length;
}

/** Views bytes as a Buffer, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
