/** The rules for homes, as each of those who read one applies them: the client, the server, and `strongroom prove`. */
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  lchownSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { StrongroomClient } from "strongroom/client";
import { Home } from "../../prove/home.js";
import { leaveLast } from "../../prove/last.js";
import { prove as proveServer } from "../../prove/prove.js";
import type { Report } from "../../prove/report.js";
import { openHome } from "../../src/files/home.js";
import { later, shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { collect, mainFile, node, startProcess } from "../../tools/rig/process.js";
import { mustInit } from "../../tools/rig/test-client.js";
import { needsOtherUser, otherUser } from "../support/needs.js";
import { needsForeignMemory, passphraseFile, prove } from "./run-prove.js";

/** Returns the finding of each program about a home; null for none. */
const judges = {
  async "the client"(home: string) {
    const client = new StrongroomClient({ home });
    later(() => client.close());
    return client.lock().then(
      () => null,
      (error: { code: string; message: string }) => `${error.code}: ${error.message}`,
    );
  },
  async "the server"(home: string) {
    return openHome(home).then(
      () => null,
      (error: Error) => error.message,
    );
  },
  async prove(home: string) {
    const { verdict, reason, checks } = await proveServer({
      ...{ home, pid: null, dump: null, state: null, header: null, query: null, passphrase: null },
      ...{
        lock: false,
        canary: false,
        challenge: null,
        program: "/nonexistent",
        environment: {},
        onProgress: () => {},
      },
    });
    expect(verdict).to.not.equal("holds");
    return checks.some(({ what }) => what.startsWith("TCP ports")) ? null : reason;
  },
};

/** Changes a home, or the way to it; returns what changes it back, and the home's path where that is another one. */
type Change = (home: string) => { readonly undo: () => void; readonly path?: string };

function mode(name: string, loose: number, right: number): Change {
  return (home) => {
    chmodSync(join(home, name), loose);
    return { undo: () => chmodSync(join(home, name), right) };
  };
}

function replaced(name: string, make: (path: string, moved: string) => void): Change {
  return (home) => {
    const path = join(home, name);
    renameSync(path, `${path}.moved`);
    make(path, `${path}.moved`);
    return {
      undo: () => {
        rmSync(path, { recursive: true });
        renameSync(`${path}.moved`, path);
      },
    };
  };
}

function foreign(name: string): Change {
  return (home) => {
    lchownSync(join(home, name), otherUser, otherUser);
    return { undo: () => lchownSync(join(home, name), 0, 0) };
  };
}

/** A link in a directory for all, as /tmp, that belongs to another user. */
function linkOfAnother(home: string) {
  const place = temporaryDirectory();
  chmodSync(place, 0o1777);
  symlinkSync(home, join(place, "link"));
  lchownSync(join(place, "link"), otherUser, otherUser);
  return { path: join(place, "link"), undo: () => {} };
}

function pipeInPlace(path: string): void {
  spawnSync("mkfifo", ["-m", "600", path]);
}

type Row = readonly [what: string, change: Change, needsRoot: boolean, but: readonly (keyof typeof judges)[]];

/** `but`: who has no reason to look at that. */
const rows: readonly Row[] = [
  ["that others may read", mode("", 0o755, 0o700), false, []],
  ["that a group can write", mode("", 0o770, 0o700), false, []],
  ["that others can write", mode("", 0o777, 0o700), false, []],
  ["with a vault that a group may read", mode("vault", 0o750, 0o700), false, []],
  ["with a token that others may read", mode("token", 0o644, 0o600), false, []],
  ["with a certificate that others can write", mode("tls/cert.pem", 0o666, 0o644), false, ["the client", "prove"]], // over the socket
  ["with a pid file that others can write", mode("vault/server.pid", 0o622, 0o600), false, ["the server"]],
  ["in a directory that others can write", mode("..", 0o777, 0o700), false, []],
  ["in a directory of another user", foreign(".."), true, []],
  ["in a directory that another group can write", groupOfAnother, true, []],
  ["behind a link of another user", linkOfAnother, true, []],
  ["of another user with this user's files in it", foreign(""), true, []],
  ["with a token of another user", foreign("token"), true, []],
  ["with a vault of another user", foreign("vault"), true, []],
  ["with a link in the place of the token", replaced("token", (path, to) => symlinkSync(to, path)), false, []],
  ["with a link in the place of tls", replaced("tls", (path, to) => symlinkSync(to, path)), false, []],
  ["with a pipe in the place of the token", replaced("token", pipeInPlace), false, []],
  ["with a pipe as its pid file", replaced("vault/server.pid", pipeInPlace), false, ["the server"]],
  ["with a hard link to another user's file as its token", replaced("token", hardLinkToAnothers), true, []],
];

function groupOfAnother(home: string) {
  const parent = join(home, "..");
  chownSync(parent, 0, otherUser);
  chmodSync(parent, 0o770);
  const undo = () => {
    chownSync(parent, 0, 0);
    chmodSync(parent, 0o700);
  };
  return { undo };
}

function hardLinkToAnothers(path: string): void {
  const file = `${path}.another`;
  writeFileSync(file, "x", { mode: 0o600 });
  chownSync(file, otherUser, otherUser);
  linkSync(file, path);
  rmSync(file);
}

describe("homes in the hands of other users", function () {
  this.timeout(0);
  before(needsForeignMemory);
  const server = shared(async () => {
    const started = await startProcess([], { STRONGROOM_HOME: join(temporaryDirectory(), "home") });
    await mustInit(started);
    return started;
  });

  for (const [what, change, needsRoot, but] of rows) {
    for (const judge of Object.keys(judges) as (keyof typeof judges)[]) {
      if (but.includes(judge)) continue;
      it(`a home ${what} is refused by ${judge}`, async function () {
        if (needsRoot) needsOtherUser(this);
        const { undo, path } = change(server().home);
        const said = await judges[judge](path ?? server().home).finally(undo);
        expect(said).to.match(/belongs to another|other users can (?:access|replace)|is a link|is not (?:a|what)/);
      });
    }
  }

  it("a home that others can write sends no token and no passphrase of prove to another user's socket", async function () {
    needsOtherUser(this);
    const home = join(temporaryDirectory(), "home");
    chmodSync(join(home, ".."), 0o755);
    for (const directory of [home, join(home, "vault")]) mkdirSync(directory, { mode: 0o777 });
    for (const directory of [home, join(home, "vault")]) chmodSync(directory, 0o777);
    writeFileSync(join(home, "token"), "srt_a-token-that-must-not-leave-this-home-000000", { mode: 0o600 });
    const received = join(home, "received");
    const trap = await startAsOther(trapCode, home, received);
    for (const loose of [home, join(home, "vault")]) {
      const { code, report } = await prove(home, "--pid", String(trap.pid), "--lock");
      expect([code, report.verdict]).to.deep.equal([12, "fails"]);
      expect(report.reason).to.match(/other users can access .*: nothing was sent/);
      expect(report.checks).to.deep.include.members([{ ...sharedRow, found: loose }]);
      chmodSync(loose, 0o700);
    }
    const { code, report } = await prove(home, "--lock");
    expect([code, report.reason]).to.match(/^13,.*belongs to another user than the home/);
    expect(readFileSync(received, "utf8")).to.equal("listening");
  });

  it("prove by root on a home of another user runs as that user, who owns the file that it leaves", async function () {
    needsOtherUser(this);
    const place = temporaryDirectory();
    chmodSync(place, 0o1777);
    const home = join(place, "home");
    const { child, started } = spawnAsOther([mainFile, "serve", "--port", "0", "--home", home]);
    await started;
    const passphrase = readFileSync(passphraseFile());
    const file = join(place, "passphrase");
    writeFileSync(file, passphrase, { mode: 0o600 });
    chownSync(file, otherUser, otherUser);
    const init = spawnSync(node, [mainFile, "init", "--home", home, "--passphrase-file", file], asOther);
    expect(init.status, init.stderr.toString()).to.equal(0);
    const link = join(temporaryDirectory(), "link"); // root's
    symlinkSync(home, link);
    const { code, report } = await prove(link, "--as-attacker");
    expect([code, report.reason]).to.deep.equal([0, null]);
    const left = statSync(join(home, "last-prove.json"));
    expect([left.uid, left.gid, left.mode & 0o777]).to.deep.equal([otherUser, otherUser, 0o600]);
    child.kill("SIGKILL");
  });

  it("a home whose pid file names a process of another user is not looked at", async function () {
    needsOtherUser(this);
    const home = join(temporaryDirectory(), "home");
    for (const path of [home, join(home, "vault")]) mkdirSync(path, { mode: 0o700 });
    const stat = readFileSync("/proc/self/stat", "latin1");
    const started = `boot ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}`;
    const file = join(home, "vault", "server.pid");
    writeFileSync(file, JSON.stringify({ pid: process.pid, started, url: null, socket: null }), { mode: 0o600 });
    for (const path of [home, join(home, "vault"), file]) chownSync(path, otherUser, otherUser);
    chmodSync(join(home, ".."), 0o755);
    const { code, report } = await prove(home, "--as-attacker");
    expect([code, report.checks]).to.deep.equal([13, []]);
    expect(report.reason).to.match(/does not belong to the home's owner: nothing was sent/);
  });

  it("a home of another user gets no file of root's, whatever its owner puts in the place of root's output", async function () {
    needsOtherUser(this);
    const [place, safe] = [temporaryDirectory(), temporaryDirectory()];
    chmodSync(place, 0o755);
    const [path, victim] = [join(place, "home"), join(safe, "victim")];
    mkdirSync(path, { mode: 0o700 });
    chownSync(path, otherUser, otherUser);
    writeFileSync(victim, "root's", { mode: 0o600 });
    const swapper = await startAsOther(swapCode, path, victim, join(path, `.last-prove.json.${process.pid}`));
    const home = Home.open(path);
    for (let i = 0; i < 1000; i++) if (home !== null) leaveLast(home, noReport);
    swapper.kill("SIGKILL");
    const { uid, mode } = statSync(victim);
    expect([uid, mode & 0o777, readFileSync(victim, "utf8")]).to.deep.equal([0, 0o600, "root's"]);
    expect(process.geteuid?.()).to.equal(0);
  });
});

const sharedRow = {
  step: "surroundings",
  state: null,
  what: "files in the home that others may use",
  expected: "none",
  holds: false,
};

const noReport: Report = {
  ...{ verdict: "holds", reason: null, at: "2026-03-01T12:00:00.000Z", checks: [], notShown: [], weaknesses: [] },
  machine: {},
};

const asOther = { uid: otherUser, gid: otherUser, cwd: "/", env: { PATH: process.env["PATH"] ?? "" } };

/** Listens on the home's socket and names itself as its server; writes down what it is sent. */
const trapCode = `
  const { appendFileSync, chmodSync, readFileSync, writeFileSync } = require("node:fs");
  const [home, received] = process.argv.slice(1);
  const stat = readFileSync("/proc/self/stat", "latin1");
  const started = "boot " + stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  const entry = { pid: process.pid, started, url: "https://localhost:1", socket: null };
  writeFileSync(home + "/vault/server.pid", JSON.stringify(entry), { mode: 0o600 });
  appendFileSync(received, "listening");
  require("node:net").createServer((peer) => peer.on("data", (data) => appendFileSync(received, data)))
    .listen(home + "/strongroom.sock", () => { chmodSync(home + "/strongroom.sock", 0o777); console.log("ready"); });`;

/** Puts a link to the victim in the place of a file as often as it can. */
const swapCode = `
  const { renameSync, symlinkSync, unlinkSync } = require("node:fs");
  const [home, victim, file] = process.argv.slice(1);
  console.log("ready");
  for (;;) {
    try { renameSync(file, file + ".mine"); symlinkSync(victim, file); } catch {}
    try { unlinkSync(file + ".mine"); } catch {}
  }`;

async function startAsOther(code: string, ...args: readonly string[]) {
  const { child, started } = spawnAsOther(["-e", code, ...args]);
  await started;
  return child;
}

/** `started`: it has written its first line. */
function spawnAsOther(args: readonly string[]) {
  const child = spawn(node, args, asOther);
  const { stdout, ended } = collect(child);
  later(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const started = (async () => {
    while (!stdout().includes("\n")) {
      if (child.exitCode !== null) throw new Error(`the other user's program ended with ${child.exitCode}`);
      await sleep(20);
    }
  })();
  return { child, started };
}
