/** The key worker's estimate of strength, on bytes, beside what zxcvbn says of the same texts. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { wordSlots } from "../../src/vault/word-list.js";
import { strengthScore } from "../../workers/check/strength.js";
import { WordTable } from "../../workers/check/words.js";

const weak = [
  ["", "a", "123456", "password", "Passw0rd1", "P@ssw0rd!", "drowssap", "qwertyuiop", "zxcvbn", "1q2w3e4r", "letmein!"],
  ["aaaaaaaaaaaa", "abcabcabcabc", "abcdefgh", "19870412", "12.04.1987", "summer2024", "Summer2024!", "admin123"],
  ["changeme", "dragon1988", "monkeymonkey", "s3cr3t", "unicornrainbow", "jX7#kq9!", "4f9a1c77", "deadbeefdeadbeef"],
].flat();
const strong = [
  "correct horse battery staple",
  "tr0ub4dor&3",
  "ThisIsALongPassphraseWithWords",
  "mB8$kfR2pQ",
  "glpat-9f2KdLq1vXw8RtYz",
];

describe("the estimate of strength", () => {
  let words: WordTable;
  before(async () => {
    words = new WordTable(await wordSlots());
  });
  const score = (text: string) => strengthScore(Buffer.from(text), words);

  for (const text of weak)
    it(`the passphrase ${JSON.stringify(text)} is weak`, () => expect(score(text)).to.be.below(3));
  for (const text of strong)
    it(`the passphrase ${JSON.stringify(text)} is strong`, () => expect(score(text)).to.be.at.least(3));

  it("the estimate agrees with zxcvbn about which passphrases are weak, and in most scores", async () => {
    const [{ ZxcvbnFactory }, common, english] = await Promise.all([
      import("@zxcvbn-ts/core"),
      import("@zxcvbn-ts/language-common"),
      import("@zxcvbn-ts/language-en"),
    ]);
    const zxcvbn = new ZxcvbnFactory({
      dictionary: { ...common.dictionary, ...english.dictionary },
      graphs: common.adjacencyGraphs,
      translations: english.translations,
    });
    const rows = [...weak, ...strong].map((text) => [text, score(text), zxcvbn.check(text).score] as const);
    expect(rows.filter(([, ours, theirs]) => ours < 3 !== theirs < 3)).to.deep.equal([]);
    const near = rows.filter(([, ours, theirs]) => Math.abs(ours - theirs) <= 1);
    expect(near).to.have.lengthOf(rows.length);
  });

  it("random values of 72 bits are strong, and any length is judged", () => {
    for (let i = 0; i < 200; i++) expect(score(randomBytes(9).toString("base64"))).to.be.at.least(2);
    for (let i = 0; i < 200; i++) expect(score(randomBytes(12).toString("base64"))).to.be.at.least(3);
    expect(score("x".repeat(1_000_000))).to.be.below(3);
    expect(strengthScore(randomBytes(1_000_000), words)).to.equal(4);
  });
});
