/** Promises of the documents to others: a second user of the machine with a client token, and programs in Python and Go. */
import { spawn, spawnSync } from "node:child_process";
import { chownSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect } from "chai";
import { blocksIn } from "../../tools/docs/document-files.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { collect, type Ended, mainFile, node } from "../../tools/rig/process.js";
import { shareTestServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustInit, mustPut } from "../../tools/rig/test-client.js";
import { needsOtherUser, otherUser } from "../support/needs.js";

const page = readFileSync("docs/python-and-go.md", "utf8");
const value = 'p"ä\n€';
const path = "team/db with space/ü%#";
const isLong = process.env["STRONGROOM_CLIENTS"] === "1";

function has(command: string, ...args: readonly string[]): boolean {
  return spawnSync(command, args).status === 0;
}

describe("others than the owner's command line", () => {
  const server = shareTestServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, path, value);
    await mustPut(started, "private/key", "s3cr3t");
  });

  /** The settings of docs/team.md, with files in this directory. */
  async function settings(directory: string): Promise<Record<string, string>> {
    const token = await mustCreateToken(server(), { name: `t-${Date.now()}`, paths: ["team/"], can: ["get", "list"] });
    const [tokenFile, certificate] = [join(directory, "token"), join(directory, "cert.pem")];
    writeFileSync(tokenFile, `${token.token}\n`, { mode: 0o600 });
    copyFileSync(join(server().home, "tls/cert.pem"), certificate);
    return {
      STRONGROOM_ADDRESS: `https://localhost:${server().port}`,
      STRONGROOM_TLS_CERT: certificate,
      STRONGROOM_TOKEN_FILE: tokenFile,
    };
  }

  it("a second user of the machine uses the vault with a token, and nothing beyond it", async function () {
    needsOtherUser(this);
    const directory = mkdtempSync(join(tmpdir(), "second-user-"));
    later(() => rmSync(directory, { recursive: true }));
    const more = await settings(directory);
    for (const name of ["", "token", "cert.pem"]) chownSync(join(directory, name), otherUser, otherUser);
    const asOther = (...args: readonly string[]): Promise<Ended> => {
      const env = { PATH: process.env["PATH"] ?? "", HOME: directory, TMPDIR: directory, ...more };
      const child = spawn(node, [resolve(mainFile), ...args], {
        uid: otherUser,
        gid: otherUser,
        env,
        cwd: "/",
        stdio: ["ignore", "pipe", "pipe"],
      });
      return collect(child).ended;
    };
    expect(await asOther("get", path), "get").to.deep.equal({ code: 0, stdout: value, stderr: "" });
    expect((await asOther("ls", "team/")).stdout).to.equal(`${path}\n`);
    expect((await asOther("get", "private/key")).code).to.equal(14);
    expect((await asOther("put", "team/new", "--non-interactive")).code).to.not.equal(0);
    expect((await asOther("token", "whoami")).stdout).to.contain("team/");
    expect((await asOther("get", path, "--token-file", join(server().home, "token"))).code).to.not.equal(0);
  });

  const programs: readonly (readonly [string, string, readonly string[], boolean])[] = [
    ["Python's standard library", "secret.py", ["python3"], has("python3", "--version")],
    ["Python with requests", "secret_requests.py", ["python3"], has("python3", "-c", "import requests")],
    ["Go", "secret.go", ["go", "run"], isLong && has("go", "version")], // compiles its library into an empty cache
  ];
  for (const [what, file, command, isThere] of programs) {
    it(`${what} gets a secret as docs/python-and-go.md shows, and the text of a refusal`, async function () {
      needs(this, isThere, what);
      const directory = temporaryDirectory();
      writeFileSync(join(directory, file), blocksIn(page).find((block) => block.file === file)?.code ?? "");
      const proxies = { HTTPS_PROXY: "http://127.0.0.1:9", https_proxy: "http://127.0.0.1:9" };
      const home = { XDG_CACHE_HOME: directory, XDG_CONFIG_HOME: directory, PYTHONDONTWRITEBYTECODE: "1" };
      const env = { ...process.env, ...home, ...(await settings(directory)), ...proxies };
      const [program = "", ...args] = command;
      const run = (wanted: string) => collect(spawn(program, [...args, file, wanted], { cwd: directory, env })).ended;
      const found = await run(path);
      expect(found.stdout, found.stderr).to.equal(value);
      const refused = await run("team/missing");
      expect(refused.code).to.equal(1);
      expect(refused.stderr).to.contain("no secret at");
    });
  }
});
