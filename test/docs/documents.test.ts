/** The README says what the program does: its commands run as printed, its table is that of the settings. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect } from "chai";
import { exitCodes, exitMeanings } from "../../src/cli/session/exit-codes.js";
import { definitions } from "../../src/config/definitions.js";
import { meanings } from "../../src/contract/common-responses.js";
import { operations } from "../../src/contract/operations.js";
import { type ErrorCode, statusOf } from "../../src/errors.js";
import { findingCodes } from "../../src/maintenance/doctor/finding.js";
import { run, startProcess } from "../support/process.js";
import { hasPython, type Reaction, runOnTerminal } from "../support/pseudo-terminal.js";
import { mustInit } from "../support/test-client.js";

const readme = readFileSync("README.md", "utf8");
const tables = readme.replace(/ +/g, " ");

/** What is typed at the questions of each command. */
const typed: Readonly<Record<string, readonly Reaction[]>> = {
  init: [
    { question: "New passphrase: ", keys: "quiet lamp river song\r" },
    { question: "Repeat passphrase: ", keys: "quiet lamp river song\r" },
  ],
  unlock: [{ question: "Passphrase of the vault: ", keys: "quiet lamp river song\r" }],
  put: [{ question: "Value of", keys: "s3cr3t\r" }],
  rm: [{ question: "[y/N]", keys: "y\r" }],
};

describe("the README", () => {
  it("has curl lines that work as printed, from init to shutdown, with --cacert and never -k", async function () {
    const [, script = ""] = /```bash\n(.*?)```/s.exec(readme) ?? [];
    expect(script)
      .to.contain("--cacert")
      .and.not.to.match(/\s(-k|--insecure)\b/);
    const curl = promisify(execFile)("curl", ["--version"]);
    if (
      !(await curl.then(
        () => true,
        () => false,
      ))
    )
      this.skip(); // there is no curl on this machine
    const server = await startProcess([], { STRONGROOM_SCRYPT_LOG_N: "17" });
    const here = script.replaceAll("13100", String(server.port));
    const environment = { PATH: process.env["PATH"], HOME: server.home, STRONGROOM_HOME: server.home };
    const { stdout, stderr } = await promisify(execFile)("bash", ["--norc", "-ec", here], { env: environment });
    expect(stderr).to.equal("");
    const answers = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const [init, put, get, list, lock, unlock, remove, status, shutdown] = answers;
    for (const answer of [init, put, lock, unlock, remove, shutdown]) expect(answer).to.include({ ok: true });
    expect(put).to.include({ path: "app/db/password", bytes: 6 });
    expect(get).to.include({ path: "app/db/password", value: "s3cr3t" });
    expect(list?.["entries"]).to.have.lengthOf(1);
    expect(status).to.include({ initialized: true, locked: false, secretCount: 0 });
    expect((await server.ended).code).to.equal(0);
  });

  it("has a start whose commands work as printed", async function () {
    if (!hasPython()) this.skip(); // Node cannot make a pseudo-terminal, and there is no Python that could
    const [, first, start = ""] = /^## Start\n.*?```sh\n(.*?)```.*?```sh\n(.*?)```/ms.exec(readme) ?? [];
    expect(first).to.equal("npm ci && npm start\n");
    const commands = [...start.matchAll(/^strongroom (.*?)(?: +#.*)?$/gm)].map(([, words = ""]) => words.split(" "));
    expect(commands.map(([name]) => name)).to.deep.equal(["init", "put", "get"]);
    const server = await startProcess();
    for (const words of commands) {
      const { code, shown } = await runOnTerminal(words, typed[words[0] ?? ""] ?? [], { STRONGROOM_HOME: server.home });
      expect(code, shown).to.equal(0);
      if (words[0] === "get") expect(shown).to.equal("s3cr3t\r\n");
    }
  });

  it("has a first session that goes as printed", async function () {
    if (!hasPython()) this.skip(); // Node cannot make a pseudo-terminal, and there is no Python that could
    const [, session = ""] = /```console\n(.*?)```/s.exec(readme) ?? [];
    const server = await startProcess();
    for (const step of session.split(/^\$ strongroom /m).slice(1)) {
      const end = step.indexOf("\n");
      const words = (step.slice(0, end).match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
      const { shown } = await runOnTerminal(words, typed[words[0] ?? ""] ?? [], { STRONGROOM_HOME: server.home });
      const asPrinted = shown.replaceAll("\r\n", "\n").replace(server.home, "/home/you/.local/share/strongroom");
      expect(asPrinted, words.join(" ")).to.equal(step.slice(end + 1));
    }
  });

  it("has the table of commands", async () => {
    const help = (await run(["--help"])).stdout;
    const commands = [...help.matchAll(/^ {2}([a-z]+)(?:\|([a-z]+))? {2,}(\S.*)$/gm)];
    expect(commands).to.have.lengthOf.above(20);
    for (const [, name, alias, summary] of commands) {
      const spelled = alias === undefined ? `\`${name}\`` : `\`${name}\`, \`${alias}\``;
      expect(tables).to.contain(`| ${spelled} | ${summary} |`);
    }
  });

  it("has the table of settings", () => {
    for (const { flag, variable, meaning, shownDefault } of Object.values(definitions)) {
      const spelled = flag === null ? " " : ` \`--${flag}\` `;
      expect(tables).to.contain(`|${spelled}| \`${variable}\` | ${meaning} | ${shownDefault} |`);
    }
    expect([...tables.matchAll(/\| `STRONGROOM_\w+` \|/g)]).to.have.lengthOf(Object.keys(definitions).length);
  });

  it("has the table of errors", () => {
    for (const [code, meaning] of Object.entries(meanings)) {
      expect(tables).to.contain(`| \`${code}\` | ${statusOf[code as ErrorCode]} | ${meaning} |`);
    }
  });

  it("has a row for every endpoint of the contract", () => {
    for (const { method, path } of operations) {
      expect(tables).to.contain(`| \`${method.toUpperCase()} ${path.replace("{path}", ":path")}\` |`);
    }
  });

  it("has a Node program that works as printed, and shows the value only where it says so", async () => {
    const server = await startProcess();
    await mustInit(server);
    const [, program = ""] = /```js\n(.*?)```/s.exec(readme) ?? [];
    const environment = { PATH: process.env["PATH"], STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url };
    const node = promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
      env: environment,
    });
    const lines = (await node).stdout.trimEnd().split("\n");
    expect(lines[0]).to.equal("Secret {");
    expect(lines.slice(-2)).to.deep.equal(["s3cr3t", "1"]);
    expect(lines.filter((line) => line.includes("s3cr3t"))).to.have.lengthOf(1);
  });

  it("has the table of what doctor finds", () => {
    for (const [code, meaning] of Object.entries(findingCodes))
      expect(tables).to.contain(`| \`${code}\` | ${meaning} |`);
  });

  it("has the table of exit codes", () => {
    for (const [name, code] of Object.entries(exitCodes)) {
      expect(tables).to.contain(`| ${code} | ${exitMeanings[name as keyof typeof exitMeanings]} |`);
    }
  });
});
