/** Folders: every command that takes one means the same by it, with and without the final slash. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import pMap from "p-map";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustList, mustPut } from "../../tools/rig/test-client.js";
import { must, strongroom, testRows } from "./command-rows.js";

describe("folders", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    for (const path of ["app", "app/x", "app/y/z", "app-2/x", "apple/x", "é/x"]) await mustPut(started, path, "v");
  });
  const here = () => ({ STRONGROOM_HOME: server().home });

  /** The paths that a command finds in a folder. */
  const commands: Readonly<Record<string, (folder: string) => Promise<string[]>>> = {
    ls: async (folder) => (await must(here(), ["ls", folder])).trimEnd().split("\n"),
    "ls --json": async (folder) => pathsIn(JSON.parse(await must(here(), ["ls", folder, "--json"])).entries),
    "run --prefix": async (folder) => {
      const names = await must(here(), ["run", "--prefix", folder, "--print-names"]);
      return [...names.matchAll(/\t(.*)\n/g)].map(([, path = ""]) => path);
    },
    "export --prefix": async (folder) => {
      const text = await must(here(), ["export", "--format", "json", "--plaintext", "--prefix", folder]);
      return pathsIn(JSON.parse(text).secrets);
    },
  };
  const pathsIn = (found: readonly { readonly path: string }[]) => found.map(({ path }) => path);

  const spellings: readonly (readonly [string, readonly string[]])[] = [
    ["app", ["app/x", "app/y/z"]],
    ["app/", ["app/x", "app/y/z"]],
    ["app/y", ["app/y/z"]],
    ["e\u0301", ["é/x"]],
  ];
  for (const [name, command] of Object.entries(commands)) {
    it(`${name} finds what is in the folder, and neither the secret of its name nor longer names`, async () => {
      const found = await pMap(spellings, ([folder]) => command(folder), { concurrency: 4 });
      expect(found).to.deep.equal(spellings.map(([, paths]) => paths));
    });
  }

  it("import --prefix stores into the folder", async () => {
    const file = join(temporaryDirectory(), "values.json");
    writeFileSync(file, '{"a":"1"}');
    for (const folder of ["into", "into/"])
      await must(here(), ["import", "--format", "json", "--prefix", folder, file]);
    expect(pathsIn(await mustList(server(), "?prefix=into"))).to.deep.equal(["into/a"]);
  });

  it("the whole vault is /", async () => {
    expect(await must(here(), ["ls", "/"])).to.equal(await must(here(), ["ls"]));
  });

  const isSecret = /nothing under app\/x\/: app\/x is a secret, not a folder\n/;
  testRows(here, {
    "a part of a name": { args: ["ls", "ap"], exit: 4, err: /nothing under ap\/\. Did you mean app\/\?\n/ },
    "a secret that is no folder": { args: ["ls", "app/x"], exit: 0, out: "app/x\n" },
    "a secret as a folder": { args: ["ls", "app/x/"], exit: 4, err: isSecret },
    "the variables of a secret": { args: ["run", "--prefix", "app/x", "--", "true"], exit: 4, err: isSecret },
    "an export of a secret": {
      args: ["export", "--prefix", "app/x", "--format", "json", "--plaintext"],
      exit: 4,
      err: isSecret,
    },
    "variables of a part of a name": {
      args: ["run", "--prefix", "appl", "--", "true"],
      exit: 4,
      err: /nothing under appl\//,
    },
    "an export of a part of a name": {
      args: ["export", "--prefix", "appl", "--format", "json", "--plaintext"],
      exit: 4,
      err: /nothing under appl\/\. Did you mean app/,
    },
  });

  it("completes the names of folders for every flag and argument that takes one", async () => {
    const { stdout } = await strongroom(here(), ["completion", "bash"]);
    for (const flag of ["run:--prefix", "export:--prefix", "import:--prefix"]) {
      expect(stdout).to.match(new RegExp(`^ .*\\b${flag}\\b.*\\) kind=paths ;;$`, "m"));
    }
    expect(stdout).to.match(/^ +ls\) kind=paths;/m);
  });
});
