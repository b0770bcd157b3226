/** Scratch memory of the key worker: wiped when its operation ends, and unavailable outside of one. */
import { expect } from "chai";
import { scratch, withScratch } from "../../workers/memory.js";

describe("scratch memory", () => {
  it("scratch memory of any size is wiped when its operation ends or fails", () => {
    const used: Uint8Array[] = [];
    const operation = () => {
      const mine = [16, 1_000, 300_000].map((length, i) => scratch(length).fill(i + 1));
      used.push(...mine);
      return mine.every((bytes, i) => bytes.every((byte) => byte === i + 1));
    };
    expect(withScratch(operation), "not one on top of the other").to.equal(true);
    expect(() => withScratch(() => operation() && fail())).to.throw("it fails");
    expect(used).to.have.lengthOf(6);
    for (const bytes of used) expect(bytes.every((byte) => byte === 0)).to.equal(true);
    expect(() => scratch(1), "nothing would wipe it").to.throw("outside withScratch");
    expect(() => withScratch(() => withScratch(operation))).to.throw("inside withScratch");
  });

  it("scratch memory is wiped after any number of pieces, and reused", () => {
    const used: Uint8Array[] = [];
    withScratch(() => {
      for (let piece = 0; piece < 600_000; piece++) used.push(scratch(1).fill(1));
    });
    expect(used.every(([byte]) => byte === 0)).to.equal(true);
    expect(withScratch(() => scratch(1)[0])).to.equal(0);
  });
});

function fail(): never {
  throw new Error("it fails");
}
