/** Approvals that are remembered: for as long as the person said, and never longer than the binding says now. */
import { expect } from "chai";
import { bind, sendThrough, startAgent, startUpstream, startWithBroker, value } from "../../tools/rig/broker-rig.js";
import { shared } from "../../tools/rig/clean-up.js";
import { type Json, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { FakeClock } from "../support/manual-clock.js";

describe("approvals", function () {
  this.timeout(60_000);
  const clock = new FakeClock();
  const rig = shared(async () => {
    const upstream = await startUpstream();
    const server = await startWithBroker([upstream], { clock, idleTimeoutMs: 0 });
    await mustPut(server, "app/key", { value });
    return { server, upstream, at: `localhost:${upstream.port}` };
  });

  async function rebind(ask: string): Promise<void> {
    const { server, upstream } = rig();
    await bind(server, "app/key", { host: "localhost", port: upstream.port, private: true, ask });
  }

  /** Sends a request; returns its status, and whether it had to be approved, which it then is for the session. */
  async function request(agent: Awaited<ReturnType<typeof startAgent>>) {
    const { server, at } = rig();
    const head = `GET /x HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`;
    let response: string | null = null;
    const ended = sendThrough(agent, at, head).then((text) => {
      response = text;
    });
    let wasAsked = false;
    while (response === null) {
      const { approvals } = mustSucceed(await send(server, { path: "/v1/approvals" })) as { approvals: Json[] };
      for (const { id } of approvals) {
        wasAsked = true;
        const body = { approve: true, for: "session" };
        mustSucceed(await send(server, { method: "POST", path: `/v1/approvals/${id}`, body }));
      }
    }
    await ended;
    return { status: /^HTTP\/1.1 (\d+)/.exec(response)?.[1], wasAsked };
  }

  it("an approval for the session lasts as long as the changed binding allows", async () => {
    await rebind("session");
    const agent = await startAgent(rig().server);
    expect(await request(agent)).to.deep.equal({ status: "200", wasAsked: true });
    clock.advance(3_600_000);
    expect(await request(agent)).to.deep.equal({ status: "200", wasAsked: false });
    await rebind("10m");
    expect(await request(agent)).to.deep.equal({ status: "200", wasAsked: true });
    clock.advance(599_000);
    expect(await request(agent)).to.deep.equal({ status: "200", wasAsked: false });
    clock.advance(1_000);
    expect(await request(agent)).to.deep.equal({ status: "200", wasAsked: true });
    await rebind("request");
    expect(await request(agent)).to.deep.equal({ status: "200", wasAsked: true });
  });
});
