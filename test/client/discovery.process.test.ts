/** How the client library finds the server: each rule in a separate process with its own environment. */

import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { defaultHome } from "../../src/client/default-home.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { freePort } from "../../tools/rig/postgres.js";
import { emptyHome } from "../../tools/rig/prepared-home.js";
import { shareTestServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustInit } from "../../tools/rig/test-client.js";

type Environment = Readonly<Record<string, string>>;

/** Runs a program and returns its output. It imports the package by name, as an installed one. */
async function program(text: string, environment: Environment): Promise<string> {
  const clean = { PATH: process.env["PATH"], HOME: temporaryDirectory(), ...environment };
  const args = ["--input-type=module", "--eval", text];
  return (await promisify(execFile)(process.execPath, args, { env: clean })).stdout.trim();
}

const lists = `
  import { StrongroomClient } from "strongroom/client";
  const client = new StrongroomClient();
  try {
    console.log((await client.list()).entries.length, "found");
  } catch (error) {
    console.log(error.code);
  }`;

describe("the client library finds", () => {
  const server = shareTestServer({}, mustInit);

  /** Writes what the command's server announces while it runs. */
  function announce({ vaultPath, url }: TestServer, at = vaultPath): void {
    const holder = JSON.parse(readFileSync(join(vaultPath, "server.pid"), "utf8")) as object;
    writeFileSync(join(at, "server.pid"), JSON.stringify({ ...holder, url }));
  }

  it("the running server, its token and its certificate in STRONGROOM_HOME", async () => {
    announce(server());
    expect(await program(lists, { STRONGROOM_HOME: server().home })).to.equal("0 found");
  });

  it("the same in the user's data directory", async () => {
    announce(server());
    const data = temporaryDirectory();
    symlinkSync(server().home, join(data, "strongroom"));
    expect(await program(lists, { XDG_DATA_HOME: data })).to.equal("0 found");
  });

  it("localhost and the port in STRONGROOM_PORT, or 13100, when no server has announced its address", async () => {
    const text = `
      import { StrongroomClient } from "strongroom/client";
      await new StrongroomClient({ timeoutMs: 5000 }).lock().catch((error) => console.log(error.message));`;
    const home = join(temporaryDirectory(), "home");
    mkdirSync(join(home, "vault"), { recursive: true, mode: 0o700 });
    copyTree(join(server().home, "tls"), join(home, "tls"));
    writeFileSync(join(home, "token"), "wrong", { mode: 0o600 });
    for (const [port, wanted] of [
      [undefined, "13100"],
      ["0", "13100"],
      ["odd", "13100"],
      [String(await freePort()), null],
    ] as const) {
      const environment = { STRONGROOM_HOME: home, ...(port !== undefined && { STRONGROOM_PORT: port }) };
      expect(await program(text, environment)).to.contain(`https://localhost:${wanted ?? port}`);
    }
  });

  it("the address in STRONGROOM_ADDRESS before the announced one", async () => {
    const other = await startTestServer({ home: emptyHome() });
    const home = join(temporaryDirectory(), "home");
    copyTree(server().home, home);
    announce(other, join(home, "vault"));
    expect(await program(lists, { STRONGROOM_HOME: home })).to.equal("UNTRUSTED_CERTIFICATE");
    expect(await program(lists, { STRONGROOM_HOME: home, STRONGROOM_ADDRESS: server().url })).to.equal("0 found");
  });

  it("the token in STRONGROOM_TOKEN, then in STRONGROOM_TOKEN_FILE, then in the home", async () => {
    announce(server());
    const STRONGROOM_HOME = server().home;
    const file = join(temporaryDirectory(), "token");
    writeFileSync(file, "wrong");
    const wrong = { STRONGROOM_TOKEN_FILE: file };
    expect(await program(lists, { STRONGROOM_HOME, ...wrong })).to.equal("UNAUTHORIZED");
    const right = { STRONGROOM_TOKEN: server().token };
    expect(await program(lists, { STRONGROOM_HOME, ...wrong, ...right })).to.equal("0 found");
    writeFileSync(file, `${server().token}\n`);
    expect(await program(lists, { STRONGROOM_HOME, STRONGROOM_TOKEN_FILE: file })).to.equal("0 found");
    expect(await program(lists, { STRONGROOM_HOME, STRONGROOM_TOKEN: "" })).to.equal("0 found");
  });

  it("the certificate in STRONGROOM_TLS_CERT", async () => {
    announce(server());
    const home = join(temporaryDirectory(), "home");
    copyTree(server().home, home);
    const moved = join(temporaryDirectory(), "cert.pem");
    renameSync(join(home, "tls", "cert.pem"), moved);
    expect(await program(lists, { STRONGROOM_HOME: home })).to.equal("UNREACHABLE");
    expect(await program(lists, { STRONGROOM_HOME: home, STRONGROOM_TLS_CERT: moved })).to.equal("0 found");
  });

  it("the socket first, unless an option names a certificate: the server's own variable does not", async () => {
    const socket = join(temporaryDirectory(), "local.sock");
    const { home } = await startTestServer({ socket });
    const environment = { STRONGROOM_HOME: home, STRONGROOM_SOCKET: socket, STRONGROOM_TLS_CERT: "/missing" };
    expect(await program(lists, environment)).to.equal("VAULT_LOCKED");
    const named = lists.replace("Client()", `Client({ certificateFile: "/missing" })`);
    expect(await program(named, environment)).to.equal("UNTRUSTED_CERTIFICATE");
  });

  it("no file when everything is given, and lets the program end", async () => {
    const { url, token, certificate } = server();
    const given = JSON.stringify({ address: url, token, certificate });
    expect(await program(lists.replace("Client()", `Client(${given})`), {})).to.equal("0 found");
  });

  const platforms: readonly (readonly [platform: string, environment: Environment, home: string])[] = [
    ["linux", {}, "/home/me/.local/share/strongroom"],
    ["linux", { XDG_DATA_HOME: "/data" }, "/data/strongroom"],
    ["linux", { XDG_DATA_HOME: "" }, "/home/me/.local/share/strongroom"],
    ["linux", { XDG_DATA_HOME: "relative" }, "/home/me/.local/share/strongroom"],
    ["freebsd", { XDG_DATA_HOME: "/data" }, "/data/strongroom"],
    ["darwin", { XDG_DATA_HOME: "/data" }, "/home/me/Library/Application Support/strongroom"],
    ["win32", {}, `${homedir()}/AppData/Local/strongroom/Data`],
    ["win32", { LOCALAPPDATA: "/local" }, "/local/strongroom/Data"],
    ["win32", { LOCALAPPDATA: "" }, `${homedir()}/AppData/Local/strongroom/Data`],
  ];
  for (const [platform, environment, home] of platforms) {
    const given = Object.entries(environment).map(([name, value]) => `${name} ${value || "empty"}`);
    it(`the server's home on ${platform} with ${given.join() || "nothing set"}`, () => {
      expect(defaultHome({ HOME: "/home/me", ...environment }, platform)).to.equal(home);
    });
  }
});
