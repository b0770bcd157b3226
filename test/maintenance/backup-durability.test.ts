/** Durability of backup and restore: everything is synced, and in the right order. */
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { skipFor } from "../../tools/rig/needs.js";
import { run } from "../../tools/rig/process.js";
import { tracedCommand, whyNoStrace } from "../support/strace.js";
import { backup, must, startFilled } from "./archives.js";

describe("the order of syncs and renames", () => {
  before(function () {
    skipFor(this, whyNoStrace());
  });

  /** Index of the first such call after `from`. */
  const indexIn = (calls: readonly string[], what: RegExp, from = -1) => {
    const at = calls.findIndex((call, i) => i > from && what.test(call) && call.endsWith("= 0"));
    expect(at, `${what} in\n${calls.join("\n")}`).to.not.equal(-1);
    return at;
  };
  const sync = (path: string) => new RegExp(`^f(?:data)?sync\\(\\d+<${path}>`);
  const named = (path: string) => new RegExp(`^(?:rename|link)\\w*\\(.*, "${path}"`);

  it("a backup's file is durable before it gets its name, and then the name is", async () => {
    const server = await startFilled();
    await server.stop();
    const file = join(temporaryDirectory(), "b.tar");
    const calls = await tracedCommand(["backup", file], { STRONGROOM_HOME: server.home });
    const place = "(?:\\/proc\\/self\\/fd\\/\\d+|.*)"; // the directory, held open where that is possible
    const name = indexIn(calls, named(`${place}/b\\.tar`), indexIn(calls, sync(`${file}\\.tmp-[0-9]+-[0-9a-f]+`)));
    indexIn(calls, sync(dirname(file)), name);
  });

  it("a restored vault is durable before current names it, and then current is", async () => {
    const server = await startFilled();
    const file = join(temporaryDirectory(), "b.tar");
    must(await backup(server.home, file));
    const home = join(temporaryDirectory(), "home");
    const vault = join(home, "vault");
    const calls = await tracedCommand(["restore", file], { STRONGROOM_HOME: home });
    const moved = indexIn(calls, named(join(vault, "gen-1")));
    const current = indexIn(calls, named(join(vault, "current")), indexIn(calls, sync(vault), moved));
    indexIn(calls, sync(vault), current);
    expect(indexIn(calls, sync(join(vault, "restore-[0-9a-f]+", "restored")))).to.be.below(moved);
    expect((await run(["doctor", "--home", home])).code, "doctor finds no wrong mode").to.equal(0);
    for (const name of ["", ...readdirSync(join(vault, "gen-1"), { recursive: true, encoding: "utf8" })]) {
      const path = join(vault, "restore-[0-9a-f]+", name.replace(/[.+*?^$()]/g, "\\$&"));
      expect(indexIn(calls, sync(path)), name).to.be.below(moved);
    }
  });
});
