/** Messages on a terminal that is narrower than they are. */
import { expect } from "chai";
import { runCommandLine } from "../../src/cli/command-line.js";
import { wrapped } from "../../src/cli/kit/output.js";
import { needs } from "../../tools/rig/needs.js";
import { mainFile, node } from "../../tools/rig/process.js";
import { stringIo } from "../../tools/rig/string-io.js";
import { hasPython, runProgramOnTerminal, runWithoutTerminal } from "../support/pseudo-terminal.js";

const terminal = { isTTY: true, columns: 40 };

describe("the list of commands on a terminal of 40 columns", () => {
  it("breaks summaries at spaces, below their beginning", async () => {
    const io = stringIo();
    Object.assign(io.stdout, { columns: 40 });
    await runCommandLine(["help"], io);
    expect(io.printed().stdout).to.contain("  get                print the values of\n                     secrets\n");
  });
});

describe("messages on a terminal", () => {
  it("break at spaces, and continue two columns further right", () => {
    const text = "strongroom: a path is needed, not a reference: write app/json in its place\nand more\n";
    expect(wrapped(text, terminal)).to.equal(
      "strongroom: a path is needed, not a\n  reference: write app/json in its place\nand more\n",
    );
  });

  for (const [what, text, lines] of [
    [
      "behind two spaces",
      "app/key is in the trash: bring it back with  strongroom undo app/key  first",
      ["app/key is in the trash: bring it back", "  with  strongroom undo app/key  first"],
    ],
    [
      "in a clause of its own",
      "no token of that name: strongroom token ls --json; or new",
      ["no token of that name:", "  strongroom token ls --json; or new"],
    ],
    [
      "that is longer than a line",
      "save it: strongroom key create --label recovery -o a-file-of-this-name",
      ["save it:", "  strongroom key create --label recovery -o a-file-of-this-name"],
    ],
    ["indented", `  strongroom put ${"a".repeat(40)} -`, [`  strongroom put ${"a".repeat(40)} -`]],
  ] as const) {
    it(`keep a command whole: one ${what}`, () => {
      expect(wrapped(text, terminal)).to.equal(lines.join("\n"));
    });
  }

  it("count columns, of which some letters take two", () => {
    expect(wrapped(`${"漢".repeat(15)} ${"字".repeat(6)}`, terminal)).to.equal(
      `${"漢".repeat(15)}\n  ${"字".repeat(6)}`,
    );
  });

  it("stay whole in a pipe or file, and where the width is not known", () => {
    const text = "word ".repeat(50);
    for (const stream of [{}, { columns: 40 }, { isTTY: true }, { isTTY: true, columns: 0 }])
      expect(wrapped(text, stream)).to.equal(text);
  });

  it("of the real command break at 80 columns on a terminal, and nowhere in a pipe", async function () {
    needs(this, hasPython(), "Python");
    const args = ["get", `strongroom://${"app/".repeat(8)}json#user`];
    const [shown, piped] = await Promise.all([
      runProgramOnTerminal([node, mainFile, ...args], [], {}, [24, 80]),
      runWithoutTerminal(args),
    ]);
    const [first = "", ...others] = shown.shown.trimEnd().split("\r\n");
    expect(first.length).to.be.within(40, 80);
    expect(others).to.not.deep.equal([]);
    expect(piped.stderr.trimEnd().split("\n")).to.have.lengthOf(1);
    expect([first, ...others.map((line) => line.trim())].join(" ").replaceAll(/ +/g, " ")).to.equal(
      piped.stderr.trimEnd().replaceAll(/ +/g, " "),
    );
  });
});
