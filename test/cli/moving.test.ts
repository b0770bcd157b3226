/** mv, cp and rm of single secrets: what they keep, refuse, and do when the disk fails. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { failingFiles } from "../support/failing-files.js";
import { shareTestServer, startTestServer } from "../support/server.js";
import { mustGet, mustInit, mustList, mustPut } from "../support/test-client.js";
import { must, strongroom, testRows } from "./command-rows.js";

describe("mv, cp and rm", () => {
  const server = shareTestServer({ cacheBytes: 0 }, async (started) => {
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
      expect((await strongroom(here(), ["ls", from])).code).to.equal(4);
    });

    it("both replace only with --replace", async () => {
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
      const full = await startTestServer({ files: faults.files });
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
      "without a terminal": { args: ["rm", "many/kept"], exit: 2, err: /no terminal.*--yes/ },
      "with --non-interactive": { args: ["rm", "many/kept", "--non-interactive"], exit: 2, err: /--yes/ },
      "of a missing secret": {
        args: ["rm", "-f", "many/kept", "many/none"],
        exit: 4,
        err: /nothing was done: no secret at many\/none/,
      },
      "a dry run": { args: ["rm", "many/kept", "--dry-run"], exit: 0, out: /would be deleted: many\/kept/ },
    });

    it("exits 12 on a damaged secret, which hides no other and can be deleted", async () => {
      for (const name of ["a", "b"]) await mustPut(server(), `damaged/${name}`, "v");
      writeFileSync(join(server().vaultPath, "gen-1/secrets/damaged/a.sealed"), "no blob");
      const got = await strongroom(here(), ["get", "damaged/a"]);
      expect(got).to.include({ code: 12, stdout: "" });
      expect(got.stderr).to.contain("strongroom doctor");
      const listed = await strongroom(here(), ["ls", "damaged/"]);
      expect(listed).to.include({ code: 12, stdout: "damaged/b\n" });
      expect(listed.stderr).to.contain("damaged/a");
      expect(await must(here(), ["rm", "--yes", "damaged/a"])).to.equal("deleted: damaged/a\n");
      expect(await must(here(), ["ls", "damaged/"])).to.equal("damaged/b\n");
    });

    it("rm deletes exactly the given secrets", async () => {
      expect(await must(here(), ["rm", "--force", "many/old", "many/older"])).to.equal(
        "deleted: many/old, many/older\n",
      );
      expect(await must(here(), ["ls", "many/"])).to.equal("many/kept\n");
    });
  });
});
