/** Commands that must not replace a secret, when another program creates it between their look and their write. */
import { expect } from "chai";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { heldFiles } from "../support/held-files.js";
import { strongroom } from "./command-rows.js";

describe("a secret that another program creates while a command runs", () => {
  const { files, hold } = heldFiles();
  const server = shareLocalServer({ files, cacheBytes: 0 }, async (started) => {
    await mustInit(started);
    await mustPut(started, "from/secret", "mine");
  });

  const rows: readonly (readonly [readonly string[], string?])[] = [
    [["put", "--no-clobber"], "mine"],
    [["generate"]],
    [["cp", "from/secret"]],
    [["mv", "from/secret"]],
  ];
  for (const [at, [args, input]] of rows.entries()) {
    it(`${args[0]} leaves it alone and exits 7`, async () => {
      const path = `race-${at}/x`;
      await whileRunning(path, async () => {
        const { code, stdout, stderr } = await strongroom({ STRONGROOM_HOME: server().home }, [...args, path], input);
        expect({ code, stdout }, stderr).to.deep.equal({ code: 7, stdout: "" });
        expect(stderr).to.contain(`${path} already exists`);
      });
      expect((await mustGet(server(), "from/secret"))["value"]).to.equal("mine");
    });
  }

  it("import without --force skips it when it differs, and counts it as unchanged when it does not", async () => {
    for (const [value, result] of [
      ["mine", 7],
      ["theirs", 0],
    ] as const) {
      const folder = `imported-${value}`;
      const args = ["import", "--format", "json", "--prefix", folder, "-", "--json"];
      await whileRunning(`${folder}/x`, async () => {
        const input = JSON.stringify({ x: value, y: value });
        const { code, stdout } = await strongroom({ STRONGROOM_HOME: server().home }, args, input);
        expect(code, stdout).to.equal(result);
        const want =
          result === 7
            ? { created: 1, unchanged: 0, skipped: [`${folder}/x`] }
            : { created: 1, unchanged: 1, skipped: [] };
        expect(JSON.parse(stdout)).to.deep.include({ replaced: 0, ...want });
      });
      expect((await mustGet(server(), `${folder}/y`))["value"]).to.equal(value);
    }
  });

  /** Creates the secret while the command waits for the list in which it looks: that reads a neighbour. */
  async function whileRunning(path: string, command: () => Promise<void>): Promise<void> {
    await mustPut(server(), `${path}-near`, "v");
    const { reached, release } = hold(`${path}-near`);
    const running = command();
    await Promise.race([reached, running]);
    await mustPut(server(), path, "theirs");
    release();
    await running;
    expect((await mustGet(server(), path))["value"]).to.equal("theirs");
  }
});
