/** Connections that programs hold or leave: none of them takes the broker, or a person's attention, from the others. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { expect } from "chai";
import {
  type Agent,
  bind,
  openTunnel,
  sendThrough,
  startAgent,
  startBound,
  startTls,
  startUpstream,
  startWithBroker,
  type Upstream,
  value,
} from "../../tools/rig/broker-rig.js";
import { later, shared } from "../../tools/rig/clean-up.js";
import type { TestServer } from "../../tools/rig/server.js";
import { type Json, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { vault, withPort } from "../../tools/rig/vault-client.js";

type Rig = { readonly server: TestServer; readonly upstream: Upstream; readonly at: string };

/** A child token of an agent's, which it can make itself. */
async function createChild(server: TestServer, agent: Agent): Promise<Agent> {
  const made = await vault(withPort(server), "POST", "auth/token/create", { token: agent.token });
  const token: string = made.json.auth.client_token;
  const { certificate } = mustSucceed(await send(server, { path: "/v1/broker", token }));
  return { ...agent, token, certificate: String(certificate) };
}

describe("connections and approvals", () => {
  const rig = shared(async (): Promise<Rig> => {
    const upstream = await startUpstream();
    const server = await startWithBroker([upstream], { vaultPort: 0, brokerLimits: { headMs: 300 } });
    await mustPut(server, "app/key", { value });
    await bind(server, "app/key", {
      host: "localhost",
      port: upstream.port,
      private: true,
      ask: "request",
      name: "up",
    });
    return { server, upstream, at: `localhost:${upstream.port}` };
  });

  const get = (at: string, target: string) => `GET ${target} HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`;

  async function approvals(): Promise<readonly Json[]> {
    return (mustSucceed(await send(rig().server, { path: "/v1/approvals" })) as { approvals: Json[] }).approvals;
  }

  /** Resolves to the requests that wait, once one of them is for each of these. */
  async function waiting(...targets: readonly string[]): Promise<readonly Json[]> {
    for (;;) {
      const found = await approvals();
      if (targets.every((wanted) => found.some(({ target }) => target === wanted))) return found;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async function decide(targets: readonly string[], approve: boolean): Promise<void> {
    for (const { id } of (await waiting(...targets)).filter(({ target }) => targets.includes(String(target))))
      mustSucceed(await send(rig().server, { method: "POST", path: `/v1/approvals/${id}`, body: { approve } }));
  }

  for (const [what, bytes] of [
    ["sends nothing", ""],
    ["begins a head and does not end it", "CONNECT localhost:443 HTTP/1.1\r\nHost: "],
  ] as const) {
    it(`a connection that ${what} is closed`, async () => {
      const { brokerPort } = rig().server;
      const socket = connect(Number(brokerPort), "127.0.0.1");
      later(() => void socket.destroy());
      socket.on("error", () => {}).resume();
      socket.write(bytes);
      await once(socket, "close");
    });
  }

  it("a connection with an unfinished head in its tunnel is closed", async () => {
    const { server, at } = rig();
    const agent = await startAgent(server);
    const opened = await openTunnel(agent, at);
    if (typeof opened === "string") throw new Error(opened);
    const secure = await startTls(agent, opened, "localhost", "localhost");
    secure.on("error", () => {}).resume();
    secure.write("GET /x HTTP/1.1\r\nHo");
    await once(secure, "close");
  });

  it("an approval shows target, port and program, and a long query by its hash", async () => {
    const { server, upstream, at } = rig();
    const agent = await startAgent(server);
    const [short, long] = [`/shown?${"q=%41&".repeat(170)}`, `/shown?${"q".repeat(1025)}`];
    const asked = [short, long].map((target) => sendThrough(agent, at, get(at, target)));
    let found: readonly Json[] = [];
    while (found.length < 2) found = await waiting("/shown");
    const queries = found.map(({ id, since, query, ...rest }) => {
      expect(rest).to.deep.equal({
        ...{
          token: agent.name,
          path: "app/key",
          method: "GET",
          scheme: "https",
          host: "localhost",
          port: upstream.port,
        },
        ...{ target: "/shown", program: { pid: process.pid, name: readFileSync("/proc/self/comm", "utf8").trim() } },
      });
      return JSON.stringify(query);
    });
    const sha256 = createHash("sha256").update("q".repeat(1025)).digest("hex");
    expect(queries).to.have.members([JSON.stringify(short.slice(7)), JSON.stringify({ length: 1025, sha256 })]);
    await decide(["/shown"], false);
    await Promise.all(asked);
  });

  it("a header that overrides the method is refused before an approval is requested", async () => {
    const { server, at } = rig();
    const head = `GET /header HTTP/1.1\r\nHost: ${at}\r\nX-HTTP-Method-Override: DELETE\r\n\r\n`;
    expect(await sendThrough(await startAgent(server), at, head)).to.match(
      /^HTTP\/1.1 400 .*leave out x-http-method-o/s,
    );
    expect(await approvals()).to.deep.equal([]);
  });

  it("a connection that closes before its request is approved sends nothing", async () => {
    const { server, upstream, at } = rig();
    const agent = await startAgent(server);
    const opened = await openTunnel(agent, at);
    if (typeof opened === "string") throw new Error(opened);
    const secure = await startTls(agent, opened, "localhost", "localhost");
    secure.write(get(at, "/left"));
    await waiting("/left");
    secure.destroy();
    await once(opened, "close");
    const after = sendThrough(agent, at, get(at, "/after"));
    await waiting("/after"); // by now the broker has seen the end of the connection before it
    await decide(["/left"], true);
    await decide(["/after"], true);
    expect(await after).to.match(/^HTTP\/1.1 200 /);
    expect(upstream.seen.map(({ url }) => url)).to.deep.equal(["/after"]);
  });

  it("16 requests of a token and its child tokens wait for approval, next to those of other tokens", async () => {
    const { server, upstream, at } = rig();
    upstream.seen.length = 0;
    const [greedy, other] = [await startAgent(server), await startAgent(server)];
    const child = await createChild(server, greedy);
    const grandchild = await createChild(server, child);
    const targets = Array.from({ length: 16 }, (_, i) => `/greedy/${i}`);
    const asked = targets.map((target, i) =>
      sendThrough([greedy, child, grandchild][i % 3] ?? child, at, get(at, target)),
    );
    await waiting(...targets);
    for (const one of [greedy, child, grandchild, await createChild(server, grandchild)])
      expect(await sendThrough(one, at, get(at, "/greedy/17"))).to.match(/^HTTP\/1.1 403 .*too many requests/s);
    const answered = sendThrough(other, at, get(at, "/other"));
    await decide(["/other"], true);
    expect(await answered).to.match(/^HTTP\/1.1 200 /);
    await decide(targets, false);
    for (const response of await Promise.all(asked)) expect(response).to.match(/^HTTP\/1.1 403 .*not approved/s);
    expect(upstream.seen.map(({ url }) => url)).to.deep.equal(["/other"]);
  });
});

describe("limits of connections", () => {
  const rig = shared(async (): Promise<Rig> => {
    const upstream = await startUpstream();
    return startBound(upstream, {}, { vaultPort: 0, brokerLimits: { connections: 40 } });
  });

  function connected(port: number) {
    const socket = connect(port, "127.0.0.1");
    later(() => void socket.destroy());
    socket.on("error", () => {}).resume();
    return once(socket, "connect").then(() => socket);
  }

  it("the oldest connection without a token makes room for those with one", async () => {
    const { server, at } = rig();
    const agent = await startAgent(server);
    const [oldest, ...others] = await Promise.all(Array.from({ length: 10 }, () => connected(agent.port)));
    if (oldest === undefined) throw new Error("there is none");
    const closed = new Promise((resolve) => oldest.once("close", resolve));
    for (let n = 0; n < 3; n++) {
      const opened = await openTunnel(agent, at);
      expect(opened).not.to.be.a("string");
      if (typeof opened !== "string") opened.destroy();
    }
    await closed;
    expect(others.filter(({ destroyed }) => destroyed)).to.have.length.below(9);
    for (const socket of others) socket.destroy();
  });

  it("a token and its child tokens have at most 64 connections, or half of all", async () => {
    const { server, at } = rig();
    const [agent, other] = [await startAgent(server), await startAgent(server)];
    const child = await createChild(server, agent);
    const tunnels = [];
    for (let n = 0; n < 15; n++) tunnels.push(await openTunnel(n % 2 === 0 ? agent : child, at));
    expect(tunnels.filter((tunnel) => typeof tunnel === "string")).to.deep.equal([]);
    for (const one of [agent, child])
      expect(await openTunnel(one, at)).to.match(
        /^HTTP\/1.1 429 .*Retry-After: 1\r\n.*too many connections of this token/s,
      );
    expect(await openTunnel(other, at)).not.to.be.a("string");
    const [first] = tunnels;
    if (typeof first !== "object") throw new Error("it was refused");
    const ended = once(first, "close");
    first.destroy();
    await ended;
    let again: unknown = "";
    while (typeof again === "string") again = await openTunnel(agent, at); // the broker sees the end a little later
  });

  it("an idle connection is closed", async () => {
    const { upstream, at } = rig();
    const { server } = await startBound(upstream, {}, { brokerLimits: { idleMs: 200 } });
    const agent = await startAgent(server);
    const opened = await openTunnel(agent, at);
    if (typeof opened === "string") throw new Error(opened);
    const secure = await startTls(agent, opened, "localhost", "localhost");
    secure.on("error", () => {}).resume();
    await once(secure, "close");
  });
});
