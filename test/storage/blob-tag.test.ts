/** Tags of blobs: one for each sealing, read from the first bytes. */
import { expect } from "chai";
import { blobTag, headEnd, tagHeadBytes } from "../../src/storage/blob-tag.js";
import { metadataEnd, sealBlob } from "../../workers/crypto/blob.js";
import { XaesKey } from "../../workers/crypto/xaes.js";
import { allocate, randomize, utf8, withScratch } from "../../workers/memory.js";

describe("blob tags", () => {
  const key = { masterKey: new XaesKey(randomize(allocate(32))), oldKey: null, vaultId: randomize(allocate(16)) };
  const sealed = () => withScratch(() => sealBlob(key, "a/b", utf8("{}"), utf8('"value"')));

  it("a blob's tag is 12 bytes of the metadata's nonce as base64url, and needs only the first 21 bytes", () => {
    const blob = sealed();
    expect(blobTag(blob))
      .to.equal(Buffer.from(blob.subarray(9, 21)).toString("base64url"))
      .and.to.have.lengthOf(16);
    expect(blobTag(blob.subarray(0, tagHeadBytes))).to.equal(blobTag(blob));
  });

  it("two sealings of the same value differ in their tags", () => {
    expect(new Set(Array.from({ length: 100 }, () => blobTag(sealed()))).size).to.equal(100);
  });

  it("the tag lies in a box of random bytes, not in the layout before it or the ciphertext after it", () => {
    const [one, another] = [sealed(), sealed()];
    expect(one.subarray(0, 9)).to.deep.equal(another.subarray(0, 9));
    expect(metadataEnd(one) - 9).to.equal(24 + 2 + 16);
  });

  it("the blob's head ends with the sealed metadata, or with the blob where the metadata's length is wrong", () => {
    const blob = sealed();
    expect(headEnd(blob)).to.equal(metadataEnd(blob)).and.to.be.lessThan(blob.length);
    expect(headEnd(Buffer.concat([new Uint8Array(21), blob]), 21)).to.equal(21 + metadataEnd(blob));
    expect(headEnd(blob.subarray(0, 40))).to.equal(40);
    expect(headEnd(blob.subarray(0, 5))).to.equal(5);
    expect(headEnd(blob.map((byte, i) => (i === 5 ? 0xff : byte)))).to.equal(blob.length);
  });
});
