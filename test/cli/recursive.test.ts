/** mv, cp and rm of folders: all or nothing, what they keep, and what they refuse. */
import { expect } from "chai";
import { needs } from "../../tools/rig/needs.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustList, mustPut } from "../../tools/rig/test-client.js";
import { blobFile, damage } from "../support/damage.js";
import { makeClient } from "../support/library.js";
import { hasPython, runOnTerminal } from "../support/pseudo-terminal.js";
import { must, strongroom, testRows } from "./command-rows.js";

describe("mv, cp and rm of folders", () => {
  const server = shareLocalServer({ cacheBytes: 0 }, async (started) => {
    await mustInit(started);
    for (const path of ["app", "app/a", "app/b/c", "apple/a", "full/a", "full/sub/a", "full/sub/sub/a", "single"])
      await mustPut(started, path, "v");
  });
  const here = () => ({ STRONGROOM_HOME: server().home });
  const paths = async (folder: string) => (await mustList(server(), `?prefix=${folder}`)).map(({ path }) => path);

  let count = 0;
  /** A folder of two secrets with a history, for only one test. */
  async function newFolder(): Promise<string> {
    const folder = `own-${count++}`;
    for (const value of ["old", "new"])
      await mustPut(server(), `${folder}/a`, { value, type: "other", description: "d" });
    await mustPut(server(), `${folder}/b/c`, "v");
    await mustPut(server(), `${folder}-longer/a`, "v");
    return folder;
  }

  for (const args of [
    ["mv", "FROM/", "TO/"],
    ["mv", "-r", "FROM", "TO"],
    ["mv", "FROM/", "TO"],
  ]) {
    it(`${args.join(" ")} renames the folder; its secrets keep times, types and versions`, async () => {
      const folder = await newFolder();
      const { createdAt, updatedAt } = await mustGet(server(), `${folder}/a`);
      const given = args.map((arg) => arg.replace("FROM", folder).replace("TO", `to/${folder}`));
      expect(await must(here(), given)).to.equal(`${folder}/ moved to to/${folder}/ (2 secrets)\n`);
      expect(await paths(folder)).to.deep.equal([`${folder}-longer/a`]);
      expect(await paths(`to/${folder}/`)).to.deep.equal([`to/${folder}/a`, `to/${folder}/b/c`]);
      const metadata = { type: "other", description: "d" };
      const moved = { value: "new", version: 2, createdAt, updatedAt, metadata };
      expect(await mustGet(server(), `to/${folder}/a`)).to.deep.include(moved);
      expect(await must(here(), ["get", `to/${folder}/a`, "--version", "1"])).to.equal("old");
    });
  }

  it("mv into a folder that has secrets keeps those", async () => {
    const folder = await newFolder();
    await mustPut(server(), `kept-${folder}/z`, "v");
    await must(here(), ["mv", `${folder}/`, `kept-${folder}/`]);
    expect(await paths(`kept-${folder}/`)).to.deep.equal(["a", "b/c", "z"].map((name) => `kept-${folder}/${name}`));
  });

  it("cp -r copies the folder as new secrets, and reports it as JSON", async () => {
    const folder = await newFolder();
    const said = JSON.parse(await must(here(), ["cp", "-r", folder, `copy-${folder}`, "--json"]));
    expect(said).to.deep.equal({ ok: true, from: `${folder}/`, to: `copy-${folder}/`, secrets: 2, replaced: 0 });
    expect(await paths(`${folder}/`)).to.have.lengthOf(2);
    expect(await mustGet(server(), `copy-${folder}/a`)).to.deep.include({ value: "new", version: 1 });
  });

  it("mv and cp replace only with --replace, name what exists, and do nothing otherwise", async () => {
    const [folder, other] = [await newFolder(), await newFolder()];
    await mustPut(server(), `${other}/a`, "other");
    for (const command of ["cp", "mv"]) {
      const { code, stderr } = await strongroom(here(), [command, `${folder}/`, `${other}/`]);
      expect(code).to.equal(7);
      expect(stderr).to.contain(`${other}/a, ${other}/b/c already exist: --replace replaces them`);
    }
    expect((await mustGet(server(), `${other}/a`))["value"]).to.equal("other");
    await must(here(), ["cp", `${folder}/`, `${other}/`, "--replace"]);
    expect((await mustGet(server(), `${other}/a`))["value"]).to.equal("new");
    expect(await must(here(), ["get", `${other}/a`, "--version", "3"]), "a copy keeps what it replaces").to.equal(
      "other",
    );
    const said = JSON.parse(await must(here(), ["mv", `${folder}/`, `${other}/`, "--replace", "--json"]));
    expect(said).to.include({ secrets: 2, replaced: 2 });
    expect(await paths(`${folder}/`)).to.deep.equal([]);
  });

  it("mv and cp of a folder with a damaged secret do nothing; rm -r deletes it", async () => {
    const folder = await newFolder();
    damage(blobFile(server(), `${folder}/b/c`), Buffer.from("no blob"));
    for (const command of ["mv", "cp"]) {
      const { code, stderr } = await strongroom(here(), [command, `${folder}/`, `whole-${folder}/`]);
      expect(code, stderr).to.equal(12);
      expect(stderr).to.contain(`${folder}/b/c`);
    }
    expect(await paths(`whole-${folder}/`)).to.deep.equal([]);
    expect(await must(here(), ["rm", "-rf", "--permanent", `${folder}/`])).to.equal(
      `deleted: ${folder}/ (2 secrets)\n`,
    );
    expect(await paths(`${folder}/`)).to.deep.equal([]);
  });

  it("rm -r deletes folders and secrets, and leaves the secret and the folder of similar names", async () => {
    const folder = await newFolder();
    await mustPut(server(), folder, "v");
    const { trashed } = JSON.parse(await must(here(), ["rm", "-ry", folder, `${folder}-longer/a`, "--json"]));
    expect(trashed).to.deep.equal([`${folder}/a`, `${folder}/b/c`, `${folder}-longer/a`]);
    expect(await paths(folder)).to.deep.equal([folder]);
  });

  it("rm -r asks with the number of secrets", async function () {
    needs(this, hasPython(), "Python");
    const folder = await newFolder();
    const question = `Delete ${folder}/ (2 secrets) with their history? [y/N] `;
    expect((await runOnTerminal(["rm", "--permanent", "-r", folder], { question, keys: "\r" }, here())).code).to.equal(
      13,
    );
    expect((await runOnTerminal(["rm", "--permanent", "-r", folder], { question, keys: "y\r" }, here())).code).to.equal(
      0,
    );
    expect(await paths(`${folder}/`)).to.deep.equal([]);
  });

  it("more than 1000 secrets are changed only with --in-steps", async () => {
    const puts = Array.from({ length: 1001 }, (_, i) => ({ put: `many/${String(i).padStart(4, "0")}`, value: "v" }));
    const client = makeClient(server());
    await client.batch(puts.slice(0, 1000));
    await client.batch(puts.slice(1000));
    for (const args of [
      ["mv", "many/", "more/"],
      ["cp", "many/", "more/"],
      ["rm", "-rf", "many/"],
    ]) {
      const { code, stderr } = await strongroom(here(), args);
      expect(code).to.equal(2);
      expect(stderr).to.contain("these are 1001 secrets, and at most 1000").and.to.contain("--in-steps");
    }
    expect(await must(here(), ["mv", "many/", "more/", "--in-steps"])).to.contain("(1001 secrets)");
    expect(await must(here(), ["rm", "-rf", "more/", "--in-steps"])).to.contain(
      "moved to the trash: more/ (1001 secrets)",
    );
    expect([...(await paths("many/")), ...(await paths("more/"))]).to.deep.equal([]);
    await client.snapshot(); // waits until the batches are in the tree, which may take longer than a stop waits
  });

  testRows(here, {
    "a dry run of a folder": {
      args: ["mv", "app/", "web/", "--dry-run"],
      exit: 0,
      out: "app/ would be moved to web/: nothing was done (2 secrets)\n",
    },
    "a dry run of deleting": {
      args: ["rm", "-r", "app/", "--dry-run"],
      exit: 0,
      out: "would be moved to the trash: app/ (2 secrets): nothing was done\n",
    },
    "the same folder": { args: ["mv", "app/", "app"], exit: 2, err: /same folder: nothing was done/ },
    "into itself": { args: ["mv", "-r", "app", "app/old"], exit: 2, err: /cannot be put into itself/ },
    "a copy into itself": { args: ["cp", "app/", "app/old/"], exit: 2, err: /cannot be put into itself/ },
    "over its own secrets": {
      args: ["mv", "full/sub/", "full/", "-f"],
      exit: 2,
      err: /source and target overlap at full\/sub\/a/,
    },
    "an empty folder": { args: ["mv", "none/", "web/"], exit: 4, err: /nothing under none\// },
    "a folder without a slash": {
      args: ["mv", "apple", "web"],
      exit: 4,
      err: /apple is a folder: strongroom mv apple\/ web/,
    },
    "a copy of a folder without a slash": {
      args: ["cp", "apple", "w"],
      exit: 4,
      err: /apple is a folder: strongroom cp apple\/ w/,
    },
    "to an invalid folder": { args: ["mv", "app/", "a//b/"], exit: 2, err: /a\/\/b: / },
    "-r of a secret": { args: ["mv", "-r", "single", "app/a"], exit: 7, err: /app\/a already exists/ },
    "rm of a folder without -r": { args: ["rm", "-f", "app/"], exit: 2, err: /app\/: this is a folder.*rm -r app\// },
    "rm of a folder by its name": {
      args: ["rm", "-f", "apple"],
      exit: 4,
      err: /apple is a folder: strongroom rm -r apple\//,
    },
    "rm of an empty folder": { args: ["rm", "-rf", "none/"], exit: 4, err: /nothing was done: nothing under none\// },
    "rm of everything": { args: ["rm", "-rf", "/"], exit: 2, err: /would delete every secret/ },
    "rm of everything by an empty name": { args: ["rm", "-rf", ""], exit: 2, err: /would delete every secret/ },
    "rm of one that is missing among others": {
      args: ["rm", "-rf", "app/", "none"],
      exit: 4,
      err: /nothing was done: no secret at none/,
    },
  });

  it("a refused command of folders does nothing", async () => {
    expect(await paths("app")).to.deep.equal(["app", "app/a", "app/b/c", "apple/a"]);
  });
});
