/** The table [agent] of the project file: what `agent run` uses, only as the user has allowed it. */
import { mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { bind, brokerRig } from "../../tools/rig/broker-rig.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { mustPut } from "../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, strongroom } from "../cli/run-command.js";

describe("project files", function () {
  this.timeout(0);
  const rig = brokerRig();

  function newProject(text: string) {
    const root = join(realpathSync(temporaryDirectory()), "project");
    const file = join(root, ".strongroom.toml");
    mkdirSync(root);
    writeFileSync(file, text, { mode: 0o600 });
    const environment = { XDG_STATE_HOME: temporaryDirectory() };
    return { file, here: (args: readonly string[]) => strongroom(rig().server, args, { cwd: root, environment }) };
  }

  const ask = () => [
    "agent",
    "run",
    "-q",
    "--no-sandbox",
    "--",
    "sh",
    "-c",
    `echo $GH_TOKEN; curl -sS https://localhost:${rig().upstream.port}/p`,
  ];

  before(async () => {
    const { server, upstream } = rig();
    await mustPut(server, "elsewhere/key", { value: "another-credential" });
    await bind(server, "elsewhere/key", { host: "localhost", port: upstream.port, private: true });
  });

  it("the [agent] table takes effect once it is allowed, and again after each change", async () => {
    const { file, here } = newProject('[agent]\nuse = ["app/"]\nplaceholders = ["GH_TOKEN"]\n');
    mustRefuseWith(await here(ask()), 2, `${file} is new or has changed`);
    expect(mustDo(await here(["allow"])).stdout).to.contain("agent run may use app/");
    expect(mustDo(await here(ask())).stdout).to.match(/^strongroom-broker-placeholder\nGET \/p 0\n$/);
    for (const changed of ['[agent]\nuse = ["elsewhere/"]\n', "", "[agent]\nuse = []\n", 'prefix = "app/"\n']) {
      writeFileSync(file, changed);
      mustRefuseWith(await here(ask()), 2, "is new or has changed");
    }
    const seen = rig().upstream.seen.map(({ headers }) => headers["authorization"]);
    expect(seen).not.to.include("Bearer another-credential");
  });

  it("a removed project file, or an earlier version of it, is refused", async () => {
    const [former, current] = ["[agent]\nuse = []\n", '[agent]\nuse = ["app/"]\n'];
    const { file, here } = newProject(former);
    mustDo(await here(["allow"]));
    writeFileSync(file, current);
    mustDo(await here(["allow"]));
    writeFileSync(file, former);
    mustRefuseWith(await here(ask()), 2, "is new or has changed");
    rmSync(file);
    mustRefuseWith(await here(ask()), 2, `${file} was allowed and is missing`);
    mustDo(await here(["allow", "--revoke", file]));
    mustDo(await here(ask()));
  });

  it("--use overrides the [agent] table, which gives no secret to another host", async () => {
    const { here } = newProject('[agent]\nuse = ["app/"]\nallow-hosts = ["evil.test"]\n');
    mustDo(await here(["allow"]));
    const { upstream } = rig();
    const at = `https://localhost:${upstream.port}/own`;
    mustDo(await here(["agent", "run", "-q", "--no-sandbox", "--use", "elsewhere/", "--", "curl", "-sS", at]));
    expect(upstream.seen.at(-1)?.headers).to.include({ authorization: "Bearer another-credential" });
    const { stdout, stderr } = await here([
      "agent",
      "run",
      "-q",
      "--no-sandbox",
      "--",
      "curl",
      "-sS",
      "https://other.test/",
    ]);
    expect(stdout + stderr).to.contain("403");
  });

  const invalid: readonly (readonly [text: string, says: string])[] = [
    ["agent = 1\n", "agent is not a table"],
    ["[agent]\nuse = 1\n", "it must be a list of strings"],
    ['[agent]\nuse = ["../x"]\n', "use"],
    ['[agent]\negress = "any"\n', "egress is not one of use, allow-hosts"],
    ["[agent]\nsandbox = false\n", "--no-sandbox alone switches it off"],
    ['[agent]\nplaceholders = ["LD_PRELOAD"]\n', "changes how programs run"],
    ['[agent]\nplaceholders = ["a b"]\n', "placeholders"],
  ];
  for (const [text, says] of invalid) {
    it(`the project file ${JSON.stringify(text)} is refused`, async () => {
      mustRefuseWith(await newProject(text).here(["allow"]), 2, says);
    });
  }
});
