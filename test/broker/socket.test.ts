/** The broker's Unix socket: the same checks and limits as at its port, for the owner alone. */
import { once } from "node:events";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { announcedFiles } from "../../src/client/discovery.js";
import {
  type Agent,
  connectTo,
  proxyAuthorization,
  sendRaw,
  sendThrough,
  startAgent,
  startBound,
  startUpstream,
  value,
} from "../../tools/rig/broker-rig.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { startTestServer, type TestOptions, type TestServer } from "../../tools/rig/server.js";
import { type Json, mustSucceed, send } from "../../tools/rig/test-client.js";
import { lastThread } from "../support/crash-key-worker.js";

async function start(options: TestOptions = {}, limits: object = {}) {
  const socket = join(temporaryDirectory(), "broker.sock");
  const binding = { name: "up", ...limits };
  const bound = await startBound(await startUpstream(), binding, { brokerSocket: socket, ...options });
  const agent: Agent = { ...(await startAgent(bound.server)), socket };
  return { ...bound, socket, agent };
}

const get = (at: string, target: string) => `GET ${target} HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`;

describe("the broker's Unix socket", () => {
  it("the socket carries requests with their credential, and refuses as the port does", async () => {
    const { server, upstream, agent, at, socket } = await start();
    expect(statSync(socket).mode & 0o777).to.equal(0o600);
    expect(await announcedFiles(server.home), "hidden in sandboxes").to.include(socket);
    expect(await sendThrough(agent, at, get(at, "/tunnel"))).to.match(/^HTTP\/1.1 200 /);
    const head = `Host: 127.0.0.1:${agent.port}\r\nX-Api-Key: ${agent.token}\r\nConnection: close\r\n\r\n`;
    expect(await sendRaw(agent, `GET /r/up/route HTTP/1.1\r\n${head}`)).to.match(/^HTTP\/1.1 200 /);
    const credentials = upstream.seen.map(({ url, headers }) => [url, headers["authorization"], headers["x-api-key"]]);
    expect(credentials).to.deep.equal([
      ["/tunnel", `Bearer ${value}`, undefined],
      ["/route", `Bearer ${value}`, undefined],
    ]);
    expect(await sendThrough(agent, "example.org:443", "")).to.match(/^HTTP\/1.1 403 .*no binding for example.org/s);
    expect(await sendRaw(agent, `CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n\r\n`)).to.match(/^HTTP\/1.1 407 /);
    expect(await sendRaw(agent, "GET / HTTP/1.1\nHost: x\n\n")).to.match(/^HTTP\/1.1 400 /);
  });

  it("wrong tokens at the socket lock out neither the port nor the owner's commands", async () => {
    const { server, agent, at } = await start();
    const wrong = `${proxyAuthorization({ ...agent, token: "x".repeat(43) })}\r\n`;
    const connect = `CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n${wrong}\r\n`;
    for (let i = 0; i < 10; i++) expect(await sendRaw(agent, connect)).to.match(/^HTTP\/1.1 407 /);
    expect(await sendThrough(agent, at, get(at, "/late"))).to.match(/^HTTP\/1.1 429 /);
    const { socket: _, ...atPort } = agent;
    expect(await sendThrough(atPort, at, get(at, "/port"))).to.match(/^HTTP\/1.1 200 /);
    expect((await send(server, { path: "/v1/uses" })).status).to.equal(200);
  });

  it("the socket and the port share the places for connections without a token", async () => {
    const { agent } = await start({ brokerLimits: { connections: 4 } });
    const { socket: _, ...atPort } = agent;
    const first = connectTo(agent).resume();
    await once(first, "connect");
    connectTo(atPort);
    await once(first, "close");
  });

  it("an approval at the socket shows no program", async () => {
    const { server, agent, at } = await start({}, { ask: "request" });
    const asked = sendThrough(agent, at, get(at, "/asked"));
    let found: readonly Json[] = [];
    while (found.length === 0) {
      found = mustSucceed(await send(server, { path: "/v1/approvals" }))["approvals"] as readonly Json[];
    }
    expect(found[0]).to.include({ host: "localhost", target: "/asked", program: null });
    await send(server, { method: "POST", path: `/v1/approvals/${found[0]?.["id"]}`, body: { approve: true } });
    expect(await asked).to.match(/^HTTP\/1.1 200 /);
  });

  it("a new thread serves the socket again, and the stop of the server removes it", async () => {
    const { server, agent, at, socket } = await start();
    await lastThread().terminate();
    let made = await send(server, { method: "POST", path: "/v1/agents", body: {} });
    while (made.status !== 200) made = await send(server, { method: "POST", path: "/v1/agents", body: {} });
    const { token, certificate, port } = made.json as Pick<Agent, "token" | "certificate" | "port">;
    const fresh = { ...agent, token, certificate, port };
    expect(await sendThrough(fresh, at, get(at, "/again"))).to.match(/^HTTP\/1.1 200 /);
    await server.stop();
    expect(existsSync(socket)).to.equal(false);
  });

  for (const [place, says] of [
    ["missing/broker.sock", "is not a directory: create it, or change --broker-socket"],
    ["file", "is not a socket: move it away, then start again"],
    ["taken.sock", "another server listens on"],
  ] as const) {
    it(`the server does not start with the socket path ${place}`, async () => {
      const directory = temporaryDirectory();
      writeFileSync(join(directory, "file"), "kept");
      await startTestServer({ socket: join(directory, "taken.sock") });
      let error: unknown = null;
      const started: Promise<TestServer> = startTestServer({ brokerPort: 0, brokerSocket: join(directory, place) });
      await started.catch((thrown: unknown) => {
        error = thrown;
      });
      expect(String(error)).to.contain(says);
    });
  }
});
