/** `strongroom mcp` against a hostile client: it shows no value, keeps serving, and ends its session when the client goes. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { bind, startUpstream, startWithBroker, type Upstream } from "../../tools/rig/broker-rig.js";
import { later, shared } from "../../tools/rig/clean-up.js";
import { mainFile, node } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { closedGate } from "../support/latch.js";
import { needsSandbox, ownEnvironment, user } from "./plain-user.js";

const value = "Hx7q2RkV9mT4wZ8cLp3NsB6yDf1JgA5e";
const nextValue = "uE5tK8vYc2XnW7rQ4hM9jS1bG6zPd3Fa";

type Rig = {
  readonly server: TestServer;
  readonly upstream: Upstream;
  /** Waits for a request to /slow, whose response then waits for `respond`. */
  readonly arrived: () => Promise<void>;
  readonly respond: () => void;
};
type Message = {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
};

const ping = (id: unknown) => ({ jsonrpc: "2.0", id, method: "ping" });

/** Lines that are no valid message, with the id and the code of the error. */
const invalidLines: readonly (readonly [line: string | Buffer, id: unknown, code: number])[] = [
  ["{nonsense", null, -32700],
  [Buffer.from([0x22, 0xff, 0x22]), null, -32700],
  ["null", null, -32600],
  ["5", null, -32600],
  ["{}", null, -32600],
  ["[]", null, -32600],
  ['{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}', 1, -32600],
  ['{"jsonrpc":"2.0","id":2,"method":"tools/list","params":[]}', 2, -32600],
  ['{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":1}}', 3, -32600],
  ['{"jsonrpc":"2.0","id":4,"method":7}', 4, -32600],
  ['{"jsonrpc":"2.0","id":"5"}', "5", -32600],
  ['{"jsonrpc":"1.0","id":6,"method":"ping"}', 6, -32600],
  ['{"id":7,"method":"ping"}', 7, -32600],
  ['{"jsonrpc":"2.0","id":8,"method":"ping","more":1}', 8, -32600],
  ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 1.5, -32600],
  ['{"jsonrpc":"2.0","id":null,"method":"ping"}', null, -32600],
  ['{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', null, -32600],
  ['{"jsonrpc":"2.0","method":"notifications/initialized","params":null}', null, -32600],
  ['{"jsonrpc":"2.0","id":9,"method":"unknown"}', 9, -32601],
];

/** The program itself, without the command in front of it. */
class Session {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly ended: Promise<unknown[]>;
  readonly messages: Message[] = [];
  shown = "";
  stderr = "";
  #id = 100;

  constructor(server: TestServer) {
    const env = { ...ownEnvironment(server), STRONGROOM_COMMAND: `${node}\n${mainFile}` };
    this.child = spawn(node, [resolve("dist/mcp/strongroom-mcp.mjs"), "--use", "app/"], {
      ...user,
      env,
      cwd: "/",
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.child.stdin.on("error", () => {});
    this.child.stderr.on("data", (text: Buffer) => (this.stderr += text.toString()));
    this.ended = once(this.child, "close");
    let line = "";
    this.child.stdout.on("data", (text: Buffer) => {
      this.shown += text.toString();
      const lines = (line + text.toString()).split("\n");
      line = lines.pop() ?? "";
      for (const each of lines) this.messages.push(JSON.parse(each) as Message);
    });
    later(() => this.end());
  }

  /** By SIGTERM, at which its programs remove their directories; by SIGKILL where that is not enough. */
  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const killed = setTimeout(() => this.child.kill("SIGKILL"), 10_000);
    this.child.kill("SIGTERM");
    await this.ended;
    clearTimeout(killed);
  }

  write(line: string | Buffer): void {
    this.child.stdin.write(Buffer.concat([Buffer.from(line), Buffer.from("\n")]));
  }

  /** Returns the message that follows the line. */
  async next(line: string | Buffer): Promise<Message | readonly Message[]> {
    const before = this.messages.length;
    this.write(line);
    while (this.messages.length === before) await sleep(5);
    return this.messages[before] as Message | readonly Message[];
  }

  async ask(method: string, params: object): Promise<Message> {
    const id = this.#id++;
    this.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return this.answerTo(id);
  }

  async answerTo(id: unknown): Promise<Message> {
    for (;;) {
      const found = this.messages.find((message) => message.id === id);
      if (found !== undefined) return found;
      if (this.child.exitCode !== null) throw new Error(`it has ended: ${this.stderr}`);
      await sleep(10);
    }
  }

  async begin(protocolVersion = "2025-03-26"): Promise<this> {
    const clientInfo = { name: "hostile", version: "1" };
    await this.ask("initialize", { protocolVersion, capabilities: {}, clientInfo });
    this.write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }));
    return this;
  }
}

describe("strongroom mcp with a hostile client", function () {
  this.timeout(0);

  const rig = shared(async (): Promise<Rig> => {
    const [arrived, responding] = [closedGate(), closedGate()];
    const upstream = await startUpstream(["localhost"], async (req, res) => {
      const isSlow = req.url === "/slow";
      if (isSlow) arrived.open();
      if (isSlow) await responding.passed;
      req.resume().on("end", () => res.end(String(req.headers["x-api-key"])));
    });
    const server = await startWithBroker([upstream]);
    await mustPut(server, "app/key", { value });
    await bind(server, "app/key", {
      host: "localhost",
      port: upstream.port,
      private: true,
      header: "x-api-key",
      format: "{}",
    });
    return { server, upstream, arrived: () => arrived.passed, respond: responding.open };
  });
  const call = (session: Session, name: unknown, args: unknown) => session.ask("tools/call", { name, arguments: args });
  const tokens = async () => mustSucceed(await send(rig().server, { path: "/v1/tokens" }))["tokens"] as object[];

  it("mcp continues after malformed and deeply nested lines", async () => {
    const session = await new Session(rig().server).begin();
    const deep = (id: number, params: string) =>
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;
    const lines = [
      ...["", "x", "null", "[]", "{}", "{", '"', "\u0000", "\ud800", "[".repeat(300_000), '{"a":'.repeat(100_000)],
      deep(1, `{"name":"list","arguments":${"[".repeat(200_000)}${"]".repeat(200_000)}}`),
      deep(2, `{"name":"list","arguments":${'{"prefix":'.repeat(200_000)}1${"}".repeat(200_000)}}`),
      deep(3, `{"name":"list","_meta":${'{"a":'.repeat(200_000)}1${"}".repeat(200_000)}}`),
      '{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}',
      '{"jsonrpc":"2.0","id":"__proto__","method":"__proto__"}',
      '{"jsonrpc":"2.0","id":777,"result":{}}',
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"__proto__"}}',
      JSON.stringify({ jsonrpc: "2.0", id: "long", method: "x".repeat(1_000_000) }),
    ];
    for (const line of lines) session.write(line);
    for (const id of [1, 2, 3, "__proto__", "long"]) await session.answerTo(id);
    expect(JSON.stringify(await call(session, "list", {}))).to.contain("app/key");
    expect(session.shown).not.to.contain(value);
  });

  it("mcp responds to each invalid message with a JSON-RPC error", async () => {
    const session = await new Session(rig().server).begin();
    for (const [line, id, code] of invalidLines) {
      const { jsonrpc, error, ...rest } = (await session.next(line)) as Message & { readonly jsonrpc: string };
      expect({ jsonrpc, rest, code: error?.code }, String(line)).to.deep.equal({ jsonrpc: "2.0", rest: { id }, code });
    }
    session.write(`\r\n${JSON.stringify({ jsonrpc: "2.0", id: 777, result: {} })}`); // neither is answered
    expect(await session.next(JSON.stringify(ping("last")))).to.deep.equal({ jsonrpc: "2.0", id: "last", result: {} });
  });

  it("mcp responds to a batch with one list, only in the protocol version with batches", async () => {
    const session = await new Session(rig().server).begin();
    const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 4 } };
    const list = { jsonrpc: "2.0", id: 3, method: "tools/call", params: { name: "list", arguments: {} } };
    const slow = { ...list, id: 4 };
    const batch = [
      ping(1),
      ping(1),
      ping("2"),
      { ...ping(5), method: "initialize" },
      6,
      cancelled,
      list,
      slow,
      cancelled,
    ];
    const responses = (await session.next(JSON.stringify(batch))) as readonly Message[];
    expect(responses.map(({ id }) => id)).to.have.members([1, 1, "2", 5, null, 3]);
    expect(responses.filter(({ error }) => error?.code === -32600).map(({ id }) => id)).to.have.members([5, null]);
    const notification = { jsonrpc: "2.0", method: "notifications/initialized" };
    session.write(JSON.stringify([notification])); // is not answered
    expect(await session.next(JSON.stringify([notification, ping(7)]))).to.deep.equal([
      { jsonrpc: "2.0", id: 7, result: {} },
    ]);
    for (const refused of ["[]", `[${"1,".repeat(1000)}1]`])
      expect(await session.next(refused)).to.deep.include({ jsonrpc: "2.0", id: null });
    const later = await new Session(rig().server).begin("2025-06-18");
    expect(await later.next(JSON.stringify([ping(1)]))).to.deep.include({ jsonrpc: "2.0", id: null });
  });

  it("mcp responds to a call with any name and arguments, and shows no value", async () => {
    const session = await new Session(rig().server).begin();
    const url = `https://localhost:${rig().upstream.port}/`;
    const calls: readonly (readonly [unknown, unknown, RegExp])[] = [
      ["__proto__", {}, /isError/],
      ["constructor", {}, /isError/],
      [1, {}, /error/],
      ["list", null, /error/],
      ["list", { prefix: "\ud800" }, /lone surrogate/],
      ["generate", { path: "app/../x" }, /segment that is/],
      ["request", { url, method: "CONNECT" }, /Invalid arguments/],
      ["request", { url, headers: { Host: "evil.test", HOST: "evil2.test" } }, /HTTP 200.*\*\*\*/],
      ["request", { url, headers: { "Transfer-Encoding": "chunked", "Content-Length": "1" }, body: "a" }, /HTTP 400/],
      ["request", { url, headers: { Connection: "Upgrade", Upgrade: "websocket" } }, /HTTP 101|HTTP 200|no response/],
      ["request", { url, headers: { Cookie: "x".repeat(100_000) } }, /HTTP 400/],
      ["request", { url: "https://localhost\r\nX: y/" }, /Invalid URL/],
      ["run", { command: ["a\u0000b"] }, /isError/],
      ["run", { command: ["true", "x".repeat(3_000_000)] }, /isError/],
    ];
    for (const [name, args, wanted] of calls) {
      const answer = JSON.stringify(await call(session, name, args));
      expect(answer, JSON.stringify([name, args]).slice(0, 100)).to.match(wanted);
    }
    expect(session.shown).not.to.contain(value);
  });

  it("mcp lists invisible characters of a path as JSON escapes", async () => {
    const path = "app/\u{e0041}\u202e\u3164";
    await mustPut(rig().server, path, { value });
    await bind(rig().server, encodeURIComponent(path), { host: "hidden.test" });
    const session = await new Session(rig().server).begin();
    const { result } = await call(session, "list", { prefix: "app/" });
    const [{ text }] = (result as { content: [{ text: string }] }).content;
    expect(text).to.contain("app/\\udb40\\udc41\\u202e\\u3164").and.not.contain("\u202e");
    expect((JSON.parse(text) as { secrets: { path: string }[] }).secrets.map((each) => each.path)).to.contain(path);
  });

  it("mcp hides a value that was replaced while the request ran", async () => {
    const session = await new Session(rig().server).begin();
    const asked = call(session, "request", { url: `https://localhost:${rig().upstream.port}/slow` });
    await rig().arrived();
    await mustPut(rig().server, "app/key", { value: nextValue });
    rig().respond();
    expect(JSON.stringify(await asked)).to.contain("HTTP 200");
    expect(session.shown).not.to.contain(value).and.not.contain(nextValue);
    await mustPut(rig().server, "app/key", { value });
  });

  for (const [what, leave] of [
    ["closes its output", (session: Session) => session.child.stdin.end()],
    ["reads no more", (session: Session) => void session.child.stdout.destroy()],
    ["sends a line of 11 MiB", (session: Session) => session.write("x".repeat(11 * 2 ** 20))],
  ] as const) {
    it(`mcp revokes its token and ends without a stack trace when the client ${what}`, async () => {
      const before = (await tokens()).length;
      const session = await new Session(rig().server).begin();
      await call(session, "request", { url: `https://localhost:${rig().upstream.port}/` });
      expect(await tokens()).to.have.length(before + 1);
      leave(session);
      session.write(JSON.stringify({ jsonrpc: "2.0", id: 5, method: "tools/list" }));
      await session.ended;
      expect(session.stderr).to.match(/^(?:strongroom-mcp: a message is too long\n)?$/);
      expect(await tokens()).to.have.length(before);
    });
  }

  it("mcp kills a program that ignores its timeout", async function () {
    needsSandbox(this);
    const session = await new Session(rig().server).begin();
    const command = ["sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"];
    // 137: killed, since it ignores the end; SIGTERM: the command had not taken it over yet, as on a busy machine
    const ended = JSON.stringify(await call(session, "run", { command, timeoutSeconds: 3 }));
    expect(ended).to.match(/exit status (?:137|143|SIGTERM)/);
  });
});
