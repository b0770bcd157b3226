/** The Unix socket: only the owner reaches it, and nothing on TCP keeps them from it. */
import { once } from "node:events";
import { chmodSync, existsSync, lstatSync, mkdirSync, writeFileSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { startProcess } from "../../tools/rig/process.js";
import { startLocalServer, type TestServer } from "../../tools/rig/server.js";
import { connectRaw, mustGet, mustInit, mustPut, mustStatus, mustUnlock, send } from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";

type LocalAnswer = { readonly status: number; readonly json: { readonly [name: string]: unknown } };

/** One request over the socket, without the client library. */
function local(
  { socket, token }: Pick<TestServer, "socket" | "token">,
  method: string,
  path: string,
  body?: object,
  agent?: Agent,
): Promise<LocalAnswer> {
  const headers = { authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      { socketPath: socket ?? "", method, path, headers, ...(agent && { agent }) },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, json: JSON.parse(text) }));
      },
    );
    sent.on("error", reject).end(body && JSON.stringify(body));
  });
}

/** The command line on a server's home, over the socket unless it is turned off. */
function strongroom({ home }: TestServer, args: readonly string[], more: Readonly<Record<string, string>> = {}) {
  return run(args, { STRONGROOM_HOME: home, ...more });
}

const tcpOnly = { STRONGROOM_SOCKET: "off" };

async function lockOutLoopback(server: TestServer): Promise<void> {
  for (let i = 0; i < 10; i++) await send(server, { path: "/v1/secrets", token: "wrong" });
  expect((await send(server, { path: "/v1/secrets" })).status).to.equal(429);
}

function needsSockets(this: Mocha.Context): void {
  needs(this, process.platform !== "win32", "Unix");
}

describe("the Unix socket", () => {
  before(needsSockets);

  it("the socket is in the home, 0600, and serves the same vault with the same token", async () => {
    const server = await startLocalServer();
    expect(lstatSync(server.socket ?? "").isSocket()).to.equal(true);
    expect(lstatSync(server.socket ?? "").mode & 0o777).to.equal(0o600);
    await mustInit(server);
    const value = "x".repeat(300_000);
    expect((await local(server, "PUT", "/v1/secrets/a", { value })).status).to.equal(200);
    expect((await mustGet(server, "a"))["value"]).to.equal(value);
    expect((await local(server, "GET", "/v1/secrets/a")).json["value"]).to.equal(value);
    expect(await local({ ...server, token: "wrong" }, "GET", "/v1/secrets/a")).to.include({ status: 401 });
  });

  it("status, lock and shutdown work over the socket while loopback is locked out", async () => {
    const server = await startProcess();
    await mustInit(server);
    await lockOutLoopback(server);
    expect((await strongroom(server, ["lock"], tcpOnly)).code).to.equal(6);
    expect(await strongroom(server, ["lock"])).to.deep.include({ code: 0 });
    expect((await strongroom(server, ["status", "-q"])).code).to.equal(3);
    expect((await strongroom(server, ["shutdown"])).code).to.equal(0);
    expect((await server.ended).code).to.equal(0);
  });

  it("wrong tokens at the socket lock out the socket, and no address", async () => {
    const server = await startLocalServer();
    const guess = () => local({ ...server, token: "wrong" }, "POST", "/v1/lock");
    for (let i = 0; i < 10; i++) expect((await guess()).status).to.equal(401);
    expect((await local(server, "POST", "/v1/lock")).status).to.equal(429);
    expect((await send(server, { method: "POST", path: "/v1/lock" })).status).to.equal(200);
  });

  it("wrong tokens of TCP connections that were reset do not count at the socket", async () => {
    const server = await startLocalServer();
    for (let i = 0; i < 30; i++) {
      const raw = connectRaw(server).on("error", () => {});
      await once(raw, "secureConnect");
      raw.write("POST /v1/lock HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n");
      raw.destroy();
    }
    expect((await local(server, "POST", "/v1/lock")).status).to.equal(200);
  });

  it("lock works over the socket while every TCP connection is taken", async () => {
    const server = await startProcess();
    await mustInit(server);
    const taken = Array.from({ length: 1100 }, () => connect(server.port, "127.0.0.1").on("error", () => {}));
    later(() => taken.forEach((one) => void one.destroy()));
    await Promise.all(taken.map((one) => Promise.race([once(one, "connect"), once(one, "close")])));
    expect(await strongroom(server, ["lock"])).to.deep.include({ code: 0 });
    expect((await local(server, "GET", "/v1/status")).json).to.include({ locked: true });
  });

  it("a stop completes running requests, and closes idle and unused connections of the socket", async () => {
    const server = await startProcess();
    await mustInit(server);
    const agent = new Agent({ keepAlive: true });
    later(() => agent.destroy());
    await local(server, "GET", "/v1/status", undefined, agent);
    const unused = connect(server.socket ?? "");
    await once(unused, "connect");
    const puts = Array.from({ length: 10 }, (_, n) =>
      local(server, "PUT", `/v1/secrets/${n}`, { value: "v" }).catch(() => null),
    );
    await puts[0];
    server.child.kill("SIGTERM");
    expect((await server.ended).code).to.equal(0);
    const stored = (await Promise.all(puts)).flatMap((answer, n) => (answer?.status === 200 ? [String(n)] : []));
    const again = await startLocalServer({ home: server.home });
    await mustUnlock(again);
    for (const path of stored) expect((await mustGet(again, path))["value"]).to.equal("v");
  });

  it("the socket is removed at the end, and replaced after a kill", async () => {
    const first = await startProcess();
    first.child.kill("SIGKILL");
    await first.ended;
    expect(existsSync(first.socket ?? "")).to.equal(true);
    expect((await strongroom(first, ["lock"])).code).to.equal(10);
    const second = await startProcess([], { STRONGROOM_HOME: first.home });
    expect((await local(second, "GET", "/v1/status")).status).to.equal(200);
    await second.stop();
    expect(existsSync(first.socket ?? "")).to.equal(false);
  });

  it("a flag or variable turns the socket off, and commands then use TCP", async () => {
    for (const server of [await startProcess(["--no-socket"]), await startProcess([], tcpOnly)]) {
      await mustInit(server);
      expect(existsSync(join(server.home, "strongroom.sock"))).to.equal(false);
      expect((await strongroom(server, ["lock"])).code).to.equal(0);
    }
  });

  it("commands that know only the home find the socket in another place", async () => {
    const socket = join(temporaryDirectory(), "elsewhere.sock");
    const server = await startLocalServer({ socket });
    await mustInit(server);
    expect(existsSync(join(server.home, "strongroom.sock"))).to.equal(false);
    await lockOutLoopback(server);
    expect((await strongroom(server, ["lock"])).code).to.equal(0);
  });

  it("a home whose path is too long turns the socket off, with a warning", async () => {
    const home = join(temporaryDirectory(), "long".repeat(30));
    const server = await startProcess([], { STRONGROOM_HOME: home });
    await mustInit(server);
    expect(server.logged()).to.contain('"event":"no-socket"').and.to.contain("--socket");
    expect((await strongroom(server, ["lock"])).code).to.equal(0);
    const named = await run(["serve", "--socket", join(home, "socket")], { STRONGROOM_HOME: home });
    expect(named).to.include({ code: 2 });
    expect(named.stderr).to.contain("--socket must be").and.to.contain("bytes");
  });

  it("--socket refuses a place that other users can write to, a file, and another server's socket", async () => {
    const first = await startLocalServer();
    const shared = temporaryDirectory();
    chmodSync(shared, 0o777);
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "file"), "");
    const refused: readonly (readonly [string, string])[] = [
      [join(shared, "socket"), "chmod go-w"],
      [join(directory, "none", "socket"), "is not a directory"],
      [join(directory, "file"), "is not a socket"],
      [first.socket ?? "", "another server listens"],
    ];
    for (const [socket, says] of refused) {
      const { code, stderr } = await run(["serve", "--port", "0", "--socket", socket]);
      expect(code, stderr).to.equal(1);
      expect(stderr).to.contain(says);
    }
    expect((await local(first, "GET", "/v1/status")).status).to.equal(200);
  });
});

describe("clients of the Unix socket", () => {
  before(needsSockets);

  it("the client uses TCP when an address is named", async () => {
    const server = await startLocalServer();
    await mustInit(server);
    await lockOutLoopback(server);
    expect((await strongroom(server, ["lock", "--address", server.url])).code).to.equal(6);
    expect((await strongroom(server, ["lock"], { STRONGROOM_ADDRESS: server.url })).code).to.equal(6);
  });

  it("the client ignores a socket that other users could have made or can use, and uses TCP", async () => {
    const server = await startLocalServer({ socket: "off" });
    await mustInit(server);
    const shared = join(temporaryDirectory(), "shared");
    mkdirSync(shared);
    chmodSync(shared, 0o777);
    const caught: string[] = [];
    const trap = createServer((socket) => socket.on("data", (data) => caught.push(String(data))).on("error", () => {}));
    later(() => void trap.close());
    const path = join(shared, "trap.sock");
    await once(trap.listen(path), "listening");
    for (const mode of [0o600, 0o666]) {
      chmodSync(path, mode);
      chmodSync(shared, mode === 0o600 ? 0o777 : 0o700);
      expect((await strongroom(server, ["lock"], { STRONGROOM_SOCKET: path })).code).to.equal(0);
    }
    expect(caught).to.deep.equal([]);
  });
});

describe("SIGUSR2", () => {
  before(needsSockets);

  it("SIGUSR2 locks the vault, and the server keeps running", async () => {
    const server = await startProcess();
    await mustInit(server);
    await mustPut(server, "a", "v");
    server.child.kill("SIGUSR2");
    while ((await mustStatus(server))["locked"] === false) await new Promise((resolve) => setTimeout(resolve, 10));
    await mustUnlock(server);
    expect((await mustGet(server, "a"))["value"]).to.equal("v");
  });
});
