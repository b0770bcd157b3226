/** Files that commands write, remove and rely on, where another user could have put something else. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { writeNewFile } from "../../src/cli/kit/output/new-file.js";
import { Scratch } from "../../src/cli/kit/prompts/scratch.js";
import { allow, isAllowed } from "../../src/cli/run/project.js";
import { installService } from "../../src/cli/service/install.js";
import { serviceManager } from "../../src/cli/service/manager.js";
import { findWeakPlace } from "../../src/client/ownership.js";
import { openHome } from "../../src/files/home.js";
import { readLastProve } from "../../src/last-prove.js";
import { runDoctor } from "../../src/maintenance/doctor/inspect-home.js";
import { findHolder } from "../../src/storage/files/claim.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { run } from "../../tools/rig/process.js";
import { startTestServer } from "../../tools/rig/server.js";
import { stringIo } from "../../tools/rig/string-io.js";
import { mustInit } from "../../tools/rig/test-client.js";
import { needsOtherUser, otherUser } from "../support/needs.js";

function file(path: string, text: string, mode = 0o600): string {
  writeFileSync(path, text, { mode });
  chmodSync(path, mode);
  return path;
}

function failure(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

describe("where other users can write", () => {
  before(function () {
    needs(this, process.platform === "linux", "Linux");
  });

  it("an output file stays in its directory, when that is replaced while the file is written", async () => {
    const [place, elsewhere] = [temporaryDirectory(), temporaryDirectory()];
    mkdirSync(join(place, "out"));
    file(join(elsewhere, "secret"), "kept");
    async function* content() {
      yield "a secret ";
      renameSync(join(place, "out"), join(place, "moved"));
      symlinkSync(elsewhere, join(place, "out"));
      yield "value";
    }
    await writeNewFile(content(), join(place, "out", "secret"), true);
    expect(readFileSync(join(place, "moved", "secret"), "utf8")).to.equal("a secret value");
    expect(readFileSync(join(elsewhere, "secret"), "utf8")).to.equal("kept");
    expect(readdirSync(elsewhere)).to.deep.equal(["secret"]);
  });

  it("an output file is not written behind a link that another user could have made", async () => {
    const [place, elsewhere] = [temporaryDirectory(), temporaryDirectory()];
    chmodSync(place, 0o777);
    mkdirSync(join(place, "real"));
    symlinkSync(elsewhere, join(place, "out"));
    expect(await writeNewFile(["x"], join(place, "out", "file"), false).catch(failure)).to.match(/cannot be written/);
    expect(readdirSync(elsewhere)).to.deep.equal([]);
    await writeNewFile(["x"], join(place, "real", "file"), false);
  });

  it("trust --bundle refuses a link, and does not write to what it leads to", async () => {
    const server = await startTestServer();
    const place = temporaryDirectory();
    const victim = file(join(place, "victim"), "kept");
    symlinkSync(victim, join(place, "roots.pem"));
    const { code } = await run(["trust", "--bundle", join(place, "roots.pem")], { STRONGROOM_HOME: server.home });
    expect([code, readFileSync(victim, "utf8")]).to.deep.equal([2, "kept"]);
    expect(readlinkSync(join(place, "roots.pem"))).to.equal(victim);
  });

  it("import --rewrite keeps no setuid bit, and refuses a directory in which others can swap its file", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const place = temporaryDirectory();
    const env = file(join(place, ".env"), "A=a value of some length\n", 0o4755);
    const rewrite = () => run(["import", env, "--rewrite", "--replace"], { STRONGROOM_HOME: server.home });
    expect((await rewrite()).code).to.equal(0);
    expect(readFileSync(env, "utf8")).to.match(/^A=strongroom:/);
    expect(statSync(env).mode & 0o7777).to.equal(0o755);
    file(env, "A=another value of some length\n");
    chmodSync(place, 0o777);
    const { code, stderr } = await rewrite();
    expect([code, stderr]).to.match(/^2,.*other users can replace .*\.env/s);
    expect(readFileSync(env, "utf8")).to.equal("A=another value of some length\n");
  });

  it("doctor --fix first takes others' rights, and only then removes by name", async () => {
    const { home, stop } = await startTestServer();
    await stop();
    chmodSync(home, 0o777);
    chmodSync(join(home, "vault"), 0o777);
    file(join(home, ".tmp-0123456789abcdef"), "");
    const { fixed, findings } = await runDoctor(home, { fix: true, passphrase: null, onProgress: () => {} });
    expect(fixed.map(({ code }) => code)).to.deep.equal(["wrong-mode", "wrong-mode", "stray-temp"]);
    expect(findings).to.deep.equal([]);
  });

  it("doctor --fix makes no private file readable that has another name in the place of the certificate", async () => {
    const { home, stop } = await startTestServer();
    await stop();
    const [cert, victim] = [join(home, "tls", "cert.pem"), file(join(home, "..", "private"), "private", 0o620)];
    renameSync(cert, `${cert}.moved`);
    linkSync(victim, cert);
    await runDoctor(home, { fix: true, passphrase: null, onProgress: () => {} });
    expect(statSync(victim).mode & 0o777).to.equal(0o620);
  });

  it("doctor --fix and a start refuse a home or a socket that can be replaced", async () => {
    const parent = temporaryDirectory();
    chmodSync(parent, 0o777);
    mkdirSync(join(parent, "home"), { mode: 0o700 });
    const options = { fix: true, passphrase: null, onProgress: () => {} };
    const said = await runDoctor(join(parent, "home"), options).catch(failure);
    expect(said).to.match(/other users can replace .*home, because other users can write to/);
    const { code, stderr } = await run(["serve", "--home", join(parent, "a", "b"), "--port", "0"]);
    expect([code, stderr]).to.match(/^1,.*other users can replace/s);
    mkdirSync(join(parent, "own"), { mode: 0o700 });
    const socket = await run([
      "serve",
      "--home",
      temporaryDirectory(),
      "--port",
      "0",
      "--socket",
      join(parent, "own", "s"),
    ]);
    expect([socket.code, socket.stderr]).to.match(/^1,.*other users can replace/s);
    expect(readdirSync(parent)).to.deep.equal(["home", "own"]);
  });

  it("a mark of allow counts only where no other user could have made it", async () => {
    const state = temporaryDirectory();
    const io = stringIo({ env: { XDG_STATE_HOME: state } });
    const files = [{ file: "/project", bytes: Buffer.from("use = []") }];
    await allow(io, files);
    expect(await isAllowed(io, files)).to.equal(true);
    const directory = join(state, "strongroom", "allowed");
    for (const [path, loose, right] of [
      [directory, 0o777, 0o700],
      [state, 0o777, 0o700],
      [join(directory, readdirSync(directory)[0] ?? ""), 0o666, 0o600],
    ] as const) {
      chmodSync(path, loose);
      expect(await isAllowed(io, files), path).to.equal(false);
      if (path !== state && loose === 0o777)
        expect(await allow(io, files).catch(failure)).to.match(/other users can replace/);
      chmodSync(path, right);
    }
    expect(await isAllowed(io, files)).to.equal(true);
  });

  it("a service is not installed where other users can write", async () => {
    const place = temporaryDirectory();
    chmodSync(place, 0o777);
    const io = stringIo({ env: { XDG_CONFIG_HOME: place } });
    const said = await installService(io, serviceManager(io), { program: ["true"], environment: {} }).catch(failure);
    expect(said).to.match(/other users can replace .*strongroom\.service/);
    expect(readdirSync(place)).to.deep.equal([]);
  });

  it("a pipe or a link in place of a file that is read delays nothing and is not followed", async () => {
    const home = temporaryDirectory();
    mkdirSync(join(home, "vault"));
    const result = { at: "2026-03-01T12:00:00.000Z", verdict: "holds", checks: 1, failed: 0 };
    symlinkSync(file(join(home, "other"), JSON.stringify(result)), join(home, "last-prove.json"));
    expect(await readLastProve(home)).to.equal(null);
    for (const path of [join(home, "piped", "last-prove.json"), join(home, "vault", "server.pid")]) {
      mkdirSync(dirname(path), { recursive: true });
      spawnSync("mkfifo", [path]);
    }
    expect(await readLastProve(join(home, "piped"))).to.equal(null);
    expect(await findHolder(join(home, "vault"))).to.equal(null);
  });

  it("a link is judged where it is, and each directory to which it leads", async () => {
    const [place, open] = [temporaryDirectory(), temporaryDirectory()];
    chmodSync(open, 0o777);
    mkdirSync(join(open, "target"));
    mkdirSync(join(place, "sub"));
    symlinkSync(`sub/../../${open.split("/").at(-1)}/target`, join(place, "link"));
    expect(await findWeakPlace(join(place, "link"))).to.include({ path: open, why: "writable" });
    chmodSync(open, 0o1777);
    expect(await findWeakPlace(join(place, "link"))).to.equal(null);
    symlinkSync("loop", join(place, "loop"));
    expect(await findWeakPlace(join(place, "loop", "x"))).to.not.equal(null);
  });
});

describe("directories of another user", () => {
  before(function () {
    needsOtherUser(this);
  });

  function directoryOfAnother(): string {
    const place = temporaryDirectory();
    chownSync(place, otherUser, otherUser);
    chmodSync(place, 0o755);
    return place;
  }

  it("root makes no directory of plaintext for an editor in another user's directory", () => {
    const scratch = Scratch.make(
      stringIo({ env: { XDG_RUNTIME_DIR: directoryOfAnother() } }),
      Buffer.from("a value"),
      false,
    );
    later(() => scratch.remove());
    expect(scratch.file).to.match(/^\/dev\/shm\//);
  });

  it("root makes no home, installs no service and allows no project in another user's directory", async () => {
    const place = directoryOfAnother();
    const io = stringIo({ env: { XDG_CONFIG_HOME: place, XDG_STATE_HOME: place } });
    const said = await openHome(join(place, "a", "home")).catch(failure); // as serve, restore and migrate do
    expect(said).to.match(/other users can replace .*belongs to another user/);
    const plan = { program: ["true"], environment: {} };
    expect(await installService(io, serviceManager(io), plan).catch(failure)).to.contain("belongs to another user");
    const project = [{ file: "/project", bytes: Buffer.from("") }];
    expect(await allow(io, project).catch(failure)).to.contain("belongs to another user");
    expect(await isAllowed(io, project)).to.equal(false);
    expect(readdirSync(place)).to.deep.equal([]);
  });

  it("root rewrites no file in another user's directory, and its output file is only root's", async () => {
    const place = directoryOfAnother();
    const server = await startTestServer();
    await mustInit(server);
    const env = file(join(place, ".env"), "A=a value of some length\n", 0o644);
    const { code, stderr } = await run(["import", env, "--rewrite"], { STRONGROOM_HOME: server.home });
    expect([code, stderr]).to.match(/^2,.*belongs to another user/s);
    await writeNewFile(["a secret"], join(place, "secret"), false);
    const { uid, mode } = statSync(join(place, "secret"));
    expect([uid, mode & 0o7777]).to.deep.equal([0, 0o600]);
  });
});
