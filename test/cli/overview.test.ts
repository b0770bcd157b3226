/** The output of `strongroom` without a command, and the beginning of its help. */
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { startLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";
import { must, strongroom } from "./command-rows.js";

describe("strongroom without a command", () => {
  /** Returns the state and the commands, of which there are three. */
  async function overview(home: string): Promise<readonly string[]> {
    const [first = "", empty, next, ...rows] = (await must({ STRONGROOM_HOME: home }, [])).trimEnd().split("\n");
    expect({ empty, next, rows: rows.length }).to.deep.equal({ empty: "", next: "next:", rows: 3 });
    return [first.replace(/^Strongroom [\d.]+: /, ""), ...rows.map((row) => row.trim().split(/ {2,}/)[0] ?? "")];
  }

  it("shows the state and three commands that lead on from it", async () => {
    const server = await startLocalServer();
    const none = "the server is running, and there is no vault yet";
    const [put, help] = ["strongroom put app/db/password", "strongroom --help"];
    expect(await overview(server.home)).to.deep.equal([none, "strongroom init", put, "strongroom get app/db/password"]);
    await mustInit(server);
    const empty = "the vault is unlocked and has 0 secrets";
    expect(await overview(server.home)).to.deep.equal([empty, put, "strongroom import --prefix app .env", help]);
    await mustPut(server, "a", "b");
    const one = "the vault is unlocked and has 1 secret";
    expect(await overview(server.home)).to.deep.equal([one, "strongroom ls", "strongroom lock", help]);
    await must({ STRONGROOM_HOME: server.home }, ["lock"]);
    const locked = ["the vault is locked", "strongroom unlock", "strongroom status", help];
    expect(await overview(server.home)).to.deep.equal(locked);
  });

  it("says how to start a server where none is running", async () => {
    const home = join(temporaryDirectory(), "home");
    const [state, first] = await overview(home);
    expect({ state, first }).to.deep.equal({
      state: `no server is running for the vault in ${home}`,
      first: "strongroom up",
    });
  });
});

describe("the help", () => {
  it("begins with what Strongroom is and five commands to begin with", async () => {
    const { stdout } = await strongroom({}, ["--help"]);
    const [what = "", commands = "", usage = ""] = stdout.split("\n\n");
    expect(what).to.match(/^Strongroom is a vault/);
    const names = [...commands.matchAll(/^ {2}strongroom (\w+)/gm)].map(([, name]) => name);
    expect(names).to.deep.equal(["up", "init", "put", "get", "run"]);
    expect(usage).to.match(/^usage: strongroom/);
  });
});
