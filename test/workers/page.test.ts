/** Pages of list entries: they open as they were sealed, in their own vault, and not otherwise. */
import { expect } from "chai";
import type { SealingKey } from "../../workers/crypto/blob.js";
import { allocate, borrow, lendMemory, randomize, utf8 } from "../../workers/memory.js";
import { openPage, sealPage } from "../../workers/crypto/page.js";
import { XaesKey } from "../../workers/crypto/xaes.js";

function newKey(): SealingKey {
  return { masterKey: new XaesKey(randomize(allocate(32))), vaultId: randomize(allocate(16)) };
}

describe("a page of list entries", () => {
  const key = newKey();
  const entries = utf8('{"path":"a","metadata":{}},{"path":"b","metadata":{}}');

  it("opens as it was sealed, and never looks the same twice", () => {
    const pages = [sealPage(key, entries), sealPage(key, entries)];
    expect(pages[0]).not.to.deep.equal(pages[1]);
    for (const page of pages) expect(openPage(key, page)).to.deep.equal(entries);
  });

  it("does not open with any bit changed, shortened, or in another vault", () => {
    const page = sealPage(key, entries);
    for (let bit = 0; bit < 8 * page.length; bit++) {
      const changed = page.slice();
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(openPage(key, changed), `bit ${bit}`).to.equal(null);
    }
    for (let length = 0; length < page.length; length++) expect(openPage(key, page.subarray(0, length))).to.equal(null);
    expect(openPage({ ...key, vaultId: newKey().vaultId }, page)).to.equal(null);
    expect(openPage({ ...key, masterKey: newKey().masterKey }, page)).to.equal(null);
  });
});

describe("memory that is lent", () => {
  it("is wiped when its operation ends or fails, however much it was", () => {
    const lent: Uint8Array[] = [];
    const operation = () => {
      const mine = [16, 1_000, 300_000].map((length, i) => borrow(length).fill(i + 1));
      lent.push(...mine);
      return mine.every((bytes, i) => bytes.every((byte) => byte === i + 1));
    };
    expect(lendMemory(operation), "not one on top of the other").to.equal(true);
    expect(() => lendMemory(() => operation() && fail())).to.throw("it fails");
    expect(lent).to.have.lengthOf(6);
    for (const bytes of lent) expect(bytes.every((byte) => byte === 0)).to.equal(true);
    expect(() => lendMemory(() => lendMemory(operation))).to.throw("within another");
  });

  it("is wiped in however many pieces it was lent, and can then be lent again", () => {
    const lent: Uint8Array[] = [];
    lendMemory(() => {
      for (let piece = 0; piece < 600_000; piece++) lent.push(borrow(1).fill(1));
    });
    expect(lent.every(([byte]) => byte === 0)).to.equal(true);
    expect(lendMemory(() => borrow(1)[0])).to.equal(0);
  });
});

function fail(): never {
  throw new Error("it fails");
}
