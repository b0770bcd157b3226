/** `strongroom token` and `strongroom trust`: the files that they name, and the effect of a rotation. */
import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { skipFor } from "../../tools/rig/needs.js";
import { environment, mainFile, node, startProcess } from "../../tools/rig/process.js";
import { shareLocalServer, startLocalServer } from "../../tools/rig/server.js";
import { mustInit } from "../../tools/rig/test-client.js";
import { whyNoStrace } from "../support/strace.js";
import { must, strongroom, testRows } from "./command-rows.js";

describe("strongroom token", () => {
  const server = shareLocalServer({}, mustInit);
  const here = () => ({ STRONGROOM_HOME: server().home });

  it("create prints only the token's value, and its scope on standard error", async () => {
    const flags = ["--path", "app/", "--path", "other", "--can", "get,put", "--ttl", "30d"];
    const { code, stdout, stderr } = await strongroom(here(), ["token", "create", "deploy", ...flags]);
    expect(code).to.equal(0);
    expect(stdout).to.match(/^src_[\w-]{49}\n$/);
    expect(stderr).to.contain("can get, put in app/ and of the secret other, ends ").and.to.contain("shown once");
    const used = { ...here(), STRONGROOM_TOKEN: stdout.trim() };
    expect(await must(used, ["token", "whoami"])).to.match(
      /^deploy: can get, put in app\/ and of the secret other, ends /,
    );
    expect((await strongroom(used, ["ls"])).code).to.equal(14);
    expect(await must(here(), ["token", "ls"])).to.match(
      /^deploy +can get, put in app\/ and of the secret other, ends .*, used /m,
    );
    expect(await must(here(), ["token", "revoke", "deploy"])).to.equal("the token deploy is revoked\n");
    const dead = await strongroom(used, ["token", "whoami"]);
    expect(dead.code).to.equal(5);
    expect(dead.stderr).to.contain("was revoked");
  });

  it("says of a token without an end that it never ends", async () => {
    const { stderr } = await strongroom(here(), ["token", "create", "forever", "--ttl", "0"]);
    expect(stderr).to.contain("can list, get everywhere, never ends");
    expect(await must(here(), ["token", "ls"])).to.contain("everywhere, never ends, never used\n");
    await must(here(), ["token", "revoke", "forever"]);
  });

  it("create and rotate write the text into a new file that only the user can read", async () => {
    const output = join(temporaryDirectory(), "ci.token");
    const said = await must(here(), ["token", "create", "ci", "--output", output]);
    const first = readFileSync(output, "utf8");
    expect(first).to.match(/^src_[\w-]{49}\n$/);
    expect(said).not.to.contain(first.trim());
    expect(statSync(output).mode & 0o777).to.equal(0o600);
    const rotate = ["token", "rotate", "ci", "--overlap", "1h", "--output", output];
    expect((await strongroom(here(), rotate)).code).to.equal(7);
    const { ok, name, output: file } = JSON.parse(await must(here(), [...rotate, "--force", "--json"]));
    expect({ ok, name, file }).to.deep.equal({ ok: true, name: "ci", file: output });
    expect(readFileSync(output, "utf8")).not.to.equal(first);
    await must({ ...here(), STRONGROOM_TOKEN: first.trim() }, ["ls"]);
    await must(here(), ["ls", "--token-file", output]);
  });

  it("warns of a token that ends within 7 days, on standard error", async () => {
    const { token } = JSON.parse(await must(here(), ["token", "create", "short", "--ttl", "6d", "--json"]));
    const used = { ...here(), STRONGROOM_TOKEN: token };
    const { stdout, stderr } = await strongroom(used, ["ls"]);
    expect(stdout).to.equal("");
    expect(stderr).to.match(/^warning: this token expires at .*strongroom token rotate NAME\n$/);
    expect((await strongroom(used, ["ls", "--quiet"])).stderr).to.equal("");
  });

  it("rotate replaces the root token of a running server", async () => {
    const own = await startLocalServer();
    const home = { STRONGROOM_HOME: own.home };
    const said = await must(home, ["token", "rotate", "--overlap", "1h"]);
    const token = readFileSync(own.tokenSource, "utf8").trim();
    expect(token).not.to.equal(own.token);
    expect(said).to.contain("new root token").and.not.to.contain(token);
    await must(home, ["token", "whoami"]);
    await must({ ...home, STRONGROOM_TOKEN: own.token }, ["token", "whoami"]);
  });

  testRows(here, {
    "no action": { args: ["token"], exit: 2 },
    "an unknown action": { args: ["token", "print"], exit: 2, err: /rotate, whoami, path/ },
    "create without a name": { args: ["token", "create"], exit: 2, err: /create needs the token's name/ },
    "ls with a name": { args: ["token", "ls", "ci"], exit: 2, err: /ls takes no name/ },
    "a flag of another action": { args: ["token", "ls", "--ttl", "30d"], exit: 2, err: /--ttl has no effect with ls/ },
    "an unknown scope": {
      args: ["token", "create", "ci", "--can", "get,all"],
      exit: 2,
      err: /--can must be one or more of/,
    },
    "an invalid path": {
      args: ["token", "create", "ci", "--path", "a//b"],
      exit: 2,
      err: /--path a\/\/b: the path has/,
    },
    "an unknown name": {
      args: ["token", "revoke", "unknown"],
      exit: 4,
      err: /no token named unknown: strongroom token ls {2}lists them$/m,
    },
    "a dry run of create": { args: ["token", "create", "ci", "--dry-run"], exit: 0, out: /would be created/ },
    "a dry run while a server runs": { args: ["token", "rotate", "--dry-run"], exit: 0, out: /nothing was done/ },
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
      .to.match(/^srt_[\w-]{49}$/)
      .and.not.to.equal(first.token);
    expect(said).to.contain(first.tokenSource).and.to.contain("strongroom serve").and.not.to.contain(token);
    expect(statSync(first.tokenSource).mode & 0o777).to.equal(0o600);
    await startProcess([], home);
    await must(home, ["token", "whoami"]);
    const old = await strongroom({ ...home, STRONGROOM_TOKEN: first.token }, ["token", "whoami"]);
    expect(old.code).to.equal(5);
  });
});

describe("strongroom token rotate, killed before the new file takes its name", () => {
  it("leaves the old token, and a harmless file that doctor --fix removes", async function () {
    skipFor(this, whyNoStrace());
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
  const server = shareLocalServer();
  const here = () => ({ STRONGROOM_HOME: server().home });

  it("--bundle writes the system's certificates and the server's, which it also prints variables for", async () => {
    const file = join(temporaryDirectory(), "roots.pem");
    const said = await must({ STRONGROOM_HOME: server().home }, ["trust", "--bundle", file]);
    expect(said).to.contain(`SSL_CERT_FILE=${file} `).and.contain(`REQUESTS_CA_BUNDLE=${file}`);
    const certificates =
      readFileSync(file, "latin1").match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    expect(certificates).to.have.lengthOf.above(20);
    const own = new X509Certificate(readFileSync(join(server().home, "tls/cert.pem")));
    const found = certificates.map((pem) => new X509Certificate(pem).fingerprint256);
    expect(found).to.include(own.fingerprint256);
  });

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
      err: /strongroom --home \/nowhere\/home up/,
    },
  });
});
