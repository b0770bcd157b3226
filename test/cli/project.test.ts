/** `.strongroom.toml`: found upwards, used only when allowed as it is, and only when it is the user's own. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, realpathSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { LaunchRequest } from "../../src/cli/run/launch.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, strongroom } from "./run-command.js";

const content = 'prefix = "app/"\nenv-file = "more.env"\n[set]\nOWN_NAME = "other/key"\n';
const variables = { API_KEY: "k-1", MORE: "m", OWN_NAME: "o-1" };
const shown = Object.keys(variables)
  .map((name) => `$${name}`)
  .join(" ");

describe("project files", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/API_KEY", "k-1");
    await mustPut(started, "other/key", "o-1");
  });

  /** A project with a directory below it, and the user's state. */
  function newProject(text = content) {
    const root = join(realpathSync(temporaryDirectory()), "my project");
    const file = join(root, ".strongroom.toml");
    const below = join(root, "src", "deep");
    mkdirSync(below, { recursive: true });
    writeFileSync(file, text, { mode: 0o600 });
    writeFileSync(join(root, "more.env"), "MORE=m\n", { mode: 0o600 });
    const environment = { XDG_STATE_HOME: temporaryDirectory() };
    const here = (args: readonly string[], cwd = below) => strongroom(server(), args, { cwd, environment });
    return { root, file, below, here };
  }
  const echo = ["run", "--", "sh", "-c", `echo ${shown}`];

  it("a project file is found upwards and chooses the secrets of run, once it is allowed", async () => {
    const { file, here } = newProject();
    mustRefuseWith(await here(echo), 2, `${file} is new or has changed`);
    const { stdout } = mustDo(await here(["allow"]));
    expect(stdout).to.match(
      /\.toml is allowed: the secrets in app\/, OWN_NAME from other\/key, the variables of .*more\.env\n$/,
    );
    expect(mustDo(await here(echo)).stdout).to.equal("k-1 m o-1\n");
  });

  it("a project file or env file that is a named pipe, or larger than 1 MiB, is refused without a wait", async () => {
    for (const name of [".strongroom.toml", "more.env"]) {
      const { root, here } = newProject();
      const file = join(root, name);
      rmSync(file);
      expect(spawnSync("mkfifo", ["-m", "600", file]).status).to.equal(0);
      mustRefuseWith(await here(["allow"]), 2, `${file} is not a file`);
      rmSync(file);
      writeFileSync(file, "", { mode: 0o600 });
      truncateSync(file, 3 * 2 ** 30);
      mustRefuseWith(await here(["allow"]), 2, `${file} has more than 1 MiB`);
    }
  });

  it("a project file must be allowed again after a change of it or of its env file, and in another place", async () => {
    const { root, file, here } = newProject();
    mustDo(await here(["allow"]));
    for (const [changed, text] of [
      [file, `${content}#\n`],
      [join(root, "more.env"), "MORE=n\n"],
    ] as const) {
      writeFileSync(changed, text);
      mustRefuseWith(await here(echo), 2, "is new or has changed");
      mustDo(await here(["allow"]));
      mustDo(await here(echo));
    }
    const copy = join(root, "src", ".strongroom.toml");
    writeFileSync(copy, `${content}#\n`, { mode: 0o600 });
    writeFileSync(join(root, "src", "more.env"), "MORE=n\n", { mode: 0o600 });
    mustRefuseWith(await here(echo), 2, `${copy} is new or has changed`);
  });

  it("a project file is not used after allow --revoke", async () => {
    const { here } = newProject();
    mustDo(await here(["allow"]));
    mustDo(await here(["allow", "--revoke"]));
    mustRefuseWith(await here(echo), 2, "is new or has changed");
  });

  it("a project file is ignored when flags choose the secrets", async () => {
    const { here } = newProject("no TOML");
    const { stdout } = mustDo(await here(["run", "--set", "API_KEY=other/key", "--", "sh", "-c", `echo ${shown}`]));
    expect(stdout).to.equal("o-1\n");
  });

  it("a project file chooses the variables of export for a shell, but not those of JSON", async () => {
    const { file, here } = newProject();
    mustDo(await here(["allow"]));
    const { stdout, stderr } = await here(["export", "--format", "shell", "--plaintext"]);
    expect(stdout).to.equal(
      "unset MORE\nexport MORE='m'\nunset API_KEY\nexport API_KEY='k-1'\nunset OWN_NAME\nexport OWN_NAME='o-1'\n",
    );
    expect(stderr).to.equal(`strongroom: 3 variables of ${file}\n`);
    const json = mustDo(await here(["export", "--format", "json", "--plaintext"])).stdout;
    expect(JSON.parse(json)).to.have.property("secrets").with.lengthOf(2);
  });

  it("a project file gives a template the prefix of its ./ paths", async () => {
    const { root, here } = newProject();
    const template = join(root, "config.template");
    writeFileSync(template, "key: {{ strongroom://./API_KEY }} {{ strongroom://other/key }}\n");
    mustRefuseWith(await here(["inject", "-i", template]), 2, "is new or has changed");
    mustDo(await here(["allow"]));
    expect(mustDo(await here(["inject", "-i", template])).stdout).to.equal("key: k-1 o-1\n");
    const elsewhere = await here(["inject", "-i", template], temporaryDirectory());
    mustRefuseWith(elsewhere, 2, "there is no prefix");
  });

  it("a project file is refused when others can write it or its env file", async () => {
    for (const name of [".strongroom.toml", "more.env"]) {
      const { root, here } = newProject();
      mustDo(await here(["allow"]));
      chmodSync(join(root, name), 0o622);
      const remedy = `can be written by others: run  chmod go-w '${join(root, name)}'\n`;
      mustRefuseWith(await here(echo), 2, `${join(root, name)} ${remedy}`);
      mustRefuseWith(await here(["allow"]), 2, "can be written by others");
    }
  });

  it("a project file is refused in a directory in which others can replace it, unless the directory is sticky", async () => {
    const { root, here } = newProject();
    mustDo(await here(["allow"]));
    chmodSync(root, 0o777);
    mustRefuseWith(await here(echo), 2, `${root} can be written by others: run  chmod go-w '${root}'`);
    chmodSync(root, 0o1777);
    mustDo(await here(echo));
  });

  it("run gets an env file only as it was allowed, even if that changes in between", async () => {
    const { root, here } = newProject();
    const envFiles = [{ file: join(root, "more.env"), sha256: "0".repeat(64) }];
    const sources = { prefix: undefined, naming: undefined, set: [], envFiles };
    const inherited = { descriptors: [], ignored: [] };
    const request: LaunchRequest = {
      sources,
      connection: {},
      maskPipe: null,
      inherited,
      quiet: false,
      dumpFilter: null,
    };
    const started = await here(["run-environment", JSON.stringify(request), "printenv", "MORE"]);
    mustRefuseWith(started, 2, `${envFiles[0]?.file} has just changed`);
  });

  it('a project file with name = "path" names variables by their paths', async () => {
    await mustPut(server(), "two/db1/password", "p-1");
    await mustPut(server(), "two/db2/password", "p-2");
    const { here } = newProject('prefix = "two"\nname = "path"\n');
    mustDo(await here(["allow"]));
    const { stdout } = mustDo(await here(["run", "--", "sh", "-c", "echo $DB1_PASSWORD $DB2_PASSWORD"]));
    expect(stdout).to.equal("p-1 p-2\n");
    const flags = ["--prefix", "two/", "--name", "path"];
    const names = mustDo(await here(["run", ...flags, "--print-names"])).stdout;
    expect(names).to.equal("DB1_PASSWORD\ttwo/db1/password\nDB2_PASSWORD\ttwo/db2/password\n");
    const written = await here(["export", ...flags, "--format", "dotenv", "--plaintext"]);
    expect(mustDo(written).stdout).to.equal("DB1_PASSWORD=p-1\nDB2_PASSWORD=p-2\n");
  });

  const invalid: Readonly<Record<string, readonly [text: string, says: string]>> = {
    "is no TOML": ["prefix = \n", "line 1, column"],
    "has an unknown name": ['home = "/tmp"\n', "home is not one of prefix, name, env-file, set and agent"],
    "has an unknown naming": ['name = "first"\n', "name: it must be one of last, path"],
    "has a prefix that is no text": ["prefix = 1\n", "prefix: it must be a string"],
    "sets a name that steers programs": ['[set]\nLD_PRELOAD = "app/x"\n', "LD_PRELOAD: it changes how programs run"],
    "sets an invalid name": ['[set]\n"1A" = "app/x"\n', "1A is not a valid variable name"],
    "sets an invalid path": ['[set]\nA = "/app/x"\n', "A: paths have no leading slash"],
  };
  for (const [what, [text, says]] of Object.entries(invalid)) {
    it(`a project file that ${what} cannot be allowed`, async () => {
      mustRefuseWith(await newProject(text).here(["allow"]), 2, says);
    });
  }

  it("allow and run without a project file name what is missing", async () => {
    const { here } = newProject();
    const [none, usage] = await Promise.all([["allow"], echo].map((args) => here(args, temporaryDirectory())));
    if (none !== undefined) mustRefuseWith(none, 2, "there is no .strongroom.toml here or in a directory above");
    if (usage !== undefined)
      mustRefuseWith(usage, 2, "no secrets chosen: choose them with --prefix, --set or --env-file before the command");
  });
});
