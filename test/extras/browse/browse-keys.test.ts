/** The keys of `strongroom browse` as terminals send them, however the reads cut them. */
import { expect } from "chai";
import { KeyDecoder } from "../../../src/extras/browse/keys.js";
import { Revealed } from "../../../src/extras/browse/revealed.js";

const rows: readonly (readonly [string, readonly string[]])[] = [
  ["ab", ["a", "b"]],
  ["é€😀", ["é", "€", "😀"]],
  ["\u001b[A\u001bOB\u001b[5~\u001b[1;5C", ["up", "down", "page up", "other"]],
  ["\u001b[200~dy\r\nq\u001b[201~q", ["paste dy q", "q"]],
  ["x\u001b[200~\u001b[A\u001b[201~", ["x", "paste [A"]],
  ["\r\u007f\u0003\u001a", ["enter", "backspace", "ctrl-c", "ctrl-z"]],
];

describe("keys of a terminal", () => {
  for (const [sent, wanted] of rows) {
    it(`keys are decoded from ${JSON.stringify(sent)}, whole and byte by byte`, () => {
      const bytes = Buffer.from(sent);
      const shown = (decoder: KeyDecoder, parts: readonly Buffer[]) =>
        parts
          .flatMap((part) => decoder.take(part))
          .map(({ name, text }) => (name === "text" ? text : `${name} ${text}`.trim()));
      expect(shown(new KeyDecoder(), [bytes])).to.deep.equal(wanted);
      expect(
        shown(
          new KeyDecoder(),
          Array.from(bytes, (byte) => Buffer.of(byte)),
        ),
      ).to.deep.equal(wanted);
    });
  }

  it("an escape is a key of its own once nothing follows it", () => {
    const decoder = new KeyDecoder();
    expect(decoder.take(Buffer.from("\u001b"))).to.deep.equal([]);
    expect(decoder.isWaiting).to.equal(true);
    expect(decoder.flush()).to.deep.equal([{ name: "escape", text: "" }]);
    expect(decoder.take(Buffer.from("a"))).to.deep.equal([{ name: "text", text: "a" }]);
  });
});

describe("revealed values", () => {
  const shown = (value: string, columns: number, lines: number) => {
    const revealed = new Revealed(Buffer.from(value), columns, lines);
    return { lines: revealed.lines.map((line) => Buffer.from(line).toString()), isCut: revealed.isCut };
  };
  const cases: readonly (readonly [string, number, number, readonly string[], boolean])[] = [
    ["abcdef", 4, 3, ["abcd", "ef"], false],
    ["abcdefghi", 4, 2, ["abcd", "efgh"], true],
    ["a\r\nb\n\nc", 4, 4, ["a", "b", "", "c"], false],
    ["漢字漢", 4, 2, ["漢字", "漢"], false],
    ["a\u001b[2J\u0007", 20, 2, ["a\\u{1b}[2J\\u{7}"], false],
    ["\u202eabc", 12, 2, ["\\u{202e}abc"], false],
    ["", 4, 2, [], false],
  ];
  for (const [value, columns, lines, wanted, isCut] of cases) {
    it(`${JSON.stringify(value)} has the lines ${JSON.stringify(wanted)} in ${columns} columns`, () => {
      expect(shown(value, columns, lines)).to.deep.equal({ lines: wanted, isCut });
    });
  }

  it("wiping a revealed value clears its drawn lines", () => {
    const revealed = new Revealed(Buffer.from("s3cr3t"), 10, 2);
    revealed.wipe();
    expect(revealed.lines.every((line) => line.every((byte) => byte === 0))).to.equal(true);
  });
});
