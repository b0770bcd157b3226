/** The command line as a whole: its help, its exit codes, and what it says of arguments that it does not know. */
import { expect } from "chai";
import { exitCodes, exitMeanings } from "../../src/cli/exit-codes.js";
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

  it("strongroom help serve prints what serve --help does", async () => {
    expect(await run(["help", "serve"])).to.deep.equal(await run(["serve", "--help"]));
  });

  const refused: readonly (readonly [readonly string[], string])[] = [
    [["docter"], "Did you mean doctor?"],
    [["help", "nonsense"], "usage: strongroom"],
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

  for (const args of [["--value=canary"], ["doctor", "--passphrase=canary"], ["doctor", "--fix=canary"]]) {
    it(`does not repeat what stands behind the = in ${args.join(" ")}`, async () => {
      const { code, stderr } = await run(args);
      expect(code).to.equal(2);
      expect(stderr).to.contain("unknown option").and.not.to.contain("canary");
    });
  }
});
