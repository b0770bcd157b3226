/** The command line as a whole: its help, its exit codes, and its messages about invalid arguments. */
import { spawnSync } from "node:child_process";
import { existsSync, openSync } from "node:fs";
import { expect } from "chai";
import { exitCodes, exitMeanings } from "../../src/cli/kit/errors.js";
import { needs } from "../../tools/rig/needs.js";
import { commandHelp, usageRefusal } from "../../tools/rig/parser.js";
import { mainFile, node } from "../../tools/rig/process.js";
import { strongroom } from "./command-rows.js";

describe("the command line", () => {
  it("the help lists every command and every exit code", async () => {
    const { code, stdout } = await strongroom({}, ["--help"]);
    expect(code).to.equal(0);
    for (const name of ["serve", "doctor", "version"]) expect(stdout).to.match(new RegExp(`^  ${name} `, "m"));
    for (const [name, number] of Object.entries(exitCodes)) {
      expect(stdout).to.contain(` ${number}  ${exitMeanings[name as keyof typeof exitMeanings]}\n`);
    }
  });

  it("output that cannot be written fails with the reason and what to do", function () {
    needs(this, existsSync("/dev/full"), "/dev/full");
    const { status, stderr } = spawnSync(node, [mainFile, "--help"], {
      stdio: ["ignore", openSync("/dev/full", "w"), "pipe"],
    });
    expect(status).to.equal(1);
    expect(String(stderr)).to.equal("strongroom: cannot write the output (ENOSPC): free space on its disk\n");
  });

  for (const args of [
    ["help", "doctor"],
    ["doctor", "--help"],
    ["doctor", "-h"],
  ]) {
    it(`prints the command's flags on strongroom ${args.join(" ")}`, async () => {
      const { code, stdout } = await strongroom({}, args);
      expect(code).to.equal(0);
      expect(stdout).to.contain("usage: strongroom doctor").and.to.contain("--passphrase-fd");
    });
  }

  it("keeps every help within 80 columns and fills the lines of descriptions", async () => {
    const all = (await strongroom({}, ["--help"])).stdout;
    const names = [...all.matchAll(/^ {2}([a-z][a-z-]*)\S* .*[a-z]$/gm)].map(([, name = ""]) => name);
    expect(names).to.include.members(["serve", "put", "version"]);
    const helps: string[] = [];
    for (const name of names.filter((one) => one !== "help" && one !== "strongroom"))
      helps.push(await commandHelp(name));
    for (const line of [all, ...helps].join("").split("\n")) expect([...line].length, line).to.be.at.most(80);
    for (const help of helps) {
      expect(help).to.match(/[^\n]\n\nexample:\n {2}strongroom /);
      const [, description = ""] = help.split("\n\n");
      const lines = description.split("\n");
      for (const [at, line] of lines.slice(1).entries()) {
        const [word = ""] = line.split(" ");
        expect(`${lines[at]} ${word}`.length, description).to.be.above(80);
      }
    }
  });

  it("help serve and serve --help print the same", async () => {
    expect(await strongroom({}, ["help", "serve"])).to.deep.equal(await strongroom({}, ["serve", "--help"]));
  });

  const refused: readonly (readonly [readonly string[], string])[] = [
    [["docter"], "Did you mean doctor?"],
    [["hlep"], "Did you mean help?"],
    [["stat"], "Did you mean status?"],
    [["ls", "--exp", "5d"], "Did you mean --expiring?"],
    [["tokne"], "Did you mean token?"],
    [["help", "docter"], "strongroom: unknown command 'docter'. Did you mean doctor?\n"],
    [["help", "nonsense"], "strongroom: unknown command 'nonsense'\n"],
    [["delete", "a"], "unknown command 'delete'. Did you mean rm?"],
    [["show", "a"], "unknown command 'show'. Did you mean get?"],
    [["add", "a"], "unknown command 'add'. Did you mean put?"],
    [["login"], "unknown command 'login'. Did you mean unlock?"],
    [
      ["ls", "--timeout", "2 weeks"],
      "--timeout must be a duration with its unit, such as 12h, 45m or 90s, of at most 7d",
    ],
    [["--timeout", "soon", "ls"], "--timeout must be a duration with its unit, such as 12h, 45m or 90s, of"],
    [["ls", "--timeout", "30"], "--timeout must be a duration with its unit, such as 12h, 45m or 90s, of"],
    [["token", "create", "a", "--ttl", "30"], "--ttl must be a duration with its unit, such as 30d, 12h, 45m or 90s"],
    [
      ["token", "rotate", "--overlap", "31d"],
      "--overlap must be a duration with its unit, such as 30d, 12h, 45m or 90s, of at most 30d",
    ],
    [["top", "--interval", "2"], "--interval must be a duration with its unit"],
    [["token"], "<action> is missing: choose one of create, ls, revoke, rotate, whoami, path"],
    [["mv", "a"], "<to> is missing\n"],
    [["import"], "import needs a source: the file, or -"],
    [["inject", "a.template"], "inject takes no arguments besides its flags"],
    [["token", "create", "a", "b"], "token takes only 2 arguments besides its flags"],
    [["token", "create", "a", "--path", "/app/"], "--path /app/: paths have no leading slash, write app/"],
    [["get", "a", "-c", "--clear-after", "9"], "--clear-after must be a duration with its unit"],
    [["audit", "show", "--since", "5"], "--since must be a duration, such as 2h, or a time"],
    [["--home", "/a", "ls", "--home", "/b"], "more than once"],
    [["unlock", "--json=yes"], "strongroom: --json takes no value"],
    [["export", "--prefix", "a", "--prefix", "b"], "strongroom: --prefix is given more than once"],
    [["run", "--prefix", "a", "--prefix=a", "--", "true"], "more than once"],
    [["put", "a", "--from-file", "b", "--from-file", "c"], "more than once"],
    [["import", "a", "--format", "json", "--format", "pass"], "more than once"],
    [["ls", "--home", "/a", "--home", "/b"], "more than once"],
    [["ls", "--home", ""], "needs a value"],
    [["ls", "--home="], "needs a value"],
    [["doctor", "--home", ""], "needs a value"],
    [["ls", "--address", ""], "needs a value"],
    [["ls", "--cacert", ""], "needs a value"],
    [["ls", "--token-file", ""], "needs a value"],
    [["token", "path", "--token-file", ""], "needs a value"],
    [["inject", "--overwrite"], "strongroom: --overwrite has no effect without --output"],
    [["key", "ls", "--passphrase-file", "file"], "strongroom: --passphrase-file has no effect with ls"],
    [["service", "status", "--print"], "strongroom: --print has no effect with status"],
    [["export", "--format", "json", "--plaintext", "--force"], "no effect without --output"],
    [["trust", "--cacert", ""], "needs a value"],
    [["inject", "-o", ""], "needs a value"],
    [["backup", ""], "needs a value"],
    [["restore", ""], "needs a value"],
    [["version", "x"], "strongroom version --help"],
    [["--home", "x"], "<command> is missing: --home is a flag of commands"],
    [["-q"], "<command> is missing: -q is a flag of commands"],
    [["passphrase", "chnage"], "must be one of change"],
    [["doctor", "--fixx"], "Did you mean --fix?"],
    [["token", "revok", "ci"], "Did you mean revoke?"],
    [["doctor", "--passphrase-file"], "strongroom: --passphrase-file needs a value\n"],
    [["put", "a", "--type"], "strongroom: --type needs a value: one of oauth-token, api-key,"],
    [["--hom", "/a", "ls"], "strongroom: unknown flag --hom. Did you mean --home?\n"],
    [["--jsn", "ls"], "strongroom: unknown flag --jsn. Did you mean --json?\n"],
    [["token", "create", "a", "--can", "list,gett"], "separated by commas. Did you mean get?\n"],
    [["get", "a", "--at", "first"], "--at must be the number of a version, as history lists it\n"],
    [["run", "--set", "=app/pin", "--", "true"], "--set must be NAME=path\n"],
    [
      ["put", "a", "--expires", "tomorrow"],
      "--expires must be a duration such as 90d, a date such as 2027-01-31, or never\n",
    ],
    [
      ["put", "a", "--expires", "99999d"],
      "--expires must be a duration such as 90d, a date such as 2027-01-31, or never\n",
    ],
  ];
  for (const [args, says] of refused) {
    it(`refuses strongroom ${args.join(" ")} with a hint`, async () => {
      expect(await usageRefusal(args)).to.contain(says);
    });
  }

  for (const args of [
    ["doctor", "--json", "--fixx"],
    ["--json", "get"],
    ["ls", "--json", "--home", ""],
    ["token", "--json", "print"],
    ["nosuch", "--json"],
  ]) {
    it(`reports the error of ${args.join(" ")} as one JSON object on standard error`, async () => {
      const { code, stdout, stderr } = await strongroom({}, args);
      expect({ code, stdout }).to.deep.equal({ code: 2, stdout: "" });
      expect(stderr.match(/\n/g)).to.have.lengthOf(1);
      const report = JSON.parse(stderr);
      expect(report).to.include({ code: "USAGE", exit: 2 }).and.to.have.all.keys("error", "code", "exit");
      expect(report.error).to.be.a("string").that.is.not.empty;
    });
  }

  it("groups the commands by purpose", async () => {
    const { stdout } = await strongroom({}, ["help"]);
    for (const group of ["secrets", "vault", "server", "maintenance"]) expect(stdout).to.contain(`\n${group}:\n`);
  });

  it("describes the connection flags in help flags, and refers to it elsewhere", async () => {
    const { stdout } = await strongroom({}, ["help", "flags"]);
    const flags = ["--home", "--address", "--token-file", "--cacert", "--timeout"];
    for (const flag of flags) expect(stdout).to.match(new RegExp(`^  ${flag} <`, "m"));
    expect(stdout).to.match(/^ {2}--non-interactive /m);
    const help = (await strongroom({}, ["help", "ls"])).stdout;
    expect(help).to.contain("strongroom help flags\n").and.not.to.contain("--cacert <");
  });

  for (const args of [
    ["--value=canary"],
    ["doctor", "--passphrase=canary"],
    ["doctor", "--fix=canary"],
    ["unlock", "-pcanary"],
    ["unlock", "-p=it's a canary"],
    ["unlock", "-qPcanary"],
  ]) {
    it(`the error of ${args.join(" ")} does not repeat the value`, async () => {
      expect(await usageRefusal(args))
        .to.match(/unknown flag --?[A-Za-z]+(?:\n|\. Did you mean)|takes no value/)
        .and.not.to.contain("canary");
    });
  }

  for (const args of [
    ["token", "canary"],
    ["unlock", "--passphrase-fd", "canary"],
    ["put", "a", "--type", "canary"],
    ["run", "--set", "it's a canary", "--", "ls"],
  ]) {
    it(`the error of ${args.join(" ")} does not repeat the invalid value`, async () => {
      expect(await usageRefusal(args))
        .to.match(/^strongroom: (?:--\S+|<action>) must be /)
        .and.not.to.contain("canary");
    });
  }
});
