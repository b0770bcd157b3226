/** `strongroom token` and `strongroom trust`: the files that they name, and the effect of a rotation. */
import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../support/clean-up.js";
import { environment, mainFile, node, startProcess } from "../support/process.js";
import { shareTestServer } from "../support/server.js";
import { whyNoStrace } from "../support/strace.js";
import { mustInit } from "../support/test-client.js";
import { must, strongroom, testRows } from "./command-rows.js";

describe("strongroom token", () => {
  const server = shareTestServer();
  const here = () => ({ STRONGROOM_HOME: server().home });

  testRows(here, {
    "no action": { args: ["token"], exit: 2 },
    "an unknown action": { args: ["token", "print"], exit: 2, err: /path, rotate/ },
    "while a server runs": { args: ["token", "rotate"], exit: 7, err: /stop it with {2}strongroom shutdown/ },
    "a dry run while a server runs": { args: ["token", "rotate", "--dry-run"], exit: 7 },
    "a token from the environment": {
      args: ["token", "path"],
      more: { STRONGROOM_TOKEN: "t" },
      exit: 2,
      err: /^(?!.* t$)/,
    },
    "a dry run of path": { args: ["token", "path", "--dry-run"], exit: 2, err: /--dry-run/ },
    "another file": { args: ["token", "path", "--token-file", "/a/b"], exit: 0, out: "/a/b\n" },
    "another file from the environment": {
      args: ["token", "path"],
      more: { STRONGROOM_TOKEN_FILE: "/a/b" },
      exit: 0,
      out: "/a/b\n",
    },
  });

  testRows(() => ({ STRONGROOM_HOME: "/nowhere" }), {
    "over a directory": {
      args: ["token", "rotate", "--token-file", "/"],
      exit: 1,
      err: /cannot be read \(EISDIR\): it is a directory/,
    },
    "in a missing home": { args: ["token", "rotate"], exit: 1, err: /cannot be read \(ENOENT\): no such file/ },
    "a dry run in a missing home": { args: ["token", "rotate", "--dry-run"], exit: 1, err: /ENOENT/ },
  });

  it("rotate refuses to replace a file that holds no token", async () => {
    const home = { STRONGROOM_HOME: temporaryDirectory() };
    const file = join(temporaryDirectory(), "passphrase");
    const rotate = ["token", "rotate", "--token-file", file];
    await must(home, rotate);
    await must(home, rotate);
    writeFileSync(file, "quiet lamp river song\n");
    for (const args of [rotate, [...rotate, "--dry-run"]]) {
      const { code, stderr } = await strongroom(home, args);
      expect(code).to.equal(7);
      expect(stderr).to.contain(`${file} does not hold a token: remove it first`);
    }
    expect(readFileSync(file, "utf8")).to.equal("quiet lamp river song\n");
  });

  it("path prints the file's name and nothing of its content", async () => {
    expect(await must(here(), ["token", "path"])).to.equal(`${server().tokenSource}\n`);
    expect(JSON.parse(await must(here(), ["token", "path", "--json"]))).to.deep.equal({ path: server().tokenSource });
  });

  it("rotate writes a new token, which the next server requires", async () => {
    const first = await startProcess();
    await must({ STRONGROOM_HOME: first.home }, ["shutdown"]);
    const home = { STRONGROOM_HOME: first.home };
    expect(await must(home, ["token", "rotate", "--dry-run"])).to.contain("would be");
    expect(readFileSync(first.tokenSource, "utf8").trim()).to.equal(first.token);
    const said = await must(home, ["token", "rotate"]);
    const token = readFileSync(first.tokenSource, "utf8").trim();
    expect(token)
      .to.match(/^srt_[\w-]{43}$/)
      .and.not.to.equal(first.token);
    expect(said).to.contain(first.tokenSource).and.to.contain("strongroom serve").and.not.to.contain(token);
    expect(statSync(first.tokenSource).mode & 0o777).to.equal(0o600);
    await startProcess([], home);
    await must(home, ["lock"]);
    const old = await strongroom({ ...home, STRONGROOM_TOKEN: first.token }, ["lock"]);
    expect(old.code).to.equal(5);
  });
});

describe("strongroom token rotate, killed before the new file takes its name", () => {
  it("leaves the old token, and a harmless file that doctor --fix removes", async function () {
    if (whyNoStrace() !== null) this.skip();
    const first = await startProcess();
    await mustInit(first);
    await first.stop();
    const home = { STRONGROOM_HOME: first.home };
    const kill = ["-f", "-o", "/dev/null", "-e", "trace=/^rename", "-e", "inject=/^rename:signal=KILL"];
    spawnSync("strace", [...kill, node, mainFile, "token", "rotate"], { env: environment(home) });
    expect(readFileSync(first.tokenSource, "utf8").trim()).to.equal(first.token);
    const found = await strongroom(home, ["doctor"]);
    expect(found.code).to.equal(12);
    expect(found.stdout).to.contain("harmless").and.to.contain("--fix");
    await must(home, ["doctor", "--fix"]);
    await must(home, ["doctor"]);
  });
});

describe("strongroom trust", () => {
  const server = shareTestServer();
  const here = () => ({ STRONGROOM_HOME: server().home });

  it("prints the certificate's path, its fingerprint, and how each system can trust it", async () => {
    const { fingerprint256 } = new X509Certificate(server().certificate);
    const said = await must(here(), ["trust"]);
    expect(said).to.contain(server().certificateFile).and.to.contain(fingerprint256);
    for (const system of ["curl", "Debian", "macOS", "Windows", "Firefox"]) expect(said).to.contain(`  ${system}`);
    const { path, sha256, names, validUntil } = JSON.parse(await must(here(), ["trust", "--json"]));
    expect({ path, sha256 }).to.deep.equal({ path: server().certificateFile, sha256: fingerprint256 });
    expect(names).to.include.members(["localhost", "127.0.0.1"]);
    expect(Date.parse(validUntil)).to.be.above(Date.now());
  });

  testRows(here, {
    "an invalid certificate": { args: ["trust", "--cacert", "/dev/null"], exit: 11, err: /no certificate/ },
    "an invalid address": { args: ["trust"], more: { STRONGROOM_ADDRESS: "bogus" }, exit: 2, err: /https:/ },
    "a home without a certificate": {
      args: ["trust", "--home", "/nowhere/home"],
      exit: 10,
      err: /strongroom serve/,
    },
  });
});
