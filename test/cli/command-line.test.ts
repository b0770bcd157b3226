/** The command line as a whole: its help, its exit codes, and what it says of arguments that it does not know. */
import { expect } from "chai";
import pMap from "p-map";
import { exitCodes, exitMeanings } from "../../src/cli/session/exit-codes.js";
import { run } from "../support/process.js";

describe("the command line", () => {
  it("lists every command and every exit code in its help", async () => {
    const { code, stdout } = await run(["--help"]);
    expect(code).to.equal(0);
    for (const name of ["serve", "doctor", "version"]) expect(stdout).to.match(new RegExp(`^  ${name} `, "m"));
    for (const [name, number] of Object.entries(exitCodes)) {
      expect(stdout).to.contain(` ${number}  ${exitMeanings[name as keyof typeof exitMeanings]}\n`);
    }
  });

  for (const args of [
    ["help", "doctor"],
    ["doctor", "--help"],
    ["doctor", "-h"],
  ]) {
    it(`strongroom ${args.join(" ")} prints the command's flags`, async () => {
      const { code, stdout } = await run(args);
      expect(code).to.equal(0);
      expect(stdout).to.contain("usage: strongroom doctor").and.to.contain("--passphrase-fd");
    });
  }

  it("no help has a line of more than 80 columns, or breaks a description where a word would fit", async () => {
    const helpOf = async (name: string) => (await run([name, "--help"])).stdout;
    const names = [...(await run(["--help"])).stdout.matchAll(/^ {2}([a-z]+)\S* .*[a-z]$/gm)].map(
      ([, name = ""]) => name,
    );
    expect(names).to.include.members(["serve", "put", "version"]);
    const helps = await pMap(["help", ...names], helpOf, { concurrency: 4 });
    for (const help of helps) {
      for (const line of help.split("\n")) expect([...line].length, line).to.be.at.most(80);
      const [, description = ""] = help.split("\n\n");
      const lines = description.split("\n");
      for (const [at, line] of lines.slice(1).entries()) {
        const [word = ""] = line.split(" ");
        expect(`${lines[at]} ${word}`.length, description).to.be.above(80);
      }
    }
  });

  it("strongroom help serve prints what serve --help does", async () => {
    expect(await run(["help", "serve"])).to.deep.equal(await run(["serve", "--help"]));
  });

  const refused: readonly (readonly [readonly string[], string])[] = [
    [["docter"], "Did you mean doctor?"],
    [["help", "docter"], "strongroom: unknown command 'docter'\n(Did you mean doctor?)"],
    [["help", "nonsense"], "strongroom: unknown command 'nonsense'"],
    [["unlock", "--json=yes"], "strongroom: option '--json' takes no value"],
    [["export", "--prefix", "a", "--prefix", "b"], "option '--prefix <prefix>' is given more than once"],
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
    [["inject", "--force"], "option '--force' is nothing without option '-o, --output <file>'"],
    [["export", "--format", "json", "--plaintext", "--force"], "nothing without option '-o"],
    [["trust", "--cacert", ""], "needs a value"],
    [["inject", "-o", ""], "needs a value"],
    [["backup", ""], "needs a value"],
    [["restore", ""], "needs a value"],
    [["version", "x"], "strongroom version --help"],
    [["doctor", "--fixx"], "Did you mean --fix?"],
    [["doctor", "--passphrase-file"], "argument missing"],
  ];
  for (const [args, says] of refused) {
    it(`strongroom ${args.join(" ")} exits 2 and says what to do`, async () => {
      const { code, stdout, stderr } = await run(args);
      expect(code).to.equal(2);
      expect(stdout).to.equal("");
      expect(stderr).to.contain(says);
    });
  }

  for (const args of [
    ["--value=canary"],
    ["doctor", "--passphrase=canary"],
    ["doctor", "--fix=canary"],
    ["unlock", "-pcanary"],
    ["unlock", "-p=it's a canary"],
    ["unlock", "-qPcanary"],
  ]) {
    it(`does not repeat the value in ${args.join(" ")}`, async () => {
      const { code, stderr } = await run(args);
      expect(code).to.equal(2);
      expect(stderr)
        .to.match(/unknown option '--?[A-Za-z]+'|takes no value/)
        .and.not.to.contain("canary");
    });
  }

  for (const args of [
    ["token", "canary"],
    ["unlock", "--passphrase-fd", "canary"],
    ["put", "a", "--type", "canary"],
    ["run", "--set", "it's a canary", "--", "ls"],
  ]) {
    it(`does not repeat what is invalid in ${args.join(" ")}`, async () => {
      const { code, stderr } = await run(args);
      expect(code).to.equal(2);
      expect(stderr)
        .to.match(/^strongroom: (?:option '--.*': )?what was given is invalid/)
        .and.not.to.contain("canary");
    });
  }
});
