/** Messages on a terminal that is narrower than they are. */
import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { commands } from "../../src/cli/command-table.js";
import { displayWidth, wrapped } from "../../src/cli/kit/output.js";
import { needs } from "../../tools/rig/needs.js";
import { mainFile, node } from "../../tools/rig/process.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";
import { runHere } from "../support/command-here.js";
import { hasPython, runProgramOnTerminal, runWithoutTerminal } from "../support/pseudo-terminal.js";
import { must } from "./command-rows.js";

const terminal = { isTTY: true, columns: 40 };

/** Returns the lines that are too wide, but for those that are one word or one command, which stay whole. */
function wideLines(text: string, columns: number): string[] {
  const plain = stripVTControlCharacters(text).split(/[\r\n]/); // a progress bar returns to the line's start
  return plain.filter((line) => displayWidth(line) > columns && !/^(?:usage:)? *(?:\S+|strongroom .+)$/.test(line));
}

describe("output on a terminal of 40 or 80 columns", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    const description = "the password of the database in which the orders of all customers are";
    await mustPut(started, "app/database/password", { value: "hunter2 hunter2", description, type: "password" });
    await mustPut(started, "app/database/password", { value: "hunter2 hunter2", description, type: "password" });
    await mustPut(started, "application/settings/session-key", {
      value: "hunter2 hunter2",
      expiresAt: "2020-01-01T00:00:00Z",
    });
    await mustPut(started, "deleted/a-path-that-is-rather-long", "v");
    for (const call of [
      "rm deleted/a-path-that-is-rather-long",
      "use add app/database/password database.example.com --header x-api-key",
      "token create the-token-of-our-ci --path app/ --path application/settings/ --can list,get,put --quiet",
      "transit create application/signing --type ed25519",
      "describe app/database/password --expires 90d",
      "audit verify",
    ])
      await must({ STRONGROOM_HOME: started.home }, call.split(" "));
  });

  const lists = [
    "status",
    "doctor",
    "ls",
    "ls --long",
    "ls --expiring 30d",
    "find database --long",
    "history app/database/password",
    "describe app/database/password",
    "trash ls",
    "use ls",
    "use templates",
    "token ls",
    "token whoami",
    "key ls",
    "transit ls",
    "transit show application/signing",
    "audit show",
    "audit verify",
    "audit tail",
    "config",
    "check",
    "scan",
    "top --once",
    "service status",
    "run --prefix app --list",
    "get app/database/pasword",
    "",
    ...commands.filter(({ hidden }) => !hidden).map(({ name }) => `${name} --help`),
    "--help",
  ];
  for (const call of lists) {
    it(`the output of strongroom ${call} fits 40 and 80 columns`, async () => {
      for (const columns of [40, 80]) {
        const args = call.split(" ").filter((word) => word !== "");
        const { stdout, stderr } = await runHere(args, { STRONGROOM_HOME: server().home }, "", { columns });
        expect(stdout + stderr).to.not.equal("");
        expect(wideLines(stdout + stderr, columns)).to.deep.equal([]);
      }
    });
  }

  it("the help's summaries break at spaces, below their beginning", async () => {
    const { stdout } = await runHere(["help"], {}, "", { columns: 40 });
    expect(stdout).to.contain("  get                print the values of\n                     secrets\n");
    expect(stdout).to.match(
      /^Strongroom is a vault for the secrets of\nthis machine: a local server keeps them\nencrypted/,
    );
  });

  it("transit show keeps the lines of a public key", async () => {
    const { stdout } = await runHere(
      ["transit", "show", "application/signing"],
      { STRONGROOM_HOME: server().home },
      "",
      terminal,
    );
    expect(stdout).to.match(/^-----BEGIN PUBLIC KEY-----\n.+\n-----END PUBLIC KEY-----$/m);
  });
});

describe("messages on a terminal", () => {
  it("a message breaks at spaces, and continues two columns further right", () => {
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
    it(`a wrapped message keeps a command whole: one ${what}`, () => {
      expect(wrapped(text, terminal)).to.equal(lines.join("\n"));
    });
  }

  it("a wrapped message counts columns, of which some letters take two", () => {
    expect(wrapped(`${"漢".repeat(15)} ${"字".repeat(6)}`, terminal)).to.equal(
      `${"漢".repeat(15)}\n  ${"字".repeat(6)}`,
    );
  });

  it("a message stays whole in a pipe or file, and where the width is not known", () => {
    const text = "word ".repeat(50);
    for (const stream of [{}, { columns: 40 }, { isTTY: true }, { isTTY: true, columns: 0 }])
      expect(wrapped(text, stream)).to.equal(text);
  });

  it("the real command's messages break at 80 columns on a terminal, and nowhere in a pipe", async function () {
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
