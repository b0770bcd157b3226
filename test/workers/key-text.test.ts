/** Texts of keys: what is written is read again, and every mistake in typing is found, with its group. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import fc from "fast-check";
import { isKeyText, keyTextLength, readKeyText, writeKeyText } from "../../workers/crypto/key-text.js";

const letters = [..."0123456789ABCDEFGHJKMNPQRSTVWXYZ"];

function written(key: Uint8Array): string {
  const target = Buffer.alloc(keyTextLength);
  writeKeyText(key, target);
  return target.toString("latin1");
}

function read(text: string): { readonly wrong: readonly number[] | null; readonly key: Buffer } {
  const key = Buffer.alloc(32, 0xaa);
  return { wrong: readKeyText(Buffer.from(text), key), key };
}

describe("the text of a key", () => {
  const keys = fc.uint8Array({ minLength: 32, maxLength: 32 });

  it("a key text reads back in any case, with any dashes, with I and L for 1 and O for 0", () => {
    fc.assert(
      fc.property(keys, (key) => {
        const text = written(key);
        const spellings = [text, text.toLowerCase(), text.replaceAll("-", ""), text.replaceAll("-", "--"), `${text}-`];
        spellings.push(text.replaceAll("1", "l").replaceAll("0", "o"), text.replaceAll("1", "I"));
        for (const spelling of spellings) expect(read(spelling)).to.deep.equal({ wrong: [], key: Buffer.from(key) });
      }),
    );
  });

  it("the text of a known key never changes", () => {
    expect(written(Buffer.alloc(32))).to.equal(
      "SRK-00000-00001-00002-00003-00004-00005-00006-00007-00008-00009-0000A-0000B-0000C",
    );
    expect(written(Buffer.from(letters.join("")))).to.equal(
      "SRK-60RKA-4CSMD-6MV37-EE1S3-85142-6H25D-8S3M2-GJJB5-9N753-0MAJ1-ADA5F-CNTRT-B5D09",
    );
  });

  it("a key text with any one letter replaced is wrong in that letter's group, and only there", () => {
    const text = written(randomBytes(32));
    for (let at = 4; at < text.length; at++) {
      if (text[at] === "-") continue;
      for (const letter of letters.filter((one) => one !== text[at])) {
        const { wrong } = read(text.slice(0, at) + letter + text.slice(at + 1));
        expect(wrong).to.deep.equal([1 + Math.floor((at - 4) / 6)]);
      }
    }
  });

  it("a key text with any two letters of a group or any two groups exchanged is wrong", () => {
    fc.assert(
      fc.property(keys, fc.nat(12), fc.nat(12), fc.nat(4), fc.nat(4), (key, group, other, a, b) => {
        const groups = written(key).split("-").slice(1);
        const exchanged = [...groups];
        [exchanged[group], exchanged[other]] = [groups[other] ?? "", groups[group] ?? ""];
        if (group !== other) expect(read(`SRK-${exchanged.join("-")}`).wrong).not.to.deep.equal([]);
        const within = [...(groups[group] ?? "")];
        [within[a], within[b]] = [within[b] ?? "", within[a] ?? ""];
        if (within[a] === within[b]) return;
        const text = `SRK-${groups.with(group, within.join("")).join("-")}`;
        expect(read(text).wrong).to.deep.equal([group + 1]);
      }),
    );
  });

  it("a key text with a letter missing or added is wrong", () => {
    const text = written(randomBytes(32));
    for (let at = 4; at < text.length; at++) {
      expect(read(`${text.slice(0, at)}7${text.slice(at)}`).wrong).not.to.deep.equal([]);
      if (text[at] !== "-") expect(read(text.slice(0, at) + text.slice(at + 1)).wrong).not.to.deep.equal([]);
    }
  });

  for (const text of [
    "",
    "SRK",
    "SRK-",
    "srk-is-a-good-start-of-a-passphrase",
    "XRK-".padEnd(81, "0"),
    "SRK-".padEnd(90, "0"),
    `SRK-${"0".repeat(64)}u`,
    `S-RK-${"0".repeat(64)}`,
  ]) {
    it(`${JSON.stringify(text)} is no key text`, () => {
      expect([isKeyText(Buffer.from(text)), read(text).wrong]).to.deep.equal([false, null]);
    });
  }
});
