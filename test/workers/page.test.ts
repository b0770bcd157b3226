/** Pages of list entries: they open unchanged, in their own vault only. */
import { expect } from "chai";
import type { SealingKey } from "../../workers/crypto/blob.js";
import { openPage, sealPage } from "../../workers/crypto/page.js";
import { XaesKey } from "../../workers/crypto/xaes.js";
import { allocate, randomize, utf8, withScratch } from "../../workers/memory.js";
import type { Bytes } from "../../workers/protocol.js";

function newKey(): SealingKey {
  return { masterKey: new XaesKey(randomize(allocate(32))), oldKey: null, vaultId: randomize(allocate(16)) };
}

describe("a page of list entries", () => {
  const key = newKey();
  const entries = utf8('{"path":"a","metadata":{}},{"path":"b","metadata":{}}');

  const sealed = (plaintext: Bytes) => withScratch(() => sealPage(key, plaintext));
  const opened = (under: SealingKey, page: Uint8Array) => withScratch(() => openPage(under, page));

  it("opens unchanged, and never seals to the same bytes twice", () => {
    const pages = [sealed(entries), sealed(entries)];
    expect(pages[0]).not.to.deep.equal(pages[1]);
    for (const page of pages) expect(opened(key, page)).to.deep.equal(entries);
  });

  it("does not open with any bit changed, shortened, or in another vault", () => {
    const page = sealed(entries);
    for (let bit = 0; bit < 8 * page.length; bit++) {
      const changed = page.slice();
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(opened(key, changed), `bit ${bit}`).to.equal(null);
    }
    for (let length = 0; length < page.length; length++) expect(opened(key, page.subarray(0, length))).to.equal(null);
    expect(opened({ ...key, vaultId: newKey().vaultId }, page)).to.equal(null);
    expect(opened({ ...key, masterKey: newKey().masterKey }, page)).to.equal(null);
  });
});
