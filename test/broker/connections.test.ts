/** Connections that programs hold or leave: none of them takes the broker, or a person's attention, from the others. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect } from "chai";
import { later, shared } from "../support/clean-up.js";
import type { TestServer } from "../support/server.js";
import { type Json, mustPut, mustSucceed, send } from "../support/test-client.js";
import {
  bind,
  openTunnel,
  sendThrough,
  startAgent,
  startTls,
  startUpstream,
  startWithBroker,
  type Upstream,
  value,
} from "./broker-rig.js";

type Rig = { readonly server: TestServer; readonly upstream: Upstream; readonly at: string };

describe("a program's connection", () => {
  const rig = shared(async (): Promise<Rig> => {
    const upstream = await startUpstream();
    const server = await startWithBroker([upstream], { limits: { headersTimeout: 300 } });
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
    it(`is closed when it ${what}`, async () => {
      const { brokerPort } = rig().server;
      const socket = connect(Number(brokerPort), "127.0.0.1");
      later(() => void socket.destroy());
      socket.on("error", () => {}).resume();
      socket.write(bytes);
      await once(socket, "close");
    });
  }

  it("that is closed before its request is approved sends nothing", async () => {
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

  it("can wait for approval with 15 others of its token, and with any number of other tokens", async () => {
    const { server, upstream, at } = rig();
    upstream.seen.length = 0;
    const [greedy, other] = [await startAgent(server), await startAgent(server)];
    const targets = Array.from({ length: 16 }, (_, i) => `/greedy/${i}`);
    const asked = targets.map((target) => sendThrough(greedy, at, get(at, target)));
    await waiting(...targets);
    expect(await sendThrough(greedy, at, get(at, "/greedy/17"))).to.match(/^HTTP\/1.1 403 .*too many requests/s);
    const answered = sendThrough(other, at, get(at, "/other"));
    await decide(["/other"], true);
    expect(await answered).to.match(/^HTTP\/1.1 200 /);
    await decide(targets, false);
    for (const response of await Promise.all(asked)) expect(response).to.match(/^HTTP\/1.1 403 .*not approved/s);
    expect(upstream.seen.map(({ url }) => url)).to.deep.equal(["/other"]);
  });
});
