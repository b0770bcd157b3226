/** What documents say of the vault's states, of the files on disk and of the client, against the real ones. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect } from "chai";
import { Command } from "commander";
import { define } from "../../src/cli/commands/import.js";
import { longForms } from "../long/long-forms.js";
import { clientMethods } from "../support/library.js";
import { passphrase, shareTestServer, startTestServer, type TestServer } from "../support/server.js";
import {
  type Answer,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustUnlock,
  type Send,
  send,
} from "../support/test-client.js";
import { blocksIn, checkedRows, headingsIn } from "./document-files.js";

function read(file: string): string {
  return readFileSync(file, "utf8");
}

describe("docs/http-api.md, States", () => {
  const initialized = shareTestServer({}, mustInit);

  async function serverThatIs(state: string): Promise<TestServer> {
    if (state === "not initialized") return startTestServer();
    await (state === "locked" ? mustLock(initialized()) : mustUnlock(initialized()));
    return initialized();
  }

  for (const [from = "", request = "", response = "", next = ""] of checkedRows(read("docs/http-api.md"), "states")) {
    it(`${from}: ${request} gives ${response} and leads to ${next}`, async () => {
      const server = await serverThatIs(from);
      for (const one of requestsFor(request)) expect(outcome(await send(server, one))).to.equal(response);
      expect(await stateOf(server)).to.equal(next);
    });
  }
});

function outcome({ status, json }: Answer): string {
  return status === 200 ? "200" : `${status} \`${String(json["code"])}\``;
}

function requestsFor(words: string): Send[] {
  const path = "/v1/secrets/a";
  const [, endpoint = ""] = /^`POST (\S+)`/.exec(words) ?? [];
  if (endpoint === "") {
    return [
      { method: "PUT", path, body: { value: "v" } },
      { path },
      { path: "/v1/secrets" },
      { method: "DELETE", path },
    ];
  }
  const typed = words.includes("wrong") ? "wrong" : passphrase;
  return [{ method: "POST", path: endpoint, body: { passphrase: typed, force: words.includes("`force`") } }];
}

async function stateOf(server: TestServer): Promise<string> {
  const { initialized, locked } = await mustStatus(server);
  if (initialized === false) return "not initialized";
  return locked === true ? "locked" : "unlocked";
}

describe("docs/on-disk.md", () => {
  it("draws the files of a home after a forced init and a put", async () => {
    const server = await startTestServer();
    await mustInit(server);
    await mustInit(server, { passphrase, force: true });
    await mustPut(server, "app/db/password", "s3cr3t");
    const [tree] = blocksIn(read("docs/on-disk.md"));
    expect(pathsDrawn(tree?.code ?? "").sort()).to.deep.equal(
      readdirSync(server.home, { recursive: true, encoding: "utf8" }).sort(),
    );
  });
});

/** Each line has its name four columns deeper than the directory that it is in. */
function pathsDrawn(tree: string): string[] {
  const above: string[] = [];
  return [...tree.matchAll(/^([│ ]*)[├└]── ([^\s/]+)/gm)].map(([, indent = "", name = ""]) => {
    above.splice(indent.length / 4, above.length, name);
    return above.join("/");
  });
}

describe("docs/node-client.md", () => {
  const text = read("docs/node-client.md");

  it("names the methods that the client has", () => {
    const named = [...text.matchAll(/`(\w+)\([\w, ]*\)`/g)].map(([, name]) => name).filter((name) => name !== "reveal");
    expect([...new Set(named)].sort()).to.deep.equal(clientMethods().sort());
  });

  it("names the client's own codes", () => {
    for (const [, code] of read("src/client/client-error.ts").matchAll(/\| "([A-Z_]+)"/g))
      expect(text).to.contain(`\n- \`${code}\``);
  });
});

describe("docs/import.md", () => {
  it("has a section for each format", () => {
    const command = new Command();
    define(command);
    const format = command.options.find(({ long }) => long === "--format");
    expect(headingsIn(read("docs/import.md")).slice(1).sort()).to.deep.equal(format?.argChoices?.toSorted());
  });
});

describe("docs/security.md", () => {
  it("shows rows that the demonstration prints", () => {
    const sources = readdirSync("demo").map((name) => read(`demo/${name}`));
    const [sample] = blocksIn(read("docs/security.md"));
    const rows = [...(sample?.code ?? "").matchAll(/^ {2}(\S.*?) {2,}/gm)].map(([, row = ""]) => row);
    expect(rows).to.have.lengthOf.above(10);
    expect(rows.filter((row) => !sources.some((source) => source.includes(row)))).to.deep.equal([]);
  });
});

describe("docs/decisions/torture.md", () => {
  const files = checkedRows(read("docs/decisions/torture.md"), "torture").map(([, , file = ""]) => file.slice(1, -1));

  it("names tests that exist, and all of the long form", () => {
    for (const file of files) expect(existsSync(`test/${file}.test.ts`), file).to.equal(true);
    expect(files.map((file) => `${file}.test`)).to.include.members([...(longForms["torture"]?.files ?? [])]);
  });
});

describe("docs/benchmarks.md, Up to a million secrets", () => {
  for (const [work = "", small = "", middle = "", large = "", ...further] of checkedRows(
    read("docs/benchmarks.md"),
    "scale",
  )) {
    it(`${work}: costs of further secrets follow from the figures, and are within 1.5 × of each other`, () => {
      const [at10k = 0, at100k = 0, at1m = 0] = [small, middle, large].map((cell) => Number.parseFloat(cell));
      const [first = 0, second = 0] = further.map((cell) => Number.parseFloat(cell));
      expect(first).to.be.closeTo((1e6 * (at100k - at10k)) / 90_000, first / 20);
      expect(second).to.be.closeTo((1e6 * (at1m - at100k)) / 900_000, second / 20);
      expect(Math.max(first / second, second / first)).to.be.at.most(1.5);
    });
  }
});
