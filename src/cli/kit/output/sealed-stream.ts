/**
 * Files that `strongroom encrypt` makes of more than one message, as docs/transit.md describes:
 *
 *   "strongroom-encrypted v1\n"   24 bytes
 *   the data key, encrypted by the transit key, "vault:v<N>:<base64>\n", at most 2048 bytes
 *   chunks: AES-256-GCM under the data key, of 64 KiB of plaintext each, the last one of 0 to 64 KiB: ciphertext ‖ tag (16)
 *     nonce: number of the chunk from 0 (11, big endian) ‖ 1 in the last chunk, else 0
 *     AAD: everything before the first chunk
 *
 * A chunk that is changed, left out or moved does not open, nor does a file that ends too early (the STREAM construction,
 * as in age). A data key encrypts one file.
 */
import { createCipheriv, createDecipheriv } from "node:crypto";

export const magic = "strongroom-encrypted v1\n";
export const chunkBytes = 64 * 1024;
const tagBytes = 16;
const longestHead = magic.length + 2048;
const algorithm = "aes-256-gcm";
const options = { authTagLength: tagBytes };

/** Why a file does not decrypt. */
export class DamagedFile extends Error {
  constructor() {
    super("the encrypted file is damaged or incomplete");
  }
}

export function sealedHead(wrappedKey: string): Buffer {
  return Buffer.from(`${magic}${wrappedKey}\n`);
}

/** Encrypts; the caller wipes the key. */
export async function* sealStream(
  key: Uint8Array,
  wrappedKey: string,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer> {
  const head = sealedHead(wrappedKey);
  yield head;
  let number = 0;
  for await (const { chunk, isLast } of splitChunks(source, chunkBytes)) {
    const cipher = createCipheriv(algorithm, key, chunkNonce(number++, isLast), options).setAAD(head);
    yield Buffer.concat([cipher.update(chunk), cipher.final(), cipher.getAuthTag()]);
  }
}

/** Splits a file into its wrapped key and its chunks. @throws DamagedFile */
export async function readHead(
  source: AsyncIterable<Uint8Array>,
): Promise<{ readonly wrappedKey: string; readonly chunks: AsyncIterable<Uint8Array> }> {
  const iterator = source[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  for (;;) {
    const end = held.indexOf("\n", magic.length);
    if (end >= 0) {
      const wrappedKey = held.toString("latin1", magic.length, end);
      return { wrappedKey, chunks: continued(held.subarray(end + 1), iterator) };
    }
    const next = held.length > longestHead ? null : await iterator.next();
    if (next === null || next.done) throw new DamagedFile();
    held = Buffer.concat([held, next.value]);
  }
}

/** Decrypts; yields no byte that is not authentic. The caller wipes the key. @throws DamagedFile */
export async function* openStream(
  key: Uint8Array,
  wrappedKey: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Buffer> {
  const head = sealedHead(wrappedKey);
  let number = 0;
  for await (const { chunk, isLast } of splitChunks(chunks, chunkBytes + tagBytes)) {
    if (chunk.length < tagBytes) throw new DamagedFile();
    const decipher = createDecipheriv(algorithm, key, chunkNonce(number++, isLast), options).setAAD(head);
    decipher.setAuthTag(chunk.subarray(chunk.length - tagBytes));
    const plaintext = decipher.update(chunk.subarray(0, chunk.length - tagBytes));
    try {
      decipher.final();
    } catch {
      plaintext.fill(0);
      throw new DamagedFile();
    }
    yield plaintext;
  }
}

function chunkNonce(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeBigUInt64BE(BigInt(number), 3);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

/** Cuts what comes into chunks of this size; only the last is shorter, and empty only where everything is. */
async function* splitChunks(
  source: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<{ readonly chunk: Buffer; readonly isLast: boolean }> {
  let held: Buffer = Buffer.alloc(0);
  for await (const part of source) {
    held = Buffer.concat([held, part]);
    while (held.length > size) {
      yield { chunk: held.subarray(0, size), isLast: false };
      held = held.subarray(size);
    }
  }
  yield { chunk: held, isLast: true };
}

async function* continued(first: Buffer, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}
