/** The review page's access: its code, and what its token can do and when it ends. */
import { readFileSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { passphrase, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  type ApiResponse,
  type Json,
  mustInit,
  mustLock,
  mustPut,
  mustRefuse,
  mustSucceed,
  send,
} from "../../tools/rig/test-client.js";
import { strongroom } from "../cli/command-rows.js";
import { FakeClock } from "../support/manual-clock.js";

const page = { reviewPage: true };

async function startWithPage(): Promise<TestServer & { readonly clock: FakeClock }> {
  const clock = new FakeClock();
  const server = await startTestServer({ ...page, clock, idleTimeoutMs: 0 });
  await mustInit(server);
  await mustPut(server, "a", "value");
  return { ...server, clock };
}

async function createCode(server: TestServer): Promise<string> {
  return String(mustSucceed(await send(server, { method: "POST", path: "/v1/review" }))["code"]);
}

function trade(server: TestServer, code: string): Promise<ApiResponse> {
  return send(server, { method: "POST", path: "/v1/review/token", body: { code }, token: null });
}

async function createToken(server: TestServer): Promise<string> {
  return String(mustSucceed(await trade(server, await createCode(server)))["token"]);
}

/** Resolves with the first line of the figures, and what closes the connection. */
function watch(server: TestServer, token: string): Promise<{ readonly line: string; readonly close: () => void }> {
  const { url, certificate: ca } = server;
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const request = get(`${url}/v1/vitals`, { ca, headers, agent: false }, (response) => {
      response.once("data", (line: Buffer) => resolve({ line: line.toString(), close: () => request.destroy() }));
    });
    request.on("error", reject);
  });
}

/** The page is no endpoint of the API's description. */
function statusOfPage({ url, certificate: ca, token }: TestServer): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const request = get(`${url}/review/`, { ca, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on("error", reject);
  });
}

describe("review codes", () => {
  it("a review code works once, and not after a minute", async () => {
    const server = await startWithPage();
    const code = await createCode(server);
    mustSucceed(await trade(server, code));
    mustRefuse(await trade(server, code), 401, "UNAUTHORIZED");
    const late = await createCode(server);
    server.clock.advance(60_000);
    mustRefuse(await trade(server, late), 401, "UNAUTHORIZED");
    mustRefuse(await trade(server, "x".repeat(43)), 401, "UNAUTHORIZED");
    const malformed = await send(server, { method: "POST", path: "/v1/review/token", body: "{", token: null });
    mustRefuse(malformed, 400, "BAD_REQUEST");
  });

  for (const [what, end] of [
    ["a lock", (server: TestServer) => mustLock(server)],
    ["a forced init", (server: TestServer) => mustInit(server, { passphrase, force: true })],
  ] as const) {
    it(`${what} ends a review code and the token of an open page`, async () => {
      const server = await startWithPage();
      const token = await createToken(server);
      const { close } = await watch(server, token);
      const code = await createCode(server);
      await end(server);
      mustRefuse(await trade(server, code), 401, "UNAUTHORIZED");
      mustRefuse(await send(server, { path: "/v1/metrics", token }), 401, "UNAUTHORIZED");
      close();
    });
  }

  it("a review code switches the page on until its token ends, or until it has expired", async () => {
    const clock = new FakeClock();
    const server = await startTestServer({ clock, idleTimeoutMs: 0 });
    await mustInit(server);
    const pageStatus = () => statusOfPage(server);
    expect(await pageStatus()).to.equal(404);
    const token = await createToken(server);
    expect(await pageStatus()).to.equal(200);
    (await watch(server, token)).close();
    while ((await pageStatus()) === 200) await new Promise((resolve) => setImmediate(resolve));
    await createCode(server);
    expect(await pageStatus()).to.equal(200);
    clock.advance(60_000);
    expect(await pageStatus()).to.equal(404);
  });

  it("strongroom review prints address and code where no browser can be started", async () => {
    const server = await startTestServer();
    await mustInit(server);
    const { code, stdout, stderr } = await strongroom({ STRONGROOM_HOME: server.home, DISPLAY: "" }, ["review"]);
    expect(code, stderr).to.equal(0);
    expect(stdout).to.match(/^https:\/\/localhost:\d+\/review\/#[\w-]{43}\n$/);
    expect(stderr).to.equal("no browser can be started here: open this address within a minute\n");
  });

  it("--review-page off refuses the review page and its code", async () => {
    const server = await startTestServer({ reviewPage: false });
    await mustInit(server);
    mustRefuse(await send(server, { method: "POST", path: "/v1/review" }), 404, "NOT_FOUND");
    mustRefuse(await send(server, { path: "/review/" }), 404, "NOT_FOUND");
  });
});

describe("review tokens", () => {
  it("a review token reads metrics, audit and facts, and no secret", async () => {
    const server = await startWithPage();
    const token = await createToken(server);
    for (const path of ["/v1/metrics", "/v1/audit", "/v1/review"]) {
      expect((await send(server, { path, token })).status, path).to.equal(200);
    }
    const forbidden: readonly (readonly [method: string, path: string, body?: object])[] = [
      ["GET", "/v1/secrets/a"],
      ["GET", "/v1/secrets"],
      ["PUT", "/v1/secrets/a", { value: "x" }],
      ["POST", "/v1/unlock", { passphrase }],
      ["POST", "/v1/review"],
      ["GET", "/v1/tokens"],
      ["POST", "/v1/batch", { operations: [{ get: "a" }] }],
    ];
    for (const [method, path, body] of forbidden) {
      mustRefuse(await send(server, { method, path, token, ...(body && { body }) }), 403, "FORBIDDEN");
    }
  });

  it("a review token ends with its page, a lock, a newer page, or after 15 minutes", async () => {
    const server = await startWithPage();
    const isDead = async (token: string) => (await send(server, { path: "/v1/metrics", token })).status === 401;
    const first = await createToken(server);
    const second = await createToken(server);
    expect([await isDead(first), await isDead(second)]).to.deep.equal([true, false]);
    const { line, close } = await watch(server, second);
    expect(Object.keys(JSON.parse(line))).to.deep.equal([
      ...["time", "requests", "getP50", "getP99", "eventLoopP99", "derivationsRunning", "derivationsWaiting"],
      ...["keyWorkerP99", "connections", "rss", "stormGetP99", "bareP99"],
    ]);
    close();
    while (!(await isDead(second))) await new Promise((resolve) => setImmediate(resolve));
    const third = await createToken(server);
    await mustLock(server);
    expect(await isDead(third)).to.equal(true);
    mustSucceed(await send(server, { method: "POST", path: "/v1/unlock", body: { passphrase } }));
    const unopened = await createToken(server);
    server.clock.advance(10_000);
    expect(await isDead(unopened)).to.equal(true);
    const fourth = await createToken(server);
    await watch(server, fourth);
    server.clock.advance(15 * 60_000);
    expect(await isDead(fourth)).to.equal(true);
  });

  it("GET /v1/review shows the last result of prove, and nothing that prove does not write", async () => {
    const server = await startWithPage();
    const token = await createToken(server);
    const last = async () => mustSucceed(await send(server, { path: "/v1/review", token }))["lastProve"];
    expect(await last()).to.equal(null);
    const file = join(server.home, "last-prove.json");
    const result = { at: "2026-03-01T12:00:00.000Z", verdict: "fails", checks: 41, failed: 2 };
    writeFileSync(file, JSON.stringify({ ...result, other: "x" }));
    expect(await last()).to.deep.equal(result);
    for (const text of ["{", '{"at":"<b>","verdict":"holds","checks":1,"failed":0}', " ".repeat(5000)]) {
      writeFileSync(file, text);
      expect(await last()).to.equal(null);
    }
  });

  it("GET /v1/review shows a check of the audit log that is at most 30 seconds old", async () => {
    const server = await startWithPage();
    for (let i = 0; i < 150; i++) await mustPut(server, `app/${i}`, "value");
    const token = await createToken(server);
    const { close } = await watch(server, token); // otherwise the token ends within 30 seconds
    const check = async () => mustSucceed(await send(server, { path: "/v1/review", token }))["audit"] as Json;
    const before = await check();
    expect(before).to.include({ firstSeq: 1, problemCount: 0 });
    expect(before["records"]).to.be.above(100);
    const file = join(server.home, "audit", "audit-000001.jsonl");
    writeFileSync(file, readFileSync(file, "utf8").replace("app/70", "app/71"));
    expect(await check()).to.deep.equal(before);
    server.clock.advance(30_000);
    const after = await check();
    expect(after["problemCount"]).to.be.above(0);
    expect(JSON.stringify(after["problems"])).to.contain("audit-000001.jsonl");
    close();
  });

  it("a storm runs 16 unlocks, of which a wrong passphrase is checked once", async () => {
    const server = await startWithPage();
    const token = await createToken(server);
    const storm = (text: string) =>
      send(server, { method: "POST", path: "/v1/review/storm", token, body: { passphrase: text } });
    expect(mustSucceed(await storm(passphrase))["unlocks"]).to.equal(16);
    for (let i = 0; i < 9; i++) mustRefuse(await storm("wrong"), 401, "UNAUTHORIZED");
    expect(mustSucceed(await storm(passphrase))["unlocks"]).to.equal(16);
    mustRefuse(await storm("wrong"), 401, "UNAUTHORIZED");
    mustRefuse(await storm(passphrase), 429, "RATE_LIMITED");
  });
});

describe("gets during a storm", () => {
  /** Storms until one lasted long enough for a get, and the stream has shown it; returns both. */
  async function stormWithGets(server: TestServer): Promise<{ readonly storm: Json; readonly line: Json }> {
    let line: Json | undefined;
    const request = get(`${server.url}/v1/vitals`, {
      ...{ ca: server.certificate, agent: false },
      headers: { authorization: `Bearer ${server.token}` },
    });
    request.on("error", () => {});
    request.on("response", (response) => {
      response.on("data", (text: Buffer) => {
        const found = JSON.parse(text.toString()) as Json;
        if (found["stormGetP99"] !== null) line = found;
      });
    });
    for (;;) {
      const storm = mustSucceed(await send(server, { method: "POST", path: "/v1/review/storm", body: { passphrase } }));
      if (storm["gets"] === 0 || line === undefined) continue;
      request.destroy();
      return { storm, line };
    }
  }

  it("a storm's gets are real ones, in its response and in the stream, with a bare server's round trips", async () => {
    const server = await startTestServer({ ...page, socket: join(temporaryDirectory(), "s"), audit: "all" });
    await mustInit(server);
    await mustPut(server, "ä b/c", "value");
    const { storm, line } = await stormWithGets(server);
    expect(
      [storm["getP99"], storm["bareP99"], line["stormGetP99"], line["bareP99"]].map((each) => typeof each),
    ).to.deep.equal(Array(4).fill("number"));
    const { records } = mustSucceed(await send(server, { path: "/v1/audit?limit=1000" }));
    const read = (records as Json[]).filter(({ event, path }) => event === "get" && path === "ä b/c");
    expect(read.length).to.be.at.least(Number(storm["gets"]));
    expect(read[0]).to.include({ token: "review page" });
  });

  for (const [what, settings, hasSecret] of [
    ["a secret", { socket: null }, false],
    ["a socket", { socket: "off" }, true],
  ] as const) {
    it(`a storm runs no gets without ${what}`, async () => {
      const server = await startTestServer({ ...page, ...settings });
      await mustInit(server);
      if (hasSecret) await mustPut(server, "a", "value");
      const storm = mustSucceed(await send(server, { method: "POST", path: "/v1/review/storm", body: { passphrase } }));
      expect(storm).to.include({ unlocks: 16, gets: 0, getP99: null, bareP99: null });
    });
  }
});

describe("the stream", () => {
  it("the stream of figures ends without harm to the server for a client that does not read", async () => {
    const socket = join(temporaryDirectory(), "s");
    const server = await startTestServer({ socket });
    const { token } = server;
    const getRequest = (path: string) =>
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const status = getRequest("/v1/status");
    const openWith = (text: string): Socket => {
      const client = connect(socket).pause();
      later(() => void client.destroy());
      client.write(text);
      return client;
    };
    const fitting = await sentUntilFull(server, () => openWith(status.repeat(3000)));
    // One of these fills what the kernel holds just after the beginning of a stream, before its last line.
    for (let count = fitting - 4; count <= fitting; count++)
      openWith(status.repeat(count) + getRequest("/v1/vitals?lines=1").repeat(2));
    const end = (await readLines(server, 4)).at(-1);
    expect(end).to.include({ derivationsRunning: 0 });
  });
});

/** Returns how many responses the kernel takes for a client that does not read. */
async function sentUntilFull(server: TestServer, open: () => unknown): Promise<number> {
  const sent = () => server.logged().match(/"route":"\/v1\/status"/g)?.length ?? 0;
  open();
  for (let before = -1; before !== sent() || before === 0; ) {
    before = sent();
    await readLines(server, 1);
  }
  return sent();
}

/** Returns the next lines of the stream, one a second. */
async function readLines(server: TestServer, count: number): Promise<Json[]> {
  const { text } = await send(server, { path: `/v1/vitals?lines=${count}` });
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Json);
}
