/** `strongroom scan`: values of the vault in files, staged changes and git's history. */
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { temporaryDirectory } from "../../../tools/rig/clean-up.js";
import { mainFile, node } from "../../../tools/rig/process.js";
import { shareLocalServer } from "../../../tools/rig/server.js";
import { mustInit, mustPut } from "../../../tools/rig/test-client.js";
import { mustDo, mustRefuseWith, strongroom } from "../../cli/run-command.js";
import type { Finished } from "../../support/command-here.js";

const value = () => randomBytes(20).toString("base64url");
const [password, token, other] = [value(), value(), value()];
const certificate = randomBytes(300);
const line = randomBytes(48).toString("base64");

const identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgSign=false"];

function repository(): { readonly directory: string; readonly git: (...args: readonly string[]) => string } {
  const directory = temporaryDirectory();
  const git = (...args: readonly string[]) =>
    execFileSync("git", [...identity, ...args], {
      cwd: directory,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  git("init", "-q");
  return { directory, git };
}

describe("strongroom scan", () => {
  const server = shareLocalServer({}, async (started) => {
    await mustInit(started);
    await mustPut(started, "app/password", password);
    await mustPut(started, "app/token", { value: `${token}\n` });
    await mustPut(started, "app/pem", { value: `-----BEGIN KEY-----\n${line}\n-----END KEY-----\n` });
    await mustPut(started, "app/cert", { value: certificate.toString("base64"), encoding: "base64" });
    await mustPut(started, "app/short", "short");
    await mustPut(started, "app/common", "password1");
    await mustPut(started, "app/username", "the-administrator");
  });
  const scan = (cwd: string, ...args: readonly string[]) => strongroom(server(), ["scan", ...args], { cwd });
  const mustFind = ({ code, stdout, stderr }: Finished, ...lines: readonly string[]) => {
    expect(stderr).to.equal("");
    expect(stdout.split("\n").slice(0, -2)).to.deep.equal(lines);
    expect(code).to.equal(12);
    for (const each of [password, token, line]) expect(stdout).not.to.contain(each);
  };

  it("starts no program that a repository's settings name", async () => {
    const { directory, git } = repository();
    const ran = join(temporaryDirectory(), "ran");
    const program = join(temporaryDirectory(), "program");
    writeFileSync(program, `#!/bin/sh\necho "$0 $*" >> '${ran}'\nexit 1\n`, { mode: 0o755 });
    writeFileSync(join(directory, ".gitattributes"), "* diff=own filter=own\n");
    writeFileSync(join(directory, "lost"), "a version that is not here\n");
    writeFileSync(join(directory, "a"), `x ${password}\n`);
    git("add", ".");
    git("commit", "-qm", "one");
    const commit = git("cat-file", "commit", "HEAD").replace(
      /\n\n/,
      "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----\n\n",
    );
    const file = join(temporaryDirectory(), "commit");
    writeFileSync(file, commit);
    git("update-ref", "HEAD", git("hash-object", "-t", "commit", "-w", file).trim());
    const lost = git("rev-parse", "HEAD:lost").trim();
    const hook = join(directory, ".git", "hooks", "post-index-change");
    mkdirSync(join(directory, ".git", "hooks"), { recursive: true });
    writeFileSync(hook, `#!/bin/sh\nexec '${program}' hook\n`, { mode: 0o755 });
    for (const [name, setting] of [
      ["core.repositoryFormatVersion", "1"],
      ["extensions.partialClone", "origin"],
      ["remote.origin.promisor", "true"],
      ["remote.origin.url", "ssh://host.invalid/repository"],
      ["protocol.ssh.allow", "always"],
      ...["core.sshCommand", "core.fsmonitor", "core.pager", "gpg.program", "diff.external", "credential.helper"].map(
        (each) => [each, program],
      ),
      ...["diff.own.textconv", "diff.own.command", "filter.own.clean", "filter.own.smudge"].map((each) => [
        each,
        program,
      ]),
      ["log.showSignature", "true"],
    ])
      git("config", name ?? "", setting ?? "");
    rmSync(ran, { force: true }); // what our own git has started
    rmSync(join(directory, ".git", "objects", lost.slice(0, 2), lost.slice(2)));
    writeFileSync(join(directory, "a"), `y ${password}\n`);
    for (const flags of [[], ["--staged"], ["--ignored"]]) {
      const { code, stdout, stderr } = await scan(directory, ...flags);
      expect(existsSync(ran) ? readFileSync(ran, "utf8") : "", `scan ${flags.join(" ")}`).to.equal("");
      expect(stderr).not.to.contain(password);
      if (flags[0] === "--staged") continue;
      expect(code, stderr).to.equal(12);
      expect(stdout).to.contain("app/password");
      expect(stderr).to.contain(`object ${lost}: git does not have it here: fetch it first`);
    }
  });

  it("names file, line and path of each value, in any form, and exits with 12", async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, "deep"));
    writeFileSync(join(directory, "deep", "config.yml"), `user: x\npassword: "${password}"\nagain: ${password}\n`);
    writeFileSync(join(directory, "k8s.yml"), `token: ${Buffer.from(token).toString("base64")}\n`);
    writeFileSync(join(directory, "indented"), `key: |\n  -----BEGIN KEY-----\n  ${line}\n`);
    writeFileSync(join(directory, "cert"), Buffer.concat([Buffer.from([0, 1]), certificate]));
    const { code, stdout, stderr } = await scan(directory);
    expect({ code, stderr }).to.deep.equal({ code: 12, stderr: "" });
    expect(stdout.split("\n").sort().slice(1)).to.deep.equal(
      [
        "cert: app/cert",
        "deep/config.yml:2: app/password",
        "deep/config.yml:3: app/password",
        "indented:3: app/pem",
        "k8s.yml:1: app/token",
        "4 files searched for 4 secrets: 5 values found: replace each of them; 3 short or common values not searched for",
      ].sort(),
    );
    expect(JSON.parse((await scan(directory, "--json")).stdout)).to.deep.include({ ok: false, files: 4, searched: 4 });
  });

  it("finds nothing where there is nothing, and common values only with --all", async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "a"), `password1 the-administrator short ${other} ${password.slice(0, -1)}\n`);
    expect(mustDo(await scan(directory)).stdout).to.match(/^1 file searched for 4 secrets: no values found;/);
    mustFind(await scan(directory, "--all"), "a:1: app/common", "a:1: app/username");
    mustRefuseWith(await scan(directory, "missing"), 2, "missing");
  });

  it("finds what git's history holds, with its commit, and nothing that git ignores", async () => {
    const { directory, git } = repository();
    writeFileSync(join(directory, "config"), `a\n${password}\n`);
    writeFileSync(join(directory, ".gitignore"), ".env\n");
    git("add", ".");
    git("commit", "-q", "-m", "add");
    const commit = git("rev-parse", "--short", "HEAD").trim();
    writeFileSync(join(directory, "config"), "clean\n");
    git("commit", "-q", "-a", "-m", "clean");
    writeFileSync(join(directory, ".env"), `TOKEN=${token}\n`);
    mustFind(await scan(directory), `config:2: app/password  (commit ${commit})`);
    mustDo(await scan(directory, "--no-history"));
    mustFind(await scan(directory, "--no-history", "--ignored"), ".env:1: app/token");
    writeFileSync(join(directory, "untracked name\n"), token);
    mustFind(await scan(directory, "--no-history"), "untracked name\\u{a}:1: app/token");
  });

  it("searches what is staged, as a hook that refuses the commit", async () => {
    const { directory, git } = repository();
    writeFileSync(join(directory, "config"), `${password}\n`);
    mustDo(await scan(directory, "--staged"));
    git("add", ".");
    writeFileSync(join(directory, "config"), "no longer there, but staged\n");
    mustFind(await scan(directory, "--staged"), "config:1: app/password");
    const hook = join(directory, ".git", "hooks", "pre-commit");
    mkdirSync(join(directory, ".git", "hooks"), { recursive: true });
    writeFileSync(hook, `#!/bin/sh\nexec "${node}" "${mainFile}" scan --staged --home "${server().home}"\n`);
    chmodSync(hook, 0o755);
    const commit = () => gitCommit(directory);
    expect(await commit()).to.equal(1);
    rmSync(join(directory, "config"));
    git("add", "-A");
    writeFileSync(join(directory, "clean"), "clean\n");
    git("add", ".");
    expect(await commit()).to.equal(0);
    mustRefuseWith(await scan(temporaryDirectory(), "--staged"), 2, "is not in a git repository");
  });
});

/** Commits without waiting in this thread, where the server runs. Returns the exit code. */
function gitCommit(cwd: string): Promise<number | null> {
  const child = spawn("git", [...identity, "commit", "-q", "-m", "change"], { cwd, stdio: "ignore" });
  return new Promise((resolve) => child.on("close", resolve));
}
