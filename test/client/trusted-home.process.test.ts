/** The client trusts no home that belongs to another user or that another user can change. */
import { spawn } from "node:child_process";
import { chmodSync, lchownSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { StrongroomClient } from "strongroom/client";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { collect, mainFile, node } from "../../tools/rig/process.js";
import { startLocalServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import { run } from "../support/command-here.js";
import { needsOtherUser, otherUser } from "../support/needs.js";

function fileWith(text: string): string {
  const file = join(temporaryDirectory(), "input");
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

/** Returns the report of a client with this home. */
async function outcome(home: string, socket?: string): Promise<string> {
  const client = new StrongroomClient({ home, socket });
  later(() => client.close());
  const error = await client.lock().then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error === null) return "locked";
  return error instanceof Error && "code" in error ? `${error.code}: ${error.message}` : String(error);
}

/** The code and the message of a command with this home, which is the client's. */
async function outcomeOfCommand(home: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
  const { code, stderr } = await run(["lock"], { STRONGROOM_HOME: home, ...more });
  return `exit ${code}: ${stderr}`;
}

describe("homes of another user", () => {
  before(function () {
    needsOtherUser(this);
  });

  /** Another user's own server, in a place that this user's settings name. It opens to any passphrase. */
  async function startTrap(extra: readonly string[]): Promise<{ readonly home: string; readonly stop: () => void }> {
    const place = temporaryDirectory();
    chmodSync(place, 0o1777);
    const home = join(place, "home");
    const child = spawn(node, [mainFile, "serve", "--port", "0", "--home", home, ...extra], {
      uid: otherUser,
      gid: otherUser,
      cwd: "/",
      env: { HOME: place, PATH: process.env["PATH"] ?? "" },
    });
    const { stdout, ended } = collect(child);
    const stop = () => void child.kill("SIGKILL");
    later(async () => {
      stop();
      await ended;
    });
    let over = false;
    void ended.then(() => {
      over = true;
    });
    while (!stdout().includes("\n") && !over) await sleep(20);
    if (over) throw new Error("the other user cannot run the server");
    return { home, stop };
  }

  for (const [how, extra, more] of [
    ["its socket", [], {}],
    ["TCP", ["--no-socket"], {}],
    ["TCP, with the socket turned off", [], { STRONGROOM_SOCKET: "off" }],
  ] as const) {
    it(`another user's home gets neither token nor passphrase over ${how}`, async () => {
      const { home } = await startTrap(extra);
      const socket: string | undefined = "STRONGROOM_SOCKET" in more ? more.STRONGROOM_SOCKET : undefined;
      expect(await outcome(home, socket)).to.match(/^UNTRUSTED_HOME: .*belongs to another user/);
      expect(await outcomeOfCommand(home, more)).to.match(/^exit 11: .*belongs to another user/);
      const file = fileWith("the master passphrase");
      for (const command of ["unlock", "init"]) {
        const { code, stderr } = await run([command, "--passphrase-file", file], { STRONGROOM_HOME: home, ...more });
        expect(code, stderr).to.equal(11);
      }
    });
  }

  it("a home with one file of another user is refused", async () => {
    const server = await startTestServer();
    for (const name of ["token", "tls/cert.pem", "vault/server.pid", "tls", "vault"]) {
      lchownSync(join(server.home, name), otherUser, otherUser);
      expect(await outcome(server.home), name).to.match(/^UNTRUSTED_HOME: .*belongs to another user/);
      lchownSync(join(server.home, name), 0, 0);
    }
    expect(await outcome(server.home)).to.equal("locked");
  });

  it("another user's socket in this user's home is not trusted", async () => {
    const server = await startLocalServer();
    const { home, stop } = await startTrap([]);
    rmSync(join(server.home, "strongroom.sock"));
    renameSync(join(home, "strongroom.sock"), join(server.home, "strongroom.sock"));
    expect(await outcome(server.home)).to.equal("locked"); // over TCP
    expect(await outcomeOfCommand(server.home)).to.match(/^exit 8/); // this user's server has no vault
    stop();
  });
});

describe("homes of this user", () => {
  let server: TestServer;
  before(function () {
    needs(this, process.platform !== "win32", "Unix");
  });
  beforeEach(async () => {
    server = await startTestServer();
  });

  it("a home is refused while other users can read or change a part of it", async () => {
    const parts: readonly (readonly [string, number, number])[] = [
      ["", 0o755, 0o700],
      ["tls", 0o777, 0o700],
      ["vault", 0o750, 0o700],
      ["token", 0o644, 0o600],
      ["tls/cert.pem", 0o666, 0o644],
      ["vault/server.pid", 0o622, 0o600],
    ];
    for (const [name, loose, right] of parts) {
      const path = join(server.home, name);
      chmodSync(path, loose);
      expect(await outcome(server.home), name).to.match(/^UNTRUSTED_HOME: other users can access .*chmod/);
      chmodSync(path, right);
    }
    expect(await outcome(server.home)).to.equal("locked");
  });

  it("a home that is a link is accepted, and a link inside it is refused", async () => {
    const link = join(temporaryDirectory(), "link");
    symlinkSync(server.home, link);
    expect(await outcome(link)).to.equal("locked");
    for (const name of ["token", "tls/cert.pem", "vault/server.pid", "tls"]) {
      const path = join(server.home, name);
      renameSync(path, `${path}.moved`);
      symlinkSync(`${path}.moved`, path);
      expect(await outcome(server.home), name).to.match(/^UNTRUSTED_HOME: .*(?:is a link|not what a server)/);
      rmSync(path);
      renameSync(`${path}.moved`, path);
    }
  });

  it("an announced address outside loopback is refused", async () => {
    const file = join(server.home, "vault", "server.pid");
    const holder = JSON.parse(readFileSync(file, "utf8")) as object;
    for (const url of ["https://192.0.2.1:13100", "https://evil.test", "https://localhost.evil.test:1"]) {
      writeFileSync(file, JSON.stringify({ ...holder, url }));
      expect(await outcome(server.home)).to.match(/^UNTRUSTED_HOME: .*set STRONGROOM_ADDRESS/);
    }
    const address = `https://127.0.0.1:${server.port}`;
    for (const url of [address, `https://[::1]:${server.port}`]) {
      writeFileSync(file, JSON.stringify({ ...holder, url }));
      expect(await outcome(server.home)).not.to.contain("UNTRUSTED_HOME");
    }
  });

  it("the home is not checked when all options are given", async () => {
    chmodSync(server.home, 0o755);
    const { url: address, token, certificate } = server;
    const client = new StrongroomClient({ home: server.home, address, token, certificate });
    later(() => client.close());
    expect(await client.lock()).to.include({ ok: true });
  });
});
