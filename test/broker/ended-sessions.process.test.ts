/** Commands that make a token for a while and are ended while they do: the token does not stay. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join, resolve } from "node:path";
import { expect } from "chai";
import { brokerRig } from "../../tools/rig/broker-rig.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment, node } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustSucceed, send } from "../../tools/rig/test-client.js";
import { start, strongroom } from "../cli/run-command.js";
import { closedGate } from "../support/latch.js";

type Gate = { readonly socket: string; readonly reached: Promise<void>; readonly open: () => void };

describe("commands with a temporary token", function () {
  this.timeout(60_000);
  const servers = brokerRig({ socket: null });
  before(function () {
    needs(this, process.platform !== "win32", "Unix");
  });

  /** A socket that leads to the server's, and holds the response that contains this text. */
  async function startGate(text: string): Promise<Gate> {
    const [arrival, departure] = [closedGate(), closedGate()];
    const open = new Set<Socket>();
    const proxy = createServer((client) => {
      const upstream = connect(servers().server.socket ?? "");
      for (const each of [client, upstream]) open.add(each.on("error", () => {}));
      client.pipe(upstream);
      upstream.on("data", (chunk: Buffer) => {
        if (!chunk.includes(text)) return void client.write(chunk);
        arrival.open();
        void departure.passed.then(() => client.write(chunk));
      });
    });
    const socket = join(temporaryDirectory(), "gate.sock");
    proxy.listen(socket);
    await once(proxy, "listening");
    chmodSync(socket, 0o600);
    later(() => {
      departure.open();
      for (const each of open) each.destroy();
      proxy.close();
    });
    return { socket, reached: arrival.passed, open: departure.open };
  }

  async function tokens(server: TestServer): Promise<readonly { readonly name: string }[]> {
    const listed = mustSucceed(await send(server, { method: "GET", path: "/v1/tokens" }));
    return listed["tokens"] as unknown as readonly { readonly name: string }[];
  }

  const agent = ["agent", "run", "--no-sandbox", "--use", "app/", "--", "true"];
  const rows: readonly (readonly [signal: NodeJS.Signals, args: readonly string[], token: string])[] = [
    ["SIGTERM", agent, '"agent-'],
    ["SIGINT", agent, '"agent-'],
    ["SIGHUP", agent, '"agent-'],
    ["SIGQUIT", agent, '"agent-'],
    ["SIGTERM", ["ssh-agent", "--foreground"], '"ssh-agent-'],
    ["SIGHUP", ["ssh-agent", "--", "true"], '"ssh-agent-'],
    ["SIGINT", ["ssh-agent"], '"ssh-agent-'],
  ];
  for (const [signal, args, token] of rows) {
    it(`${args.slice(0, 2).join(" ")} revokes a token that arrives after ${signal}`, async () => {
      const { server } = servers();
      const gate = await startGate(token);
      const { child } = start(server, args, {
        environment: { STRONGROOM_SOCKET: gate.socket, STRONGROOM_TOKEN: server.token },
      });
      const ended = once(child, "close");
      await gate.reached;
      expect(await tokens(server)).to.have.lengthOf(1);
      child.kill(signal);
      gate.open();
      await ended; // by the signal, or by what handled it when the response overtook it
      expect(await tokens(server)).to.deep.equal([]);
    });
  }

  it("agent run revokes its token when its output has no reader", async () => {
    const { server } = servers();
    const gate = await startGate('"agent-');
    const { child } = start(server, agent, {
      environment: { STRONGROOM_SOCKET: gate.socket, STRONGROOM_TOKEN: server.token },
    });
    const ended = once(child, "exit");
    await gate.reached;
    child.stderr.destroy();
    child.stdout.destroy();
    gate.open();
    expect(await ended).to.deep.equal([0, null]);
    expect(await tokens(server)).to.deep.equal([]);
  });

  it("ssh-agent revokes its token when it cannot start in the background", async () => {
    const { server } = servers();
    const gate = await startGate("nothing is held");
    const { code, stderr } = await strongroom(server, ["ssh-agent", "--socket", "/nowhere/agent"], {
      environment: { STRONGROOM_SOCKET: gate.socket, STRONGROOM_TOKEN: server.token },
    });
    expect(code, stderr).not.to.equal(0);
    expect(await tokens(server)).to.deep.equal([]);
  });

  it("mcp revokes its token when its client closes the input and sends signals immediately", async () => {
    const { server } = servers();
    const gate = await startGate('"agent-');
    const given = { STRONGROOM_HOME: server.home, STRONGROOM_SOCKET: gate.socket, STRONGROOM_TOKEN: server.token };
    const child = spawn(node, [resolve("dist/mcp/strongroom-mcp.mjs"), "--use", "app/"], { env: environment(given) });
    const ended = once(child, "exit");
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } };
    const request = { name: "request", arguments: { url: "https://localhost:1/" } };
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`);
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: request })}\n`);
    await gate.reached;
    child.stdin.end();
    for (const signal of ["SIGTERM", "SIGTERM", "SIGHUP", "SIGHUP"] as const) child.kill(signal);
    gate.open();
    expect(await ended).to.deep.equal([0, null]);
    expect(await tokens(server)).to.deep.equal([]);
  });
});
