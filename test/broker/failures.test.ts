/** The broker while the vault is locked, when its thread ends, and in an environment that lies. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import {
  type Agent,
  bind,
  openTunnel,
  sendThrough,
  spliced,
  startAgent,
  startBound,
  startTls,
  startUpstream,
  startWithBroker,
  type Upstream,
  upstreamTrust,
  value,
} from "../../tools/rig/broker-rig.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { emptyHome } from "../../tools/rig/prepared-home.js";
import { startProcess } from "../../tools/rig/process.js";
import { restarted, startTestServer, type TestServer, uncached } from "../../tools/rig/server.js";
import {
  type Json,
  mustGet,
  mustInit,
  mustLock,
  mustPut,
  mustSucceed,
  mustUnlock,
  send,
} from "../../tools/rig/test-client.js";
import { vault, withPort } from "../../tools/rig/vault-client.js";
import { lastThread } from "../support/crash-key-worker.js";
import { blobFile, damage, flipped } from "../support/damage.js";

type Rig = { readonly server: TestServer; readonly upstream: Upstream; readonly agent: Agent; readonly at: string };

async function start(
  handle: Parameters<typeof startUpstream>[1] = null,
  limits: object = {},
  brokerPort = 0,
): Promise<Rig> {
  const upstream = await startUpstream(["localhost"], handle);
  const bound = await startBound(upstream, limits, { brokerPort });
  return { ...bound, agent: await startAgent(bound.server) };
}

const ok = (at: string, target = "/ok") => `GET ${target} HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`;

/** A stream of events that the test sends one by one. */
function eventStream() {
  let opened: (response: ServerResponse) => void;
  const response = new Promise<ServerResponse>((resolve) => {
    opened = resolve;
  });
  return {
    response,
    handle: (req: IncomingMessage, res: ServerResponse) => {
      if (req.url !== "/events") return void res.end("ok");
      res.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
      opened(res);
    },
  };
}

async function openStream({ agent, at }: Rig): Promise<Socket> {
  const opened = await openTunnel(agent, at);
  if (typeof opened === "string") throw new Error(opened);
  const secure = await startTls(agent, opened, "localhost", "localhost");
  secure.write(ok(at, "/events"));
  return secure;
}

/** Resolves to all that was received, once it contains the text. */
function received(socket: Socket, wanted: string): Promise<string> {
  let text = "";
  return new Promise((resolve, reject) => {
    socket.on("data", (piece: Buffer) => {
      text += piece.toString("latin1");
      if (text.includes(wanted)) resolve(text);
    });
    socket.once("close", () => reject(new Error(`closed after ${JSON.stringify(text)}`)));
  });
}

describe("the broker of a locked vault", () => {
  it("a running stream continues after a lock, and new requests get 503", async () => {
    const stream = eventStream();
    const rig = await start(stream.handle);
    const socket = await openStream(rig);
    const events = await stream.response;
    const first = received(socket, "data: 1\n\n");
    events.write("data: 1\n\n");
    expect(await first).to.contain("HTTP/1.1 200 ");
    expect(await listUses(rig.server), "recorded while the stream runs").to.deep.equal([
      "use-begin undefined",
      "use 200",
    ]);
    await mustLock(rig.server);
    const second = received(socket, "data: 2\n\n");
    events.write("data: 2\n\n");
    await second;
    expect(await sendThrough(rig.agent, rig.at, ok(rig.at))).to.match(/^HTTP\/1.1 503 .*VAULT_LOCKED/s);
    const last = received(socket, "data: 3\n\n");
    events.end("data: 3\n\n");
    await last;
    expect(rig.upstream.seen).to.have.length(1);
  });

  it("a connection that was opened before a lock gets 503 for its next request", async () => {
    const rig = await start();
    const opened = await openTunnel(rig.agent, rig.at);
    if (typeof opened === "string") throw new Error(opened);
    const socket = await startTls(rig.agent, opened, "localhost", "localhost");
    const first = received(socket, "GET /1 0\n");
    socket.write(`GET /1 HTTP/1.1\r\nHost: ${rig.at}\r\n\r\n`);
    await first;
    await mustLock(rig.server);
    const second = received(socket, "VAULT_LOCKED");
    socket.write(`GET /2 HTTP/1.1\r\nHost: ${rig.at}\r\n\r\n`);
    await second;
    expect(rig.upstream.seen.map(({ url }) => url)).to.deep.equal(["/1"]);
  });
});

/** Events and statuses of the uses in the audit log. */
async function listUses(server: TestServer): Promise<readonly string[]> {
  const { records } = mustSucceed(await send(server, { path: "/v1/audit" })) as { readonly records: Json[] };
  const uses = records.filter(({ event }) => String(event).startsWith("use") && event !== "use-change");
  return uses.map(({ event, status }) => `${event} ${status}`);
}

describe("the broker's audit records", () => {
  it("a use without a response is recorded before it ends", async () => {
    let arrive = () => {};
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const rig = await start((_req, _res) => arrive());
    const hanging = sendThrough(rig.agent, rig.at, ok(rig.at));
    await arrived;
    expect(await listUses(rig.server)).to.deep.equal(["use-begin undefined"]);
    rig.upstream.server.closeAllConnections();
    expect(await hanging).to.match(/^HTTP\/1.1 502 /);
    expect(await listUses(rig.server)).to.deep.equal(["use-begin undefined", "use 502"]);
  });
});

describe("the broker's thread", () => {
  it("the vault continues when the broker's thread ends, and a new thread serves new sessions", async () => {
    const stream = eventStream();
    const rig = await start(stream.handle, {}, await lastingPort());
    const { server, agent, at } = rig;
    const socket = await openStream(rig);
    await received(socket, "HTTP/1.1 200 ");
    const closed = new Promise<void>((resolve) => socket.on("error", () => {}).once("close", () => resolve()));
    await lastThread().terminate();
    await closed;
    expect(await mustGet(server, "app/key")).to.include({ value });
    expect(server.logged()).to.contain("broker-restarts");
    expect((await send(server, { method: "POST", path: "/v1/agents", body: {} })).status).to.be.oneOf([200, 503]);
    const fresh = await eventually(async () => {
      const answer = await send(server, { method: "POST", path: "/v1/agents", body: {} });
      return answer.status === 200 ? answer.json : null;
    });
    expect(fresh["port"]).to.equal(agent.port);
    const after = { ...agent, token: String(fresh["token"]), certificate: String(fresh["certificate"]) };
    expect(await sendThrough(after, at, ok(at, "/after"))).to.match(/^HTTP\/1.1 200 /);
    expect(await listUses(server)).to.deep.equal(["use-begin undefined", "use 200", "use-begin undefined", "use 200"]);
  });

  it("an approval for a request of an ended thread permits no request of the new one", async () => {
    const rig = await start(null, { ask: "session" });
    const { server, agent, at, upstream } = rig;
    const asked = sendThrough(agent, at, ok(at, "/asked")).catch(() => "closed");
    const id = await eventually(async () => (await approvals(server))[0]?.["id"] ?? null);
    await lastThread().terminate();
    await asked;
    expect(await approvals(server)).to.deep.equal([]);
    const answer = await send(server, { method: "POST", path: `/v1/approvals/${id}`, body: { approve: true } });
    expect(answer.status).to.equal(404);
    expect(upstream.seen).to.have.length(0);
  });
});

/** A free port that no connection is given by chance while it is free: the new thread needs it again after a second. */
async function lastingPort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 30_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}

async function approvals(server: TestServer): Promise<readonly Json[]> {
  return (mustSucceed(await send(server, { path: "/v1/approvals" })) as { approvals: Json[] }).approvals;
}

async function eventually<T>(look: () => Promise<T | null>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("revoked tokens at the broker", () => {
  it("the revocation of a token ends its streams and those of its child tokens", async () => {
    const handle = (_req: IncomingMessage, res: ServerResponse) => void res.write("data: 1\n\n");
    const upstream = await startUpstream(["localhost"], handle);
    const server = withPort(await startWithBroker([upstream], { vaultPort: 0 }));
    await mustPut(server, "app/key", { value });
    await bind(server, "app/key", { host: "localhost", port: upstream.port, private: true });
    const agent = await startAgent(server);
    const made = await vault(server, "POST", "auth/token/create", { token: agent.token });
    const token: string = made.json.auth.client_token;
    const { certificate } = mustSucceed(await send(server, { path: "/v1/broker", token }));
    const child = { ...agent, token, certificate: String(certificate) };
    const streams = await Promise.all(
      [agent, child].map((each) => openStream({ server, upstream, agent: each, at: `localhost:${upstream.port}` })),
    );
    await Promise.all(streams.map((socket) => received(socket, "data: 1")));
    const ends = Promise.all(streams.map((socket) => once(socket, "close")));
    mustSucceed(await send(server, { method: "DELETE", path: `/v1/tokens/${agent.name}` }));
    await ends;
  });
});

describe("files and environment of the broker", function () {
  this.timeout(0);

  it("the server's environment adds no trusted upstream and no proxy", async () => {
    const [evil, good] = [await startUpstream(), await startUpstream()];
    const hits = { count: 0 };
    const proxy = createServer((_, res) => res.end()).on("connect", (_, socket) => {
      hits.count++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    later(() => void proxy.close());
    const evilRoot = join(temporaryDirectory(), "evil.pem");
    writeFileSync(evilRoot, evil.certificate);
    const way = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const server = await startProcess(["--broker-port", "0", "--upstream-ca", upstreamTrust([good]).upstreamCa], {
      NODE_EXTRA_CA_CERTS: evilRoot,
      SSL_CERT_FILE: evilRoot,
      NODE_TLS_REJECT_UNAUTHORIZED: "0",
      NODE_USE_ENV_PROXY: "1",
      HTTPS_PROXY: way,
      https_proxy: way,
      ALL_PROXY: way,
    });
    await mustInit(server);
    for (const [path, { port }] of [
      ["a/evil", evil],
      ["a/good", good],
    ] as const) {
      await mustPut(server, path, { value });
      await bind(server, path, { host: "localhost", port, private: true });
    }
    const agent = await startAgent(server);
    expect(await sendThrough(agent, `localhost:${good.port}`, ok(`localhost:${good.port}`))).to.match(
      /^HTTP\/1.1 200 /,
    );
    expect(await sendThrough(agent, `localhost:${evil.port}`, ok(`localhost:${evil.port}`))).to.match(
      /^HTTP\/1.1 502 /,
    );
    expect(evil.seen).to.have.length(0);
    expect(hits.count).to.equal(0);
  });

  it("edited or exchanged files of the vault send no secret to another host", async () => {
    const upstreams = [await startUpstream(), await startUpstream()] as const;
    const home = emptyHome();
    const options = { ...uncached, home, brokerPort: 0, ...upstreamTrust(upstreams) };
    let server = await startTestServer(options);
    await mustInit(server);
    for (const [i, path] of paths.entries()) {
      await mustPut(server, path, { value: `value-of-${path}` });
      await bind(server, path, { host: "localhost", port: upstreams[i]?.port, private: true });
    }
    const [a = Buffer.alloc(0), b = Buffer.alloc(0)] = paths.map((path) => readFileSync(blobFile(server, path)));
    const file = blobFile(server, paths[0]);
    const edits = Array.from({ length: 20 }, (_, i) => flipped(a, Math.floor((i * a.length * 8) / 20)));
    const agent = await startAgent(server);
    for (const blob of edits) {
      damage(file, blob);
      await mustGoRight(agent, upstreams);
    }
    for (const blob of [b, spliced(a, b), spliced(b, a), a.subarray(0, -1)]) {
      damage(file, blob);
      server = await restarted(server, options); // it knows no binding from before
      await mustUnlock(server);
      await mustGoRight(await startAgent(server), upstreams);
    }
    damage(file, a);
    expect(await mustGoRight(await startAgent(server), upstreams)).to.equal(2);
  });
});

const paths = ["app/a", "app/b"] as const;

/** Asks for both upstreams; each has seen its own secret or nothing, and the unchanged one its own. */
async function mustGoRight(agent: Agent, upstreams: readonly Upstream[]): Promise<number> {
  for (const { port, seen } of upstreams) {
    seen.length = 0;
    await sendThrough(agent, `localhost:${port}`, ok(`localhost:${port}`));
  }
  const sent = upstreams.map(({ seen }) => seen.map(({ headers }) => headers["authorization"]));
  const [a = [], b] = sent;
  expect(a).to.deep.equal(a.length === 0 ? [] : ["Bearer value-of-app/a"]);
  expect(b).to.deep.equal(["Bearer value-of-app/b"]);
  return sent.flat().length;
}
