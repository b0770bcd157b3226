/** A box that has opened is known by all of its sealed bytes and its place, unreadable in memory, and forgotten with its key. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import fc from "fast-check";
import { KnownBoxes, type Sealed } from "../../workers/crypto/known-boxes.js";
import { nonceBytes, open, openKnown, seal, sealWithNonce, XaesKey } from "../../workers/crypto/xaes.js";
import { allocate, concat, decodeText, utf8, withScratch } from "../../workers/memory.js";

const aad = utf8("vault and path");
const metadata = utf8('{"metadata":{}}');

function textIn(known: KnownBoxes, box: Uint8Array, boxAad = aad): string | null {
  const [found = null] = known.find([{ box, aad: boxAad }]);
  return found && decodeText(found);
}

describe("known boxes", () => {
  it("a box is known under its own AAD and in each of its bits", () => {
    withScratch(() => {
      const [known, box] = [new KnownBoxes(), randomBytes(80)];
      expect(textIn(known, box)).to.equal(null);
      known.keep([{ box, aad, plaintext: metadata }]);
      expect(textIn(known, box)).to.equal(decodeText(metadata));
      for (const other of ["vault and patH", "vault and path ", "vault and pat", ""])
        expect(textIn(known, box, utf8(other)), other).to.equal(null);
      for (let bit = 0; bit < 8 * box.length; bit++) {
        const changed = concat([box]);
        changed[bit >>> 3] = (changed[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
        expect(textIn(known, changed), `bit ${bit}`).to.equal(null);
      }
      for (const length of [0, 3, 79]) expect(textIn(known, box.subarray(0, length))).to.equal(null);
      expect(textIn(known, concat([box, "\0"]))).to.equal(null);
    });
  });

  it("a long box is not remembered, and a wipe clears the memory", () => {
    withScratch(() => {
      const memory = allocate(8 * 1024 * 1024);
      const [known, box] = [new KnownBoxes(memory), randomBytes(80)];
      known.keep([{ box, aad, plaintext: metadata }]);
      const long = concat([box.subarray(0, 4), randomBytes(1000)]);
      known.keep([{ box: long, aad, plaintext: metadata }]);
      expect(textIn(known, long)).to.equal(null);
      expect(memory.some((byte) => byte !== 0)).to.equal(true);
      known.wipe();
      expect(memory.every((byte) => byte === 0)).to.equal(true);
      expect(textIn(known, box)).to.equal(null);
    });
  });

  it("two neighbouring boxes share two places, where a third replaces one of them", () => {
    withScratch(() => {
      const known = new KnownBoxes();
      const first = concat([Uint8Array.of(0, 0, 0, 6), randomBytes(76)]);
      const second = concat([first.subarray(0, 4), randomBytes(76)]);
      const third = concat([Uint8Array.of(0, 0, 0, 7), randomBytes(76)]);
      const boxes = [first, second, third];
      for (const [i, box] of boxes.slice(0, 2).entries()) known.keep([{ box, aad, plaintext: utf8(`text ${i}`) }]);
      expect(boxes.map((box) => textIn(known, box))).to.deep.equal(["text 0", "text 1", null]);
      known.keep([{ box: third, aad, plaintext: utf8("text 2") }]);
      const found = boxes.map((box) => textIn(known, box));
      expect(found[2]).to.equal("text 2");
      expect(found.filter((text, i) => text === `text ${i}`)).to.have.length(2);
    });
  });

  it("texts of every length are hidden under pads that differ, and many are found in one call", () => {
    const memory = allocate(8 * 1024 * 1024);
    const known = new KnownBoxes(memory);
    const texts = Array.from({ length: 300 }, (_, length) => "x".repeat(length));
    const sealed = texts.map((text) => ({ aad, box: randomBytes(40 + text.length) }));
    withScratch(() => {
      known.keep(texts.map((text, i) => ({ aad, box: sealed[i]?.box ?? aad, plaintext: utf8(text) })));
      expect(Buffer.from(memory.buffer).includes("x".repeat(8))).to.equal(false);
      const found = known.find(sealed);
      const wrong = texts.filter((text, i) => (found[i] ? decodeText(found[i]) !== text : !hasCompany(sealed, i)));
      expect(wrong).to.deep.equal([]);
    });
    const hidden = (i: number) => Buffer.from(memory).indexOf(sealed[i]?.box ?? aad) + 40 + i;
    const [one, two] = [hidden(298), hidden(299)].map((at) => memory.subarray(at, at + 298));
    expect(one).not.to.deep.equal(two);
  });

  it("a third box of the same places, kept at the same time, replaces an earlier one", () => {
    withScratch(() => {
      const [known, box] = [new KnownBoxes(), randomBytes(80)];
      const other = concat([box.subarray(0, 5), randomBytes(90)]); // of two, it would replace the first
      known.keep([
        { box, aad, plaintext: utf8("replaced") },
        { box: concat([box.subarray(0, 5), randomBytes(75)]), aad, plaintext: metadata },
        { box: other, aad: utf8("another path"), plaintext: metadata },
      ]);
      expect(textIn(known, box)).to.equal(null);
      expect(textIn(known, other, utf8("another path"))).to.equal(decodeText(metadata));
    });
  });

  it("a box is kept the second time that it is opened alone", () => {
    withScratch(() => {
      const [known, box] = [new KnownBoxes(), randomBytes(80)];
      const other = concat([box.subarray(0, 4), randomBytes(76)]);
      known.keepAgain({ box, aad, plaintext: metadata });
      expect(textIn(known, box)).to.equal(null);
      known.keepAgain({ box, aad, plaintext: metadata });
      known.keepAgain({ box: other, aad, plaintext: metadata });
      expect(textIn(known, box)).to.equal(decodeText(metadata));
    });
  });

  it("a known box does not open under another key, and is forgotten with its own", () => {
    const [first, second] = [new XaesKey(concat([randomBytes(32)])), new XaesKey(concat([randomBytes(32)]))];
    withScratch(() => {
      const [pieces = []] = seal(first, [{ plaintext: metadata, aad: () => aad }]);
      const box = concat(pieces);
      for (let time = 0; time < 2; time++) {
        const [opened = null] = openKnown(first, [{ box, aad }]);
        expect(decodeText(opened ?? utf8(""))).to.equal(decodeText(metadata));
        expect(openKnown(second, [{ box, aad }])).to.deep.equal([null]);
      }
      const { known } = first;
      first.end();
      expect(textIn(known, box)).to.equal(null);
    });
    second.end();
  });
});

describe("crafted boxes", () => {
  // Few places and halves of nonces, so that boxes meet, and lengths around the 1,024 bytes that fit.
  const few = fc.constantFrom(0, 1, 0x2000);
  const original = fc.record({
    nonce: fc.tuple(few, few, few),
    aad: fc.constantFrom(0, 1, 100, 101, 984, 985, 1100).map((length) => Buffer.alloc(length, "a")),
    plaintext: fc.constantFrom(0, 1, 40, 441, 442, 443).map((length) => Buffer.alloc(length, "p")),
  });
  type Original = typeof original extends fc.Arbitrary<infer O> ? O : never;

  function sealedAs(key: XaesKey, { nonce: [place, seen, last], aad, plaintext }: Original): Sealed {
    const nonce = Buffer.alloc(nonceBytes);
    nonce.writeUInt32BE(place, 0);
    nonce.writeUInt32BE(seen, 4);
    nonce.writeUInt32BE(last, 20);
    return { box: concat([nonce, sealWithNonce(key, nonce, plaintext, aad)]), aad };
  }

  const flipped = (bytes: Uint8Array, at: number) => {
    const copy = concat([bytes]);
    copy[at % copy.length] = (copy[at % copy.length] ?? 0) ^ 1;
    return copy;
  };

  const changes: Readonly<Record<string, (sealed: Sealed, at: number) => Sealed>> = {
    none: (sealed) => sealed,
    box: ({ box, aad }, at) => ({ box: flipped(box, at), aad }),
    nonce: ({ box, aad }, at) => ({ box: flipped(box, at % nonceBytes), aad }),
    tag: ({ box, aad }, at) => ({ box: flipped(box, box.length - 1 - (at % 16)), aad }),
    aad: ({ box, aad }, at) => ({ box, aad: aad.length === 0 ? utf8("a") : flipped(aad, at) }),
    cut: ({ box, aad }, at) => ({ box: box.subarray(0, at % box.length), aad }),
    longer: ({ box, aad }) => ({ box: concat([box, "\0"]), aad }),
    moved: ({ box, aad }) => ({ box: box.subarray(1), aad: concat([aad, box.subarray(0, 1)]) }),
  };
  const step = fc.record({ which: fc.nat(), change: fc.constantFrom("none", ...Object.keys(changes)), at: fc.nat() });
  type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

  const shown = (plaintexts: readonly (Uint8Array | null)[]) => plaintexts.map((one) => one && decodeText(one));

  function openAsIfNew(key: XaesKey, boxes: readonly Sealed[]): void {
    const opened = open(key, boxes);
    expect(shown(openKnown(key, boxes))).to.deep.equal(shown(opened));
    for (const [i, box] of boxes.entries()) {
      const plaintext = opened[i] ?? null;
      if (plaintext !== null) key.known.keepAgain({ ...box, plaintext });
      const [found = null] = key.known.find([box]);
      if (found !== null) expect(shown([found])).to.deep.equal(shown([plaintext]));
    }
  }

  it("crafted boxes open as if nothing were remembered, whatever has opened before them", () => {
    const originals = fc.array(original, { minLength: 1, maxLength: 4 });
    const rounds = fc.array(fc.array(step, { maxLength: 30 }), { maxLength: 5 });
    const agrees = (pool: readonly Original[], steps: readonly (readonly Step[])[]) => {
      const key = new XaesKey(concat([randomBytes(32)]));
      const sealed = withScratch(() => pool.map((one) => sealedAs(key, one)));
      const applyStep = ({ which, change, at }: Step) => {
        const from = sealed[which % sealed.length];
        return from === undefined ? [] : (changes[change]?.(from, at) ?? []);
      };
      for (const round of steps) withScratch(() => openAsIfNew(key, round.flatMap(applyStep)));
      key.end();
    };
    fc.assert(fc.property(originals, rounds, agrees), { numRuns: 200 });
  }).timeout(60_000);
});

/** Whether a later box may have taken the place of this one, as a few of hundreds in 4,096 pairs of places do. */
function hasCompany(sealed: readonly { readonly box: Buffer }[], index: number): boolean {
  const placePair = (box: Buffer) => (box.readUInt32BE(0) % 8192) >>> 1;
  const own = sealed[index];
  return sealed.some(({ box }, i) => i > index && own !== undefined && placePair(box) === placePair(own.box));
}
