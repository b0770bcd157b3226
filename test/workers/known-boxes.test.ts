/** Metadata that has opened is known by all of its sealed bytes and its place, and is wiped with its key. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { KnownBoxes } from "../../workers/crypto/known-boxes.js";
import { openKnown, seal, XaesKey } from "../../workers/crypto/xaes.js";
import { allocate, concat, textOf, utf8, withScratch } from "../../workers/memory.js";

const aad = utf8("vault and path");
const metadata = utf8('{"metadata":{}}');

describe("boxes that have opened", () => {
  it("are known under their own AAD and in each of their bits", () => {
    withScratch(() => {
      const [known, box] = [new KnownBoxes(), randomBytes(80)];
      expect(known.find(aad, box)).to.equal(null);
      known.keep(aad, box, metadata);
      expect(textOf(known.find(aad, box) ?? utf8(""))).to.equal(textOf(metadata));
      for (const other of ["vault and patH", "vault and path ", "vault and pat", ""])
        expect(known.find(utf8(other), box), other).to.equal(null);
      for (let bit = 0; bit < 8 * box.length; bit++) {
        const changed = concat([box]);
        changed[bit >>> 3] = (changed[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
        expect(known.find(aad, changed), `bit ${bit}`).to.equal(null);
      }
      for (const length of [0, 3, 79]) expect(known.find(aad, box.subarray(0, length))).to.equal(null);
      expect(known.find(aad, concat([box, "\0"]))).to.equal(null);
    });
  });

  it("are replaced by one with the same place, not remembered when they are long, and wiped", () => {
    withScratch(() => {
      const memory = allocate(8 * 1024 * 1024);
      const [known, box] = [new KnownBoxes(memory), randomBytes(80)];
      known.keep(aad, box, metadata);
      const other = concat([box.subarray(0, 4), randomBytes(76)]);
      known.keep(aad, other, utf8("another"));
      expect(known.find(aad, box)).to.equal(null);
      expect(textOf(known.find(aad, other) ?? utf8(""))).to.equal("another");
      const long = concat([box.subarray(0, 4), randomBytes(500)]);
      known.keep(aad, long, metadata);
      expect(known.find(aad, long)).to.equal(null);
      expect(memory.some((byte) => byte !== 0)).to.equal(true);
      known.wipe();
      expect(memory.every((byte) => byte === 0)).to.equal(true);
      expect(known.find(aad, other)).to.equal(null);
    });
  });

  it("do not open under another key, and are forgotten with theirs", () => {
    const [first, second] = [new XaesKey(concat([randomBytes(32)])), new XaesKey(concat([randomBytes(32)]))];
    withScratch(() => {
      const [pieces = []] = seal(first, [{ plaintext: metadata, aad: () => aad }]);
      const box = concat(pieces);
      for (let time = 0; time < 2; time++) {
        const [opened = null] = openKnown(first, [{ box, aad }]);
        expect(textOf(opened ?? utf8(""))).to.equal(textOf(metadata));
        expect(openKnown(second, [{ box, aad }])).to.deep.equal([null]);
      }
      const { known } = first;
      first.end();
      expect(known.find(aad, box)).to.equal(null);
    });
    second.end();
  });
});
