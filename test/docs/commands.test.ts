/** The commands and programs in the documents: they run as printed, and print what the documents show. */
import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { blocksIn, documentFiles } from "../../tools/docs/document-files.js";
import { hasCommands, withSessions } from "../../tools/docs/sessions.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment } from "../../tools/rig/process.js";
import { startTestServer } from "../../tools/rig/server.js";
import { mustInit } from "../../tools/rig/test-client.js";
import { hasPython } from "../support/pseudo-terminal.js";

const execute = promisify(execFile);

describe("commands in the documents", () => {
  before(async function () {
    const hasCurl = await execute("curl", ["--version"]).then(
      () => true,
      () => false,
    );
    needs(this, hasPython() && hasCurl, "Python and curl");
  });

  for (const file of documentFiles) {
    const text = readFileSync(file, "utf8");
    if (!hasCommands(text)) continue;
    it(`the commands of ${file} run as printed, and print what it shows (npm run docs)`, async () => {
      expect(await withSessions(file, text)).to.equal(text);
    });
  }

  it("the commands trust the server's certificate, and never every one", () => {
    const all = documentFiles.map((file) => readFileSync(file, "utf8")).join("\n");
    expect(all)
      .to.contain("curl -sS --cacert")
      .and.not.to.match(/curl [^\n]*(?:\s-k\b|--insecure)/);
  });

  it("README begins with a session, and an installation for this user alone that is no link into the clone", () => {
    const [session, start, tests] = blocksIn(readFileSync("README.md", "utf8"));
    expect(session?.code.match(/^\$ strongroom \w+/gm)?.slice(0, 3)).to.deep.equal(
      ["init", "put", "get"].map((name) => `$ strongroom ${name}`),
    );
    const install = 'npm i -g --prefix ~/.local "$(npm pack --silent)"';
    expect(start?.code).to.equal(`npm ci && ${install} && PATH=~/.local/bin:$PATH && strongroom up\n`);
    expect(tests?.code).to.equal("npm ci && npm test\n");
  });

  it("npm start serves without an installation, as CONTRIBUTING says", async () => {
    expect(readFileSync("CONTRIBUTING.md", "utf8")).to.contain("`npm ci && npm start`");
    const env = environment({ STRONGROOM_HOME: join(temporaryDirectory(), "home") });
    const npm = spawn("npm", ["--ignore-scripts", "start", "--", "--port", "0"], { env, detached: true });
    const ended = new Promise<void>((resolve) => npm.once("close", () => resolve()));
    later(async () => {
      process.kill(-(npm.pid ?? 0), "SIGTERM");
      await ended;
    });
    let shown = "";
    for await (const chunk of npm.stdout) {
      shown += String(chunk);
      if (shown.includes("https://localhost:")) break;
    }
    expect(shown).to.contain("https://localhost:");
  });

  it("CI runs README's commands that install and test", () => {
    expect(readFileSync(".ci/run", "utf8")).to.match(/\bnpm ci\b[\s\S]*\bnpm test\b[\s\S]*\.ci\/fresh-users\b/m);
  });
});

describe("Node programs in the documents", () => {
  for (const file of ["README.md", "docs/node-client.md"]) {
    it(`the Node program of ${file} runs as printed, and shows the value only where it says so`, async () => {
      const server = await startTestServer();
      await mustInit(server);
      const program = blocksIn(readFileSync(file, "utf8")).find(({ language }) => language === "js")?.code ?? "";
      const env = { PATH: process.env["PATH"], STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url };
      const { stdout } = await execute(process.execPath, ["--input-type=module", "--eval", program], { env });
      const lines = stdout.trimEnd().split("\n");
      expect(lines[0]).to.equal("Secret {");
      expect(lines.filter((line) => line.includes("s3cr3t"))).to.deep.equal(["s3cr3t"]);
    });
  }
});
