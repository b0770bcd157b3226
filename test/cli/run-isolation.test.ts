/** `strongroom run`: the waiting process holds no secret, the child's environment is otherwise ours, and no secret steers it. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { usageRefusal } from "../../tools/rig/parser.js";
import { collect, type Ended, environment, mainFile, node } from "../../tools/rig/process.js";
import { scanProcess } from "../../tools/rig/scanner.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustInit, mustPut } from "../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, start, strongroom } from "./run-command.js";

const value = randomBytes(48).toString("base64");
const pem = `-----BEGIN KEY-----\n${"a".repeat(20)}\n  ${"b".repeat(20)}\r\nshort\n-----END KEY-----\n`;
const odd = "\u{80}\u{81}\u{88}\u{ff} '\"`$(echo executed)\\\t\r\n\u{1}\u{7f}\u{1F511}\n\n";

const steering = `PATH IFS ENV BASH_ENV LD_PRELOAD DYLD_INSERT_LIBRARIES NODE_OPTIONS PYTHONPATH PERL5OPT RUBYOPT
  GIT_SSH_COMMAND JAVA_TOOL_OPTIONS SHELLOPTS PS4 PROMPT_COMMAND OPENSSL_CONF HOME EDITOR NPM_CONFIG_SCRIPT_SHELL
  PSQL_PAGER AWS_PAGER SVN_EDITOR ES_JAVA_OPTS NODE_COMPILE_CACHE GOCACHEPROG CARGO_BUILD_RUSTC_WRAPPER YARN_YARN_PATH
  MODULE_PATH EXECSHELL GTK_MODULES ODBCINI BAO_ADDR AWS_ENDPOINT_URL`.split(/\s+/);

describe("strongroom run, isolation", () => {
  const server = shareLocalServer({}, async (shared) => {
    await mustInit(shared);
    await mustPut(shared, "app/canary", { value });
    await mustPut(shared, "app/odd", { value: odd });
    await mustPut(shared, "lines/pem", { value: pem });
    for (const name of steering) await mustPut(shared, `steer/${name.replaceAll("_", " ")}`, { value: "x" });
  });

  const node1 = (program: string) => [node, "-e", program];
  const printEnvironment = node1("process.stdout.write(JSON.stringify(process.env))");

  describe("the waiting process", () => {
    before(function () {
      needs(this, existsSync("/proc/self/mem"), "/proc/self/mem");
    });

    it("run holds neither value nor token while the command runs", async () => {
      const marker = randomBytes(48).toString("base64");
      const sleeping = node1("console.log(process.env.canary); setInterval(() => {}, 1000)");
      const { child, finished } = start(server(), ["run", "--prefix", "app/", "--", ...sleeping], {
        environment: { MARKER: marker },
      });
      await new Promise((resolve) => child.stdout.once("data", resolve));
      const wanted = { marker, value, token: server().token };
      const found = scanProcess(
        child.pid ?? 0,
        new Map(Object.entries(wanted).map(([name, text]) => [name, Buffer.from(text)])),
      );
      child.kill("SIGTERM");
      expect((await finished).stdout).to.equal(`${value}\n`);
      expect(found.get("marker")?.full, "the scanner sees what is there").to.be.above(0);
      expect(found.get("value")).to.deep.equal({ full: 0, half: 0 });
      expect(found.get("token")).to.deep.equal({ full: 0, half: 0 });
    });

    it("every command keeps its memory out of core dumps, and run gives its command the own setting back", async () => {
      const filter = readFileSync("/proc/self/coredump_filter", "utf8");
      const show = node1(
        "for (const id of [process.ppid, 'self']) process.stdout.write(fs.readFileSync('/proc/' + id + '/coredump_filter'))",
      );
      const { stdout } = mustDo(await start(server(), ["run", "--prefix", "app/", "--", ...show]).finished);
      expect(stdout).to.equal(`00000000\n${filter}`);
    });
  });

  it("a command that waits for its input survives SIGUSR1 without opening the debugger", async () => {
    const { child, finished } = startWaiting();
    const more = "v".repeat(1_000_000); // than the channel holds: once it is written, the command reads
    await new Promise((resolve) => child.stdin.write(more, resolve));
    child.kill("SIGUSR1");
    child.stdin.end();
    const { code, stderr } = await finished;
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
  });

  function startWaiting() {
    const env = environment({ STRONGROOM_HOME: server().home });
    const child = spawn(node, [mainFile, "put", "signal"], { env, stdio: ["pipe", "ignore", "pipe"] });
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    const finished = new Promise<{ code: number | null; stderr: string }>((resolve) => {
      child.on("close", (code) => resolve({ code, stderr }));
    });
    return { child, finished };
  }

  describe("the environment", () => {
    it("the command's environment is that of run with the secrets added, byte by byte", async () => {
      const ambient = { PLAIN: "a b", QUOTES: `it's "so" $HOME`, EMPTY: "" };
      const args = ["run", "--prefix", "app/", "--set", "ODD_TOO=app/odd", "--"];
      const { stdout } = mustDo(await strongroom(server(), [...args, ...printEnvironment], { environment: ambient }));
      const found = JSON.parse(stdout) as Record<string, string>;
      expect(found).to.include({ ...ambient, canary: value, ODD_TOO: odd });
      const own = Object.keys(environment({ STRONGROOM_HOME: "", ...ambient, canary: "", ODD_TOO: "" }));
      expect(Object.keys(found)).to.have.members(own);
    });

    it("names that shells cannot set stay in the environment", async () => {
      const ambient = { "dotted.name": "1", "BASH_FUNC_f%%": "() {  :\n}", "with-dash": "a'b" };
      const args = ["run", "--set", "A=app/canary", "--", ...printEnvironment];
      const { stdout } = mustDo(await strongroom(server(), args, { environment: ambient }));
      expect(JSON.parse(stdout)).to.include({ ...ambient, A: value });
    });

    it("run prints no value when the caller traces shells", async () => {
      const ambient = { SHELLOPTS: "xtrace:verbose", PS4: "+ " };
      const { code, stdout, stderr } = await strongroom(server(), ["run", "--prefix", "app", "--", "true"], {
        environment: ambient,
      });
      expect(code).to.equal(0);
      expect(stdout + stderr).not.to.contain(value);
    });

    it("names in env files that are not variable names are rejected", async () => {
      const file = join(temporaryDirectory(), "env");
      writeFileSync(file, "A.B=1\n");
      mustRefuseWith(
        await strongroom(server(), ["run", "-e", file, "--", "true"]),
        2,
        "A.B is not a valid variable name",
      );
    });
  });

  describe("names that steer programs", () => {
    it("--prefix rejects names that steer programs, each with its path", async () => {
      const said = steering.map((name) => `${name.replaceAll("_", " ")} would set ${name}`);
      mustRefuseWith(await strongroom(server(), ["run", "--prefix", "steer/", "--", "true"]), 2, ...said, "--set");
    });

    it("an imported name runs no foreign code, and --set accepts the name", async () => {
      const directory = temporaryDirectory();
      mkdirSync(join(directory, "in"));
      const marker = join(directory, "executed");
      writeFileSync(join(directory, "evil.js"), `require("fs").writeFileSync(${JSON.stringify(marker)}, "")`);
      await mustPut(server(), "evil/NODE OPTIONS", { value: `--require=${join(directory, "evil.js")}` });
      mustRefuseWith(await strongroom(server(), ["run", "--prefix", "evil/", "--", node, "-e", ""]), 2, "NODE_OPTIONS");
      expect(existsSync(marker)).to.equal(false);
      mustDo(await strongroom(server(), ["run", "--set", "NODE_OPTIONS=evil/NODE OPTIONS", "--", node, "-e", ""]));
      expect(existsSync(marker)).to.equal(true);
    });

    it("an env file's reference for a name that steers programs is rejected, and its text is accepted", async () => {
      const file = join(temporaryDirectory(), "env");
      writeFileSync(file, "PYTHONPATH=strongroom://app/canary\n");
      mustRefuseWith(await strongroom(server(), ["run", "-e", file, "--", "true"]), 2, "line 1: PYTHONPATH", "--set");
      writeFileSync(file, "PYTHONPATH=/lib\n");
      const { stdout } = mustDo(await strongroom(server(), ["run", "-e", file, "--", "printenv", "PYTHONPATH"]));
      expect(stdout).to.equal("/lib\n");
    });
  });

  describe("values that a shell would evaluate", () => {
    const directory = shared(async () => temporaryDirectory());
    const marker = () => join(directory(), "executed");
    const code = () => `psvar[$(touch ${marker()})1]`; // an array that zsh has: of others it evaluates no index
    const names =
      "RANDOM SRANDOM OPTIND HISTCMD SECONDS UID EUID PPID GROUPS DIRSTACK FUNCNAME LINENO EPOCHSECONDS PS4 _ ZLE_RPROMPT_INDENT";
    const shells = ["/bin/sh", "/bin/bash", "/bin/zsh"].filter((shell) => existsSync(shell));

    before(async () => {
      for (const name of names.split(" ")) await mustPut(server(), `evaluated/${name}`, { value: code() });
      await mustPut(server(), "counter/COUNT", { value: code() });
    });

    afterEach(() => expect(existsSync(marker()), "no code was run").to.equal(false));

    it("values for names that shells use themselves are refused, by every way to name a variable", async () => {
      for (const name of names.split(" ")) {
        expect(await usageRefusal(["run", "--set", `${name}=a`, "--", "true"])).to.contain(`${name} has a meaning`);
      }
      const said = names.split(" ").map((name) => `evaluated/${name} would set ${name}`);
      for (const way of [
        ["run", "--prefix", "evaluated/", "--", "true"],
        ["export", "--prefix", "evaluated/", "--format", "shell", "--plaintext"],
        ["export", "--prefix", "evaluated/", "--format", "dotenv", "--plaintext"],
      ]) {
        mustRefuseWith(await strongroom(server(), way), 2, ...said);
      }
    });

    for (const text of ["1", "strongroom://evaluated/RANDOM"]) {
      it(`RANDOM=${text} in an env file is refused`, async () => {
        const env = join(directory(), "env");
        writeFileSync(env, `RANDOM=${text}\n`);
        mustRefuseWith(await strongroom(server(), ["run", "-e", env, "--", "true"]), 2, "line 1: RANDOM has a meaning");
      });
    }

    it("values reach the command of run as they are: no shell, which the caller could have steered, starts it", async () => {
      const ambient = { "BASH_FUNC_echo%%": `() {  touch ${marker()};\n}` };
      const args = ["run", "--prefix", "counter/", "--", "printenv", "COUNT"];
      const { stdout } = mustDo(await strongroom(server(), args, { environment: ambient }));
      expect(stdout).to.equal(`${code()}\n`);
    });

    for (const shell of shells) {
      it(`${shell} evaluates no value of an export that it reads, not even for an integer`, async () => {
        const file = join(directory(), `export-${shell.replaceAll("/", "-")}`);
        const args = ["export", "--prefix", "counter/", "--format", "shell", "--plaintext", "-o", file];
        mustDo(await strongroom(server(), args));
        const script = `typeset -i COUNT 2>/dev/null; . "$1"; printf %s "$COUNT"`;
        const { stdout } = await collect(
          spawn(shell, ["-c", script, "sh", file], { stdio: ["ignore", "pipe", "pipe"] }),
        ).ended;
        expect(stdout).to.equal(code());
      });
    }
  });

  describe("the command as it is installed", () => {
    const program = join(import.meta.dirname, "../../../bin/strongroom.cjs");

    /** Started by the shell script that the package installs, with the Node of this test. */
    async function runInstalled(args: readonly string[]): Promise<Ended> {
      const directory = temporaryDirectory();
      symlinkSync(node, join(directory, "node"));
      symlinkSync(program, join(directory, "strongroom"));
      const here = environment({ STRONGROOM_HOME: server().home });
      const env = { ...here, PATH: `${directory}:${here["PATH"]}` };
      return collect(spawn("strongroom", args, { env, cwd: directory, stdio: ["ignore", "pipe", "pipe"] })).ended;
    }

    it("the installed command reports a missing env file itself: Node does not read the flag", async () => {
      const { code, stdout, stderr } = await runInstalled(["run", "--env-file", "nosuch", "--", "true"]);
      expect({ code, stdout }).to.deep.equal({ code: 2, stdout: "" });
      expect(stderr).to.match(/^strongroom: the env file nosuch cannot be read \(ENOENT\)/);
    });

    for (const spelled of [["--env-file"], ["--env-file="]]) {
      it(`NODE_OPTIONS in a file of ${spelled} reaches the command alone`, async () => {
        const directory = temporaryDirectory();
        const [file, marker] = [join(directory, "env"), join(directory, "by")];
        const code = `require("fs").appendFileSync(${JSON.stringify(marker)}, process.argv[1] + "\\n")`;
        writeFileSync(join(directory, "preload.cjs"), code);
        writeFileSync(file, `NODE_OPTIONS="--require=${join(directory, "preload.cjs")}"\n`);
        const flag = spelled[0] === "--env-file" ? [...spelled, file] : [`${spelled[0]}${file}`];
        const target = join(directory, "target.cjs");
        writeFileSync(target, "");
        expect(await runInstalled(["run", ...flag, "--", node, target])).to.include({ code: 0, stderr: "" });
        expect(readFileSync(marker, "utf8")).to.equal(`${target}\n`);
      });
    }
  });

  describe("run --mask", () => {
    it("--mask masks each line of at least 8 bytes of a multi-line value, whatever is around it", async () => {
      const script = `printf '%s\\n' "$pem"; echo "  > ${"a".repeat(20)} < "; echo "${"b".repeat(20)}"; echo short`;
      const args = ["run", "--mask", "--prefix", "lines/", "--", "sh", "-c", script];
      const { stdout } = mustDo(await strongroom(server(), args));
      expect(stdout).to.equal("***\n  > *** < \n***\nshort\n");
      const oneByOne = [
        "run",
        "--mask",
        "--prefix",
        "lines/",
        "--",
        "sh",
        "-c",
        `printf %s "$pem" | while read -r line; do echo "$line"; done`,
      ];
      expect(mustDo(await strongroom(server(), oneByOne)).stdout).to.equal("***\n***\n***\r\nshort\n***\n");
    });
  });
});
