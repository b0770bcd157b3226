/** Brokers of two servers on one database: tokens that the other server revokes, and refresh tokens that both exchange. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { type Clock, systemClock } from "../../src/clock.js";
import {
  type Agent,
  bind,
  openTunnel,
  sendThrough,
  startAgent,
  startTls,
  startUpstream,
  startWithBroker,
  type Upstream,
  upstreamTrust,
  value,
} from "../../tools/rig/broker-rig.js";
import { shared } from "../../tools/rig/clean-up.js";
import { needsPostgres } from "../../tools/rig/postgres.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { type Json, mustPut, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { sharedStoreUrl, startSharedDatabase } from "../support/shared-servers.js";

/** In milliseconds: see `Header.startHeartbeat`. */
const heartbeatMs = 30_000;

/** Refresh tokens that came to the endpoint, in this order. */
const refreshed: string[] = [];

function refresh(req: IncomingMessage, res: ServerResponse): void {
  req.once("data", (piece: Buffer) => {
    const token = new URLSearchParams(piece.toString()).get("refresh_token") ?? "";
    const isValid = token === `refresh-${refreshed.length}`; // each is taken once
    refreshed.push(token);
    const next = { access_token: "access", token_type: "bearer", refresh_token: `refresh-${refreshed.length}` };
    res.writeHead(isValid ? 200 : 400, { "content-type": "application/json" });
    setTimeout(() => res.end(JSON.stringify(isValid ? next : { error: "invalid_grant" })), 300);
  });
}

describe("the brokers of several servers", () => {
  before(function () {
    needsPostgres(this);
  });
  const database = shared(startSharedDatabase);
  let isFast = false;
  /** Heartbeats of a tenth of a second, once they are wanted. */
  const clock: Clock = {
    ...systemClock,
    after(ms, callback) {
      if (ms !== heartbeatMs) return systemClock.after(ms, callback);
      let cancel = () => {};
      const wait = () => {
        cancel = systemClock.after(100, () => (isFast ? callback() : wait()));
      };
      wait();
      return () => cancel();
    },
  };

  const rig = shared(async () => {
    const handle = (req: IncomingMessage, res: ServerResponse) => {
      if (req.url === "/token") return refresh(req, res);
      return req.url === "/events" ? void res.write("data: 1\n\n") : void res.end("done\n");
    };
    const upstream = await startUpstream(["localhost", "127.0.0.1"], handle);
    const options = { store: sharedStoreUrl(database()), clock };
    const server = await startWithBroker([upstream], options);
    const other = await startTestServer({
      ...options,
      ...upstreamTrust([upstream]),
      token: server.token,
      brokerPort: 0,
    });
    await mustUnlock(other);
    await mustPut(server, "app/key", { value });
    const place = { host: "localhost", port: upstream.port, private: true };
    await bind(server, "app/key", place);
    await mustPut(server, "app/asked", { value });
    await bind(server, "app/asked", { ...place, host: "127.0.0.1", ask: "request" });
    return { server, other, upstream };
  });
  beforeEach(() => {
    isFast = false;
  });

  async function connected({ port }: Upstream, agent: Agent, host = "localhost"): Promise<Socket> {
    const opened = await openTunnel(agent, `${host}:${port}`);
    if (typeof opened === "string") throw new Error(opened);
    return startTls(agent, opened, host, host);
  }

  /** Returns the beginning of the response; nothing when the connection is closed. */
  function ask(socket: Socket, target: string, { port }: Upstream, host = "localhost"): Promise<string> {
    socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`);
    return new Promise((resolve) => {
      socket.once("data", (piece: Buffer) => resolve(piece.toString("latin1"))).once("close", () => resolve(""));
    });
  }

  const revoke = async (server: TestServer, { name }: Agent) =>
    mustSucceed(await send(server, { method: "DELETE", path: `/v1/tokens/${name}` }));

  it("servers exchange a refresh token one at a time, each time the newest one", async () => {
    const { server, other, upstream } = rig();
    const at = `127.0.0.1:${upstream.port}`;
    const oauth = { tokenUrl: `https://localhost:${upstream.port}/token`, clientId: "client" };
    await mustPut(server, "app/oauth", { value: JSON.stringify({ refreshToken: "refresh-0" }) });
    await bind(server, "app/oauth", { host: "127.0.0.1", port: upstream.port, private: true, oauth });
    const agents: Agent[] = [];
    for (const one of [server, other]) agents.push(await startAgent(one, { paths: ["app/oauth"] }));
    const request = `GET / HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`;
    const responses = await Promise.all(agents.map((agent) => sendThrough(agent, at, request)));
    for (const response of responses) expect(response).to.match(/^HTTP\/1\.1 200 /);
    expect(refreshed).to.deep.equal(["refresh-0", "refresh-1"]);
  });

  it("a revoked token sends no further request on an open connection", async () => {
    const { server, other, upstream } = rig();
    const agent = await startAgent(server);
    const socket = await connected(upstream, agent);
    expect(await ask(socket, "/before", upstream)).to.match(/^HTTP\/1.1 200 /);
    await revoke(other, agent);
    expect(await ask(socket, "/after", upstream)).to.match(/^(HTTP\/1.1 407 |$)/);
    expect(upstream.seen.map(({ url }) => url))
      .to.include("/before")
      .and.not.to.include("/after");
  });

  it("a revoked token sends no request that is approved afterwards", async () => {
    const { server, other, upstream } = rig();
    const agent = await startAgent(server, { paths: ["app/asked"] });
    const socket = await connected(upstream, agent, "127.0.0.1");
    const response = ask(socket, "/asked", upstream, "127.0.0.1");
    const waiting = async () => mustSucceed(await send(server, { path: "/v1/approvals" }))["approvals"] as Json[];
    while ((await waiting()).length === 0) await sleep(20);
    await revoke(other, agent);
    for (const { id } of await waiting())
      mustSucceed(await send(server, { method: "POST", path: `/v1/approvals/${id}`, body: { approve: true } }));
    expect(await response).to.match(/^(HTTP\/1.1 407 |$)/);
    expect(upstream.seen.map(({ url }) => url)).not.to.include("/asked");
  });

  it("a revoked token loses its streams at the next heartbeat", async () => {
    const { server, other, upstream } = rig();
    const [agent, unrevoked] = [await startAgent(server), await startAgent(server)];
    const [socket, kept] = [await connected(upstream, agent), await connected(upstream, unrevoked)];
    for (const each of [socket, kept]) expect(await ask(each, "/events", upstream)).to.match(/^HTTP\/1.1 200 /);
    const end = once(socket, "close");
    await revoke(other, agent);
    isFast = true;
    await end;
    await sleep(300);
    expect(kept.destroyed).to.equal(false);
  });

  it("a revoked token loses its streams when this server reads the revocation", async () => {
    const { server, other, upstream } = rig();
    const agent = await startAgent(server);
    const socket = await connected(upstream, agent);
    expect(await ask(socket, "/events", upstream)).to.match(/^HTTP\/1.1 200 /);
    const end = once(socket, "close");
    await revoke(other, agent);
    expect((await send(server, { path: "/v1/tokens/self", token: agent.token })).status).to.equal(401);
    await end;
  });
});
