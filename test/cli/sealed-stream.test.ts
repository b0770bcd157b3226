/** Files that `strongroom encrypt` makes: every change of them is noticed, however they arrive. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import {
  chunkBytes,
  DamagedFile,
  openStream,
  readHead,
  sealedHead,
  sealStream,
} from "../../src/cli/kit/output/sealed-stream.js";

const key = randomBytes(32);
const wrapped = "vault:v1:AAAA";

async function* inParts(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collected(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(part);
  return Buffer.concat(all);
}

const seal = (bytes: Uint8Array, size = 10_000) => collected(sealStream(key, wrapped, inParts(bytes, size)));

async function open(file: Uint8Array, size = 10_000): Promise<Buffer> {
  const { wrappedKey, chunks } = await readHead(inParts(file, size));
  return collected(openStream(key, wrappedKey, chunks));
}

async function isDamaged(file: Uint8Array): Promise<boolean> {
  try {
    await open(file);
    return false;
  } catch (error) {
    if (error instanceof DamagedFile) return true;
    throw error;
  }
}

describe("encrypted files", () => {
  for (const length of [0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes, 3 * chunkBytes + 7]) {
    it(`a file of ${length} bytes decrypts, whatever the size of the parts`, async () => {
      const plaintext = randomBytes(length);
      for (const size of [7_919, chunkBytes, chunkBytes + 16, 1_000_000]) {
        expect(plaintext.equals(await open(await seal(plaintext, size), size))).to.equal(true);
      }
    });
  }

  it("an encrypted file with a changed bit, or a missing or further byte is refused", async () => {
    const file = await seal(randomBytes(2 * chunkBytes + 5));
    for (const at of [24, 30, sealedHead(wrapped).length, 1000, chunkBytes + 100, file.length - 1]) {
      const changed = Buffer.from(file);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      expect(await isDamaged(changed), `bit at ${at}`).to.equal(true);
    }
    expect(await isDamaged(file.subarray(0, -1))).to.equal(true);
    expect(await isDamaged(Buffer.concat([file, Buffer.of(0)]))).to.equal(true);
  });

  it("an encrypted file that ends after a whole chunk, or whose chunks are exchanged, is refused", async () => {
    const head = sealedHead(wrapped).length;
    const sealedChunk = chunkBytes + 16;
    const file = await seal(randomBytes(3 * chunkBytes));
    const chunk = (i: number) => file.subarray(head + i * sealedChunk, head + (i + 1) * sealedChunk);
    const start = file.subarray(0, head);
    expect(await isDamaged(Buffer.concat([start, chunk(0), chunk(1)]))).to.equal(true);
    expect(await isDamaged(Buffer.concat([start, chunk(1), chunk(0), chunk(2)]))).to.equal(true);
    expect(await isDamaged(Buffer.concat([start, chunk(2)]))).to.equal(true);
    expect(await isDamaged(start)).to.equal(true);
    expect(await isDamaged(start.subarray(0, -1))).to.equal(true);
  });
});
