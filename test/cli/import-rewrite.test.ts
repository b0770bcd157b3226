/** `strongroom import --rewrite`: an env file with references in the place of its values. */
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, strongroom } from "./run-command.js";

const before = `# the service
export API_KEY=abc123   # from the console
PASSWORD="with \\n and \\"quotes\\" inside"
EMPTY=
MULTI='first
second # no comment'

PLAIN = spaced value
`;

const after = `# the service
export API_KEY=strongroom://my%20app/API_KEY   # from the console
PASSWORD=strongroom://my%20app/PASSWORD
EMPTY=strongroom://my%20app/EMPTY
MULTI=strongroom://my%20app/MULTI

PLAIN = strongroom://my%20app/PLAIN
`;

describe("import --rewrite", () => {
  const server = shareLocalServer({}, mustInit);
  const fileWith = (text: string): string => {
    const file = join(temporaryDirectory(), ".env");
    writeFileSync(file, text);
    return file;
  };
  const run = (file: string, ...args: readonly string[]) =>
    strongroom(server(), ["import", "--format", "dotenv", "--rewrite", ...args, file]);

  it("leaves references that run -e reads as the values, and the mode, comments and line ends", async () => {
    for (const ends of ["\n", "\r\n"]) {
      const file = fileWith(before.replaceAll("\n", ends));
      chmodSync(file, 0o640);
      const { stdout } = mustDo(await run(file, "--prefix", "my app"));
      expect(stdout).to.contain(`${file}: 5 values replaced by references\nrun with it: strongroom run -e ${file} -- `);
      expect(readFileSync(file, "utf8")).to.equal(after.replaceAll("\n", ends));
      expect(statSync(file).mode & 0o777).to.equal(0o640);
      expect(readdirSync(join(file, ".."))).to.deep.equal([".env"]);
      const show = 'printf "%s|" "$API_KEY" "$PASSWORD" "$EMPTY" "$MULTI" "$PLAIN"';
      const ran = mustDo(await strongroom(server(), ["run", "-e", file, "--", "sh", "-c", show]));
      expect(ran.stdout).to.equal('abc123|with \n and \\"quotes\\" inside||first\nsecond # no comment|spaced value|');
      const again = mustDo(await run(file, "--prefix", "my app"));
      expect(again.stdout).to.contain("0 values replaced");
    }
  });

  it("names the lines that keep their value, and never drops one that the vault does not have", async () => {
    await mustPut(server(), "kept/OTHER", "stored with another value");
    const text = "GOOD=1\nOTHER=from the file\nmy.name=2\nLD_PRELOAD=x.so\n";
    const file = fileWith(text);
    const { code, stdout, stderr } = await run(file, "--prefix", "kept");
    expect(code).to.equal(7); // one was skipped
    expect(readFileSync(file, "utf8")).to.equal(text.replace("GOOD=1", "GOOD=strongroom://kept/GOOD"));
    expect(stdout).to.contain("1 value replaced");
    expect(stderr.split("\n")).to.deep.equal([
      `strongroom: ${file}, line 2: OTHER keeps its value: the vault does not have this value`,
      `strongroom: ${file}, line 3: my.name keeps its value: my.name is not a valid variable name`,
      `strongroom: ${file}, line 4: LD_PRELOAD keeps its value: LD_PRELOAD changes how programs run: use  run --set LD_PRELOAD=path`,
      "",
    ]);
    expect(stderr).not.to.contain("from the file");
  });

  it("changes nothing in a dry run, and rewrites what a link leads to", async () => {
    const file = fileWith("KEY=value\n");
    expect(mustDo(await run(file, "--prefix", "dry", "--dry-run")).stdout).to.contain("1 value would be replaced");
    expect(readFileSync(file, "utf8")).to.equal("KEY=value\n");
    const link = join(temporaryDirectory(), "link.env");
    symlinkSync(file, link);
    mustDo(await run(link, "--prefix", "linked"));
    expect(readFileSync(file, "utf8")).to.equal("KEY=strongroom://linked/KEY\n");
    expect((await mustGet(server(), "linked/KEY"))["value"]).to.equal("value");
  });

  it("refuses standard input, other formats, and mixed line ends", async () => {
    mustRefuseWith(
      await strongroom(server(), ["import", "--rewrite", "-"], { input: "A=1\n" }),
      2,
      "needs a dotenv file",
    );
    const json = fileWith('{"a":"b"}');
    mustRefuseWith(await strongroom(server(), ["import", "--rewrite", "-q", json]), 2, "--rewrite needs a dotenv file");
    const mixed = fileWith("A=1\r\nB=2\n");
    const { code, stderr } = await run(mixed, "--prefix", "mixed");
    expect(code).to.equal(2);
    expect(stderr).to.contain("mixed line ends");
    expect(readFileSync(mixed, "utf8")).to.equal("A=1\r\nB=2\n");
  });
});
