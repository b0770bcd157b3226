/** Lists of secrets on a terminal: the tree, and a table that fits. */
import { expect } from "chai";
import { asPaths, asTree, listTable, pathTree } from "../../src/cli/kit/output/listing.js";
import { padded, shortened } from "../../src/cli/kit/output.js";
import { needs } from "../../tools/rig/needs.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { stringIo } from "../../tools/rig/string-io.js";
import { mustInit, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { hasPython, runOnTerminal } from "../support/pseudo-terminal.js";
import { must } from "./command-rows.js";

function drawn(...paths: readonly string[]): string[] {
  return pathTree(paths.map((path) => ({ path }))).map(({ branch, name }) => `${branch}${name}`);
}

const io = stringIo();

describe("a tree of paths", () => {
  const rows: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ["is empty without paths", [], []],
    ["shows a path that is alone on one line", ["app/db/password"], ["app/db/password"]],
    [
      "branches where paths part",
      ["app/db/name", "app/db/password", "app/key", "web/key"],
      ["app/", "├── db/", "│   ├── name", "│   └── password", "└── key", "web/key"],
    ],
    ["joins folders that hold only a folder", ["a/b/c/1", "a/b/c/2"], ["a/b/c/", "├── 1", "└── 2"]],
    ["shows a secret that is a folder too as both", ["x/a", "x/a/notes"], ["x/", "├── a", "└── a/notes"]],
    ["keeps what other paths come between", ["a", "a-b", "a/c", "a/d"], ["a", "a-b", "a/", "├── c", "└── d"]],
  ];
  for (const [rule, paths, lines] of rows) it(rule, () => expect(drawn(...paths)).to.deep.equal(lines));
});

describe("text in columns", () => {
  it("a column counts what a terminal shows", () => {
    expect(padded("日本", 6)).to.equal("日本  ");
    expect(padded("e\u0301", 3)).to.equal("e\u0301  ");
    expect(padded("too long", 3)).to.equal("too long");
  });

  it("a text is cut between characters, with an ellipsis", () => {
    expect(shortened("a description", 20)).to.equal("a description");
    expect(shortened("a description", 6)).to.equal("a des…");
    expect(shortened("日本語日本語", 6)).to.equal("日本…");
    expect(shortened("text", 0)).to.equal("");
  });

  const entry = (path: string, description?: string) => {
    const times = { createdAt: "2026-01-02T03:04:05.678Z", updatedAt: "2026-01-02T03:04:05.678Z" };
    return {
      path,
      metadata: { type: "password", ...(description && { description }) },
      version: 1,
      etag: "t",
      ...times,
    } as const;
  };

  it("a table shortens descriptions to fit, and never paths", () => {
    const entries = [entry("app/鍵", "the description of a key"), entry("app/long-name")];
    expect(listTable(io, asPaths(entries), 60).split("\n")).to.deep.equal([
      "app/鍵         password     2026-01-02 03:04Z  the descript…",
      "app/long-name  password     2026-01-02 03:04Z",
      "",
    ]);
    expect(listTable(io, asPaths(entries), 20).split("\n")[0]).to.equal(
      "app/鍵         password     2026-01-02 03:04Z",
    );
  });

  it("a table may have any number of rows", () => {
    expect(listTable(io, asPaths(Array(200_000).fill(entry("a"))))).to.have.lengthOf(
      200_000 * listTable(io, asPaths([entry("a")])).length,
    );
  });

  for (const [zone, shown] of [
    ["Asia/Kolkata", "2026-01-02 08:34+05:30"],
    ["America/St_Johns", "2026-01-01 23:34-03:30"],
  ] as const)
    it(`a table shows times in the machine's zone, ${zone}`, () => {
      process.env["TZ"] = zone;
      try {
        expect(listTable(io, asPaths([entry("a")]))).to.equal(`a  password     ${shown}\n`);
      } finally {
        process.env["TZ"] = "UTC";
      }
    });

  it("a tree has its columns in a table", () => {
    expect(listTable(io, asTree([entry("a/b"), entry("a/c", "d")])).split("\n")).to.deep.equal([
      "a/",
      "├── b  password     2026-01-02 03:04Z",
      "└── c  password     2026-01-02 03:04Z  d",
      "",
    ]);
  });
});

describe("strongroom ls and find", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    for (const path of ["app/db/name", "app/db/password", "app/key"]) await mustPut(started, path, "v");
  });
  const here = () => ({ STRONGROOM_HOME: server().home, NO_COLOR: "1" });
  const shown = async (...args: readonly string[]) => {
    return (await runOnTerminal(args, { question: "never asked" }, here())).shown.replaceAll("\r\n", "\n");
  };
  before(function () {
    needs(this, hasPython(), "Python");
  });

  it("ls draws a tree on a terminal, and prints plain paths elsewhere", async () => {
    expect(await shown("ls")).to.equal("app/\n├── db/\n│   ├── name\n│   └── password\n└── key\n");
    expect(await shown("ls", "app/db/")).to.equal("app/db/\n├── name\n└── password\n");
    expect(await must(here(), ["ls"])).to.equal("app/db/name\napp/db/password\napp/key\n");
  });

  it("ls --expiring says on a terminal that nothing expires, and prints nothing elsewhere", async () => {
    expect(await shown("ls", "--expiring", "5d")).to.equal("nothing has expired or expires within this time\n");
    expect(await must(here(), ["ls", "--expiring", "5d"])).to.equal("");
  });

  it("ls --json controls no terminal, and is the same JSON elsewhere", async () => {
    const description = "\u009b31m red \u202e";
    await mustPut(server(), "evil/a", { value: "v", description });
    const plain = await must(here(), ["ls", "--json", "evil/"]);
    const onTerminal = await shown("ls", "--json", "evil/");
    expect(onTerminal).to.contain(String.raw`\u009b31m red \u202e`);
    expect(JSON.parse(onTerminal)).to.deep.equal(JSON.parse(plain));
    mustSucceed(await send(server(), { method: "DELETE", path: "/v1/secrets/evil/a" }));
  });

  it("export --format json controls no terminal, and is the same JSON elsewhere", async () => {
    await mustPut(server(), "evil/a", { value: "\u009b31m red" });
    const args = ["export", "--plaintext", "--format", "json", "--prefix", "evil"];
    const plain = await must(here(), args);
    const onTerminal = await shown(...args);
    expect(onTerminal).to.contain(String.raw`\u009b31m red`);
    expect(JSON.parse(onTerminal)).to.deep.equal(JSON.parse(plain));
    mustSucceed(await send(server(), { method: "DELETE", path: "/v1/secrets/evil/a" }));
  });

  it("ls --long adds a column for each property, on a terminal and elsewhere", async () => {
    expect(await shown("ls", "--long")).to.match(
      /^app\/\n├── db\/\n│ {3}├── name {6}- {12}\d{4}-\d\d-\d\d \d\d:\d\dZ\n/,
    );
    expect(await must(here(), ["ls", "--long"])).to.match(/^app\/db\/name {6}- {12}\d{4}-\d\d-\d\d \d\d:\d\dZ\n/);
  });

  it("find prints whole paths on a terminal", async () => {
    expect(await shown("find", "db")).to.equal("app/db/name\napp/db/password\n");
  });
});
