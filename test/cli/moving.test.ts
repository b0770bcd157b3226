/** mv, cp and rm of single secrets: what they keep, refuse, and do when the disk fails. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import { type Json, mustGet, mustInit, mustList, mustListPaths, mustPut } from "../../tools/rig/test-client.js";
import { failingFiles } from "../support/failing-files.js";
import { must, strongroom, testRows } from "./command-rows.js";

describe("mv, cp and rm", () => {
  const server = shareLocalServer({ cacheBytes: 0 }, async (started) => {
    await mustInit(started);
    for (const path of ["tls/key", "app/db/name", "many/old", "many/older", "many/kept"])
      await mustPut(started, path, "v");
  });
  const here = () => ({ STRONGROOM_HOME: server().home });

  describe("mv and cp", () => {
    const from = "copy/from";
    beforeEach(() => mustPut(server(), from, { value: "v\n", type: "other", description: "d" }));
    const metadata = { type: "other", description: "d" };

    it("cp keeps value, type and description, and the original", async () => {
      expect(await must(here(), ["cp", from, "copy/to"])).to.equal("copy/from copied to copy/to\n");
      for (const path of [from, "copy/to"])
        expect(await mustGet(server(), path)).to.deep.include({ value: "v\n", metadata });
    });

    it("mv keeps value, type and description, and removes the original", async () => {
      expect(await must(here(), ["mv", from, "moved/", "--json"])).to.equal(
        '{"ok":true,"from":"copy/from","to":"moved/from","replaced":false}\n',
      );
      expect(await mustGet(server(), "moved/from")).to.deep.include({ value: "v\n", metadata });
      expect(await mustListPaths(server(), "copy/")).not.to.include(from);
    });

    it("mv and cp replace only with --replace", async () => {
      await mustPut(server(), "copy/there", "old");
      for (const command of ["cp", "mv"]) {
        const { code, stderr } = await strongroom(here(), [command, from, "copy/there"]);
        expect(code).to.equal(7);
        expect(stderr).to.contain("--replace");
        expect((await mustGet(server(), "copy/there"))["value"]).to.equal("old");
      }
      await must(here(), ["mv", from, "copy/there", "--replace"]);
      expect((await mustGet(server(), "copy/there"))["value"]).to.equal("v\n");
    });

    testRows(here, {
      "onto itself": { args: ["mv", "tls/key", "tls/key"], exit: 2, err: /same/ },
      "onto itself by its folder": { args: ["mv", "tls/key", "tls/", "--force"], exit: 2, err: /same/ },
      "from a missing secret": {
        args: ["mv", "tls/kye", "copy/x"],
        exit: 4,
        err: /no secret at tls\/kye\. Did you mean tls\/key\?/,
      },
      "from a folder": { args: ["cp", "app/db", "copy/x"], exit: 4, err: /app\/db is a folder/ },
      "to an invalid path": { args: ["cp", "tls/key", "a//b"], exit: 2 },
      "a dry run of cp": { args: ["cp", "tls/key", "copy/x", "--dry-run"], exit: 0, out: /would be copied/ },
      "a dry run of mv": { args: ["mv", "tls/key", "copy/x", "--dry-run"], exit: 0, out: /would be moved/ },
      "a dry run that would overwrite": { args: ["mv", "tls/key", "app/db/name", "--dry-run"], exit: 7 },
    });

    it("mv, cp and rm do nothing when the disk refuses", async () => {
      const faults = failingFiles();
      const full = await startLocalServer({ files: faults.files });
      await mustInit(full);
      for (const path of ["a", "b"]) await mustPut(full, path, "v");
      faults.fail("rename", "ENOSPC");
      for (const args of [
        ["mv", "a", "c"],
        ["cp", "a", "c"],
        ["rm", "-f", "a", "b"],
      ]) {
        const { code, stderr } = await strongroom({ STRONGROOM_HOME: full.home }, args);
        expect(code, stderr).to.equal(1);
      }
      faults.repair();
      expect((await mustList(full)).map(({ path }) => path)).to.deep.equal(["a", "b"]);
    });
  });

  describe("rm", () => {
    testRows(here, {
      "of an empty path": { args: ["rm", "-f", "tls/key", ""], exit: 2, err: /empty/ },
      "of a path with an empty segment": { args: ["rm", "-f", "a//b"], exit: 2, err: /a\/\/b: / },
      "of a folder": { args: ["rm", "-f", "many/"], exit: 2, err: /many\/: / },
      "without a terminal": { args: ["rm", "--permanent", "many/kept"], exit: 2, err: /no terminal.*--yes/ },
      "with --non-interactive": {
        args: ["rm", "--permanent", "many/kept", "--non-interactive"],
        exit: 2,
        err: /--yes/,
      },
      "of a missing secret": {
        args: ["rm", "-f", "many/kept", "many/none"],
        exit: 4,
        err: /nothing was done: no secret at many\/none/,
      },
      "a dry run": { args: ["rm", "many/kept", "--dry-run"], exit: 0, out: /would be moved to the trash: many\/kept/ },
      "a permanent dry run": {
        args: ["rm", "--permanent", "many/kept", "--dry-run"],
        exit: 0,
        out: /would be deleted: many\/kept/,
      },
    });

    it("a damaged secret gives exit 12, hides no other and can be deleted", async () => {
      for (const name of ["a", "b"]) await mustPut(server(), `damaged/${name}`, "v");
      writeFileSync(join(server().vaultPath, "gen-1/secrets/damaged/a.sealed"), "no blob");
      const got = await strongroom(here(), ["get", "damaged/a"]);
      expect(got).to.include({ code: 12, stdout: "" });
      expect(got.stderr).to.contain("strongroom doctor");
      const listed = await strongroom(here(), ["ls", "damaged/"]);
      expect(listed).to.include({ code: 12, stdout: "damaged/b\n" });
      expect(listed.stderr).to.contain("damaged/a");
      expect(await must(here(), ["rm", "--permanent", "--yes", "damaged/a"])).to.equal("deleted: damaged/a\n");
      expect(await must(here(), ["ls", "damaged/"])).to.equal("damaged/b\n");
    });

    it("rm moves exactly the given secrets to the trash, and undo brings each back", async () => {
      expect(await must(here(), ["rm", "--force", "many/old", "many/older"])).to.equal(
        "moved to the trash: many/old, many/older; bring one back with  strongroom undo PATH\n",
      );
      expect(await mustListPaths(server(), "many/")).to.deep.equal(["many/kept"]);
      expect(await must(here(), ["undo", "many/old"])).to.equal("many/old is back from the trash\n");
      expect(await mustListPaths(server(), "many/")).to.deep.equal(["many/kept", "many/old"]);
      expect(await must(here(), ["rm", "many/old"])).to.equal(
        "moved to the trash: many/old; bring it back with  strongroom undo many/old\n",
      );
      expect((await strongroom(here(), ["get", "many/old"])).stderr).to.contain(
        "many/old is in the trash: bring it back with  strongroom undo many/old",
      );
    });

    it("mv --replace puts what it replaces into the trash, with its history", async () => {
      for (const value of ["one", "two"]) await mustPut(server(), "replaced/to", value);
      await mustPut(server(), "replaced/from", "new");
      expect(await must(here(), ["mv", "--replace", "replaced/from", "replaced/to"])).to.equal(
        "replaced/from moved to replaced/to; the secret that it replaced is in the trash\n",
      );
      await must(here(), ["mv", "replaced/to", "replaced/from"]);
      await must(here(), ["undo", "replaced/to"]);
      expect(await must(here(), ["get", "replaced/to", "--at", "1"])).to.equal("one");
    });

    it("rm and mv say that they destroy what was in the trash at the path before", async () => {
      const fate = "the secret that was in the trash before at twice/a is destroyed";
      await mustPut(server(), "twice/a", "one");
      expect(await must(here(), ["rm", "twice/a"])).not.to.contain("destroy");
      await mustPut(server(), "twice/a", "two");
      expect(await must(here(), ["rm", "twice/a", "--dry-run"])).to.contain("where it would destroy twice/a");
      expect(await must(here(), ["rm", "twice/a"])).to.contain(`undo twice/a; ${fate}`);
      for (const path of ["twice/a", "twice/b"]) await mustPut(server(), path, "three");
      expect(await must(here(), ["mv", "twice/b", "twice/a", "--replace"])).to.contain(`is in the trash; ${fate}`);
      const json = JSON.parse(await must(here(), ["rm", "twice/a", "--json"]));
      expect(json).to.deep.include({ trashed: ["twice/a"], destroyed: ["twice/a"] });
    });

    it("trash ls, rm and empty show and destroy what is there", async () => {
      for (const name of ["a", "b", "c"]) await mustPut(server(), `trashed/${name}`, "v");
      await must(here(), ["rm", "-r", "trashed/"]);
      expect(await must(here(), ["trash", "ls", "trashed/"])).to.match(
        /^trashed\/a {2}\d{4}-.*\ntrashed\/b .*\ntrashed\/c /,
      );
      const { entries } = JSON.parse(await must(here(), ["trash", "ls", "--json"])) as { entries: Json[] };
      expect(entries.map(({ path }) => path)).to.include("trashed/a");
      expect(await must(here(), ["trash", "rm", "-y", "trashed/a"])).to.equal("destroyed: trashed/a\n");
      expect((await strongroom(here(), ["trash", "rm", "-y", "trashed/a"])).code).to.equal(4);
      expect((await strongroom(here(), ["undo", "trashed/a"])).code).to.equal(4);
      expect(await must(here(), ["trash", "empty", "--yes"])).to.match(/^destroyed: \d+ secrets\n$/);
      expect(await must(here(), ["trash", "ls"])).to.equal("");
      expect(await must(here(), ["trash", "empty"])).to.equal("the trash is empty: nothing was done\n");
    });

    testRows(here, {
      "trash rm without a path": { args: ["trash", "rm"], exit: 2, err: /rm needs the paths/ },
      "trash empty with a path": { args: ["trash", "empty", "a"], exit: 2, err: /empty takes no paths/ },
      "trash ls with --yes": { args: ["trash", "ls", "--yes"], exit: 2, err: /--yes has no effect with ls/ },
      "trash rm without a terminal": { args: ["trash", "rm", "a"], exit: 2, err: /no terminal.*--yes/ },
    });
  });
});
