/** Discovery of the server by the client library, with the environments of programs. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { StrongroomClient } from "strongroom/client";
import { defaultHome } from "../../src/client/default-home.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { copyTree } from "../../tools/rig/copy-tree.js";
import { freePort } from "../../tools/rig/postgres.js";
import { emptyHome } from "../../tools/rig/prepared-home.js";
import { shareTestServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustInit } from "../../tools/rig/test-client.js";

type Environment = Readonly<Record<string, string>>;

/** Lists the secrets in a separate process; returns its output. It imports the package by name, as an installed one. */
async function listInProcess(environment: Environment, options: object = {}): Promise<string> {
  const text = `
    import { StrongroomClient } from "strongroom/client";
    console.log((await new StrongroomClient(${JSON.stringify(options)}).list()).entries.length, "found");`;
  const clean = { PATH: process.env["PATH"], HOME: temporaryDirectory(), ...environment };
  const args = ["--input-type=module", "--eval", text];
  return (await promisify(execFile)(process.execPath, args, { env: clean, timeout: 60_000 })).stdout.trim();
}

/** Lists the secrets as a program with this environment; returns their number, or the error's code. */
async function list(environment: Environment, options: object = {}): Promise<string> {
  const client = newClient(environment, options);
  return client.list().then(
    ({ entries }) => `${entries.length} found`,
    (error: { code: string }) => error.code,
  );
}

function newClient(environment: Environment, options: object = {}): StrongroomClient {
  const client = new StrongroomClient({ environment: { HOME: temporaryDirectory(), ...environment }, ...options });
  later(() => client.close());
  return client;
}

describe("discovery of the server", () => {
  const server = shareTestServer({}, mustInit);

  /** Writes what the command's server announces while it runs. */
  function announce({ vaultPath, url }: TestServer, at = vaultPath): void {
    const holder = JSON.parse(readFileSync(join(vaultPath, "server.pid"), "utf8")) as object;
    writeFileSync(join(at, "server.pid"), JSON.stringify({ ...holder, url }));
  }

  it("the client finds the running server, its token and its certificate in STRONGROOM_HOME", async () => {
    announce(server());
    expect(await listInProcess({ STRONGROOM_HOME: server().home })).to.equal("0 found");
  });

  it("the client finds the running server in the user's data directory", async () => {
    announce(server());
    const data = temporaryDirectory();
    symlinkSync(server().home, join(data, "strongroom"));
    expect(await list({ XDG_DATA_HOME: data })).to.equal("0 found");
  });

  it("the client uses localhost and STRONGROOM_PORT, or 13100, when no server has announced its address", async () => {
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
      const error: unknown = await newClient(environment, { timeoutMs: 5000 }).lock().catch(String);
      expect(error).to.contain(`https://localhost:${wanted ?? port}`);
    }
  });

  it("STRONGROOM_ADDRESS takes precedence over the announced address", async () => {
    const other = await startTestServer({ home: emptyHome() });
    const home = join(temporaryDirectory(), "home");
    copyTree(server().home, home);
    announce(other, join(home, "vault"));
    expect(await list({ STRONGROOM_HOME: home })).to.equal("UNTRUSTED_CERTIFICATE");
    expect(await list({ STRONGROOM_HOME: home, STRONGROOM_ADDRESS: server().url })).to.equal("0 found");
  });

  it("STRONGROOM_TOKEN takes precedence over STRONGROOM_TOKEN_FILE, and both over the home's token", async () => {
    announce(server());
    const STRONGROOM_HOME = server().home;
    const file = join(temporaryDirectory(), "token");
    writeFileSync(file, "wrong");
    const wrong = { STRONGROOM_TOKEN_FILE: file };
    expect(await list({ STRONGROOM_HOME, ...wrong })).to.equal("UNAUTHORIZED");
    const right = { STRONGROOM_TOKEN: server().token };
    expect(await list({ STRONGROOM_HOME, ...wrong, ...right })).to.equal("0 found");
    writeFileSync(file, `${server().token}\n`);
    expect(await list({ STRONGROOM_HOME, STRONGROOM_TOKEN_FILE: file })).to.equal("0 found");
    expect(await list({ STRONGROOM_HOME, STRONGROOM_TOKEN: "" })).to.equal("0 found");
  });

  it("the client reads the certificate in STRONGROOM_TLS_CERT", async () => {
    announce(server());
    const home = join(temporaryDirectory(), "home");
    copyTree(server().home, home);
    const moved = join(temporaryDirectory(), "cert.pem");
    renameSync(join(home, "tls", "cert.pem"), moved);
    expect(await list({ STRONGROOM_HOME: home })).to.equal("UNREACHABLE");
    expect(await list({ STRONGROOM_HOME: home, STRONGROOM_TLS_CERT: moved })).to.equal("0 found");
  });

  it("the client prefers the socket, unless an option names a certificate", async () => {
    const socket = join(temporaryDirectory(), "local.sock");
    const { home } = await startTestServer({ socket });
    const environment = { STRONGROOM_HOME: home, STRONGROOM_SOCKET: socket, STRONGROOM_TLS_CERT: "/missing" };
    expect(await list(environment)).to.equal("VAULT_LOCKED");
    expect(await list(environment, { certificateFile: "/missing" })).to.equal("UNTRUSTED_CERTIFICATE");
  });

  it("the client reads no file when all options are given, and lets the program end", async () => {
    const { url: address, token, certificate } = server();
    expect(await listInProcess({}, { address, token, certificate })).to.equal("0 found");
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
    it(`the default home on ${platform} with ${given.join() || "nothing set"}`, () => {
      expect(defaultHome({ HOME: "/home/me", ...environment }, platform)).to.equal(home);
    });
  }
});
