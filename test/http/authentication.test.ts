/** docs/reference/http-api.md, Authentication: token, lockout, passphrase counter. */
import { expect } from "chai";
import {
  passphrase,
  realScryptCost,
  shareTestServer,
  startTestServer,
  type TestServer,
} from "../../tools/rig/server.js";
import {
  type ApiResponse,
  mustInit,
  mustRefuse,
  mustStatus,
  mustSucceed,
  mustUnlock,
  parseRaw,
  send,
  sendRaw,
} from "../../tools/rig/test-client.js";
import { FakeClock } from "../support/manual-clock.js";

const endpoints: readonly (readonly [string, string])[] = [
  ["POST", "/v1/init"],
  ["POST", "/v1/unlock"],
  ["POST", "/v1/lock"],
  ["POST", "/v1/shutdown"],
  ["PUT", "/v1/secrets/a"],
  ["GET", "/v1/secrets/a"],
  ["DELETE", "/v1/secrets/a"],
  ["GET", "/v1/secrets"],
  ["POST", "/v1/status"],
  ["GET", "/v1/no-such-route"],
  ["GET", "/"],
];

/** Shares a server in a `describe`, and its clock, which ends every lockout and every count before each test. */
function shareServerWithoutFailures(prepare?: (server: TestServer) => Promise<unknown>): {
  readonly server: () => TestServer;
  readonly clock: FakeClock;
} {
  const clock = new FakeClock();
  const server = shareTestServer({ clock, idleTimeoutMs: 0 }, prepare);
  beforeEach(() => clock.advance(300_000));
  return { server, clock };
}

describe("bearer token", () => {
  const shared = shareServerWithoutFailures();

  for (const [method, path] of endpoints) {
    it(`${method} ${path} without a token returns 401 UNAUTHORIZED with WWW-Authenticate: Bearer`, async () => {
      const server = shared.server();
      const answer = await send(server, { method, path, token: null, body: method === "GET" ? "" : "{}" });
      mustRefuse(answer, 401, "UNAUTHORIZED");
      expect(answer.headers["www-authenticate"]).to.equal("Bearer");
    });
  }

  const accepted: readonly (readonly [string, (token: string) => string])[] = [
    ["Bearer and the token", (token) => `Bearer ${token}`],
    ["the scheme in lower case", (token) => `bearer ${token}`],
    ["the scheme in upper case", (token) => `BEARER ${token}`],
    ["several spaces before the token", (token) => `Bearer   ${token}`],
  ];
  const refused: readonly (readonly [string, (token: string) => string])[] = [
    ["another token", () => `Bearer srt_${"A".repeat(43)}`],
    ["the token's beginning", (token) => `Bearer ${token.slice(0, -1)}`],
    ["the token and more", (token) => `Bearer ${token}x`],
    ["the token in other case", (token) => `Bearer ${token.toUpperCase()}`],
    ["two tokens", (token) => `Bearer ${token} ${token}`],
    ["two tokens with a comma", (token) => `Bearer ${token},${token}`],
    ["no token", () => "Bearer"],
    ["no scheme", (token) => token],
    ["another scheme", (token) => `Basic ${token}`],
    ["nothing at all", () => ""],
  ];

  for (const [name, header] of accepted) {
    it(`accepts an Authorization header with ${name}`, async () => {
      const headers = { authorization: header(shared.server().token) };
      mustSucceed(await send(shared.server(), { method: "POST", path: "/v1/lock", token: null, headers }));
    });
  }

  for (const [name, header] of refused) {
    it(`refuses an Authorization header with ${name}`, async () => {
      const server = shared.server();
      const headers = { authorization: header(server.token) };
      mustRefuse(await send(server, { method: "POST", path: "/v1/lock", token: null, headers }), 401, "UNAUTHORIZED");
    });
  }

  it("refuses a request with two Authorization headers", async () => {
    const server = shared.server();
    const line = `Authorization: Bearer ${server.token}\r\n`;
    const answer = await sendRaw(server, `POST /v1/lock HTTP/1.1\r\nHost: localhost\r\n${line}${line}\r\n`);
    expect(parseRaw(answer).status).to.equal(401);
  });

  it("refuses a token in the query", async () => {
    const server = shared.server();
    for (const name of ["token", "access_token", "authorization"]) {
      const path = `/v1/lock?${name}=${server.token}`;
      mustRefuse(await send(server, { method: "POST", path, token: null }), 401, "UNAUTHORIZED");
    }
  });

  it("checks the token before it reads any byte of the body", async () => {
    const server = shared.server();
    const head = "POST /v1/init HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
    const { status, head: answer } = parseRaw(await sendRaw(server, head));
    expect(status).to.equal(401);
    expect(answer).to.match(/connection: close/i);
  });

  it("sends 100 Continue only after the token is accepted", async () => {
    const server = shared.server();
    const expectation = "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    const refusedAnswer = await sendRaw(server, `POST /v1/init HTTP/1.1\r\nHost: localhost\r\n${expectation}`);
    expect(refusedAnswer).to.match(/^HTTP\/1\.1 401/);
    const authorization = `Authorization: Bearer ${server.token}\r\n`;
    const asked = await sendRaw(server, `POST /v1/init HTTP/1.1\r\nHost: localhost\r\n${authorization}${expectation}`);
    expect(asked).to.match(/^HTTP\/1\.1 100 Continue/);
  });

  it("clients that send 4 MiB with a wrong token still receive their 401", async () => {
    const server = shared.server();
    const body = Buffer.alloc(4 * 2 ** 20, "x");
    for (let i = 0; i < 9; i++) {
      mustRefuse(await send(server, { method: "POST", path: "/v1/init", token: "wrong", body }), 401, "UNAUTHORIZED");
    }
  });
});

async function failTimes(server: TestServer, times: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < times; i++) {
    statuses.push((await send(server, { method: "POST", path: "/v1/lock", token: "wrong" })).status);
  }
  return statuses;
}

describe("lockout", () => {
  const shared = shareServerWithoutFailures();
  const { clock } = shared;

  it("the tenth failure within a minute still returns 401, the eleventh request 429 with Retry-After", async () => {
    const server = shared.server();
    expect(await failTimes(server, 10)).to.deep.equal(Array(10).fill(401));
    const answer = await send(server, { method: "POST", path: "/v1/lock", token: "wrong" });
    mustRefuse(answer, 429, "RATE_LIMITED");
    expect(answer.headers["retry-after"]).to.equal("300");
  });

  for (const [method, path] of endpoints) {
    it(`${method} ${path} is refused during a lockout, also with a valid token`, async () => {
      const server = shared.server();
      await failTimes(server, 10);
      mustRefuse(await send(server, { method, path }), 429, "RATE_LIMITED");
    });
  }

  it("a lockout lasts 300 s: refused at 299.999 s, accepted at 300 s", async () => {
    const server = shared.server();
    await failTimes(server, 10);
    clock.advance(299_999);
    const answer = await send(server, { method: "POST", path: "/v1/lock" });
    mustRefuse(answer, 429, "RATE_LIMITED");
    expect(answer.headers["retry-after"]).to.equal("1");
    clock.advance(1);
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
  });

  it("requests during a lockout do not extend it, and the count starts again after it", async () => {
    const server = shared.server();
    await failTimes(server, 10);
    clock.advance(200_000);
    expect(await failTimes(server, 20)).to.deep.equal(Array(20).fill(429));
    clock.advance(100_000);
    expect(await failTimes(server, 9)).to.deep.equal(Array(9).fill(401));
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
  });

  it("failures older than 60 s do not count towards a lockout", async () => {
    const server = shared.server();
    await failTimes(server, 5);
    clock.advance(59_999);
    await failTimes(server, 4);
    clock.advance(1);
    expect(await failTimes(server, 5)).to.deep.equal(Array(5).fill(401));
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
    expect(await failTimes(server, 1)).to.deep.equal([401]);
    mustRefuse(await send(server, { method: "POST", path: "/v1/lock" }), 429, "RATE_LIMITED");
  });

  it("successful requests never count as failures and never clear the count", async () => {
    const server = shared.server();
    await failTimes(server, 9);
    for (let i = 0; i < 30; i++) mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
    expect(await failTimes(server, 1)).to.deep.equal([401]);
    mustRefuse(await send(server, { method: "POST", path: "/v1/lock" }), 429, "RATE_LIMITED");
  });

  it("counts a request without a token as a failure only at an endpoint", async () => {
    const server = shared.server();
    const ask = async (path: string, headers = {}) => (await send(server, { path, token: null, headers })).status;
    for (const path of ["/", "/favicon.ico", "/v1/no-such", "/v2/status", "/review/", "/v1/secretsx"])
      for (let n = 0; n < 10; n++) expect(await ask(path), path).to.equal(401);
    expect(await ask("/", { authorization: "Basic dXNlcjpwYXNzd29yZA==" })).to.equal(401);
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
    expect(await ask("/favicon.ico", { authorization: "Bearer wrong" }), "a guess counts anywhere").to.equal(401);
    for (const path of ["/v1/secrets/a", "/v1/unlock", "/v1/keys"])
      for (let n = 0; n < 3; n++) expect(await ask(path), path).to.equal(401);
    mustRefuse(await send(server, { method: "POST", path: "/v1/lock" }), 429, "RATE_LIMITED");
  });

  it("200 concurrent valid requests, half of them cancelled, never count as failures", async () => {
    const server = await startTestServer({ clock: new FakeClock() });
    await mustInit(server);
    const { connectRaw } = await import("../../tools/rig/test-client.js");
    const cancelled = Array.from({ length: 100 }, () => {
      const socket = connectRaw(server);
      socket.on("error", () => {});
      return new Promise<void>((resolve) => {
        socket.once("secureConnect", () => {
          socket.write(`GET /v1/secrets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n\r\n`);
          socket.destroy();
          resolve();
        });
      });
    });
    const valid = Array.from({ length: 100 }, () => send(server, { path: "/v1/secrets" }));
    await Promise.all(cancelled);
    for (const answer of await Promise.all(valid)) mustSucceed(answer);
    mustSucceed(await send(server, { path: "/v1/secrets" }));
  });

  it("40 wrong tokens and a right one, pipelined in one TCP segment, get ten 401, then only 429", async () => {
    const server = shared.server();
    const request = (token: string) =>
      `POST /v1/lock HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    const answers = await sendRaw(server, request("wrong").repeat(40) + request(server.token));
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    expect(statuses).to.deep.equal([...Array(10).fill("401"), ...Array(31).fill("429")]);
  });

  it("GET /v1/status is never refused during a lockout", async () => {
    const server = shared.server();
    await failTimes(server, 10);
    for (let i = 0; i < 30; i++) mustSucceed(await send(server, { path: "/v1/status", token: null }));
  });

  it("a lockout applies to one socket address, whatever proxy headers say", async () => {
    const server = shared.server();
    for (let i = 0; i < 10; i++) {
      const headers = { "x-forwarded-for": `10.0.0.${i}`, forwarded: `for=10.0.0.${i}` };
      await send(server, { method: "POST", path: "/v1/lock", token: "wrong", headers, localAddress: "127.0.0.2" });
    }
    mustRefuse(
      await send(server, { method: "POST", path: "/v1/lock", localAddress: "127.0.0.2" }),
      429,
      "RATE_LIMITED",
    );
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock", localAddress: "127.0.0.3" }));
  });

  it("a lockout is checked before unknown routes, a locked vault and malformed paths", async () => {
    const server = shared.server();
    await failTimes(server, 10);
    for (const path of ["/nowhere", "/v1/secrets/a", "/v1/secrets/%zz"]) {
      mustRefuse(await send(server, { path }), 429, "RATE_LIMITED");
    }
  });
});

describe("wrong passphrase", () => {
  const wrong = { method: "POST", path: "/v1/unlock", body: { passphrase: "wrong" } };
  const right = { method: "POST", path: "/v1/unlock", body: { passphrase } };
  const shared = shareServerWithoutFailures(mustInit);
  const { clock } = shared;
  beforeEach(() => mustUnlock(shared.server()));

  it("a wrong passphrase returns 401 UNAUTHORIZED with WWW-Authenticate: Bearer", async () => {
    const answer = await send(shared.server(), wrong);
    mustRefuse(answer, 401, "UNAUTHORIZED");
    expect(answer.headers["www-authenticate"]).to.equal("Bearer");
  });

  it("ten wrong passphrases lock out unlock for 300 s, and nothing else", async () => {
    const server = shared.server();
    for (let i = 0; i < 10; i++) mustRefuse(await send(server, wrong), 401, "UNAUTHORIZED");
    const answer = await send(server, right);
    mustRefuse(answer, 429, "RATE_LIMITED");
    expect(answer.headers["retry-after"]).to.equal("300");
    mustSucceed(await send(server, { path: "/v1/secrets" }));
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
    clock.advance(300_000);
    await mustUnlock(server);
  });

  it("a wrong passphrase does not count towards the token lockout, nor a wrong token towards its own", async () => {
    const server = shared.server();
    for (let i = 0; i < 9; i++) await send(server, wrong);
    expect(await failTimes(server, 9)).to.deep.equal(Array(9).fill(401));
    await mustUnlock(server);
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
  });

  it("malformed bodies and a missing vault do not count as wrong passphrases", async () => {
    const server = await startTestServer({ clock: new FakeClock() });
    for (let i = 0; i < 12; i++) mustRefuse(await send(server, right), 400, "BAD_REQUEST");
    await mustInit(server);
    for (let i = 0; i < 12; i++) mustRefuse(await send(server, { ...wrong, body: "{}" }), 400, "BAD_REQUEST");
    await mustUnlock(server);
  });

  it("a right passphrase sent after ten wrong ones gets 429 and unlocks nothing", async () => {
    const server = shared.server();
    mustSucceed(await send(server, { method: "POST", path: "/v1/lock" }));
    const guesses = Array.from({ length: 12 }, () => send(server, wrong));
    await untilRefused(guesses);
    const guess = await send(server, right);
    await Promise.all(guesses);
    expect(guess.status).to.equal(429);
    expect((await mustStatus(server))["locked"]).to.equal(true);
  });

  it("a right passphrase sent after ten wrong ones leaves an unlocked vault unlocked", async () => {
    const server = await startTestServer({ clock: new FakeClock(), ...realScryptCost });
    await mustInit(server);
    await Promise.all(Array.from({ length: 13 }, () => mustStatus(server))); // opens a connection for each guess
    const guesses = Array.from({ length: 12 }, () => send(server, wrong));
    await untilRefused(guesses);
    expect((await send(server, right)).status).to.equal(429);
    await Promise.all(guesses);
    expect((await mustStatus(server))["locked"]).to.equal(false);
  });

  it("16 concurrent wrong passphrases get ten 401 and six 429", async () => {
    const statuses = (await Promise.all(Array.from({ length: 16 }, () => send(shared.server(), wrong)))).map(
      (a) => a.status,
    );
    expect(statuses.filter((status) => status === 401)).to.have.lengthOf(10);
    expect(statuses.filter((status) => status === 429)).to.have.lengthOf(6);
  });

  it("wrong passphrases from all of 127.0.0.0/8 count together", async () => {
    const server = shared.server();
    for (let i = 0; i < 10; i++) {
      mustRefuse(await send(server, { ...wrong, localAddress: `127.0.0.${i + 2}` }), 401, "UNAUTHORIZED");
    }
    for (const localAddress of ["127.0.0.1", "127.9.9.9"]) {
      mustRefuse(await send(server, { ...right, localAddress }), 429, "RATE_LIMITED");
    }
  });
});

describe("failed authentication", () => {
  it("logs failed authentications in one line a minute with their number and addresses", async () => {
    const clock = new FakeClock();
    const server = await startTestServer({ clock });
    for (let i = 0; i < 25; i++) {
      await send(server, { method: "POST", path: "/v1/lock", token: "wrong", localAddress: `127.0.0.${2 + (i % 5)}` });
    }
    const lines = () => server.logged().match(/.*authentication-failures.*/g) ?? [];
    expect(lines()).to.deep.equal([]);
    clock.advance(60_000);
    expect(lines().map((line) => JSON.parse(line) as object)).to.have.lengthOf(1);
    expect(JSON.parse(lines()[0] ?? "")).to.include({ hint: "wrong tokens", count: 25, addresses: 5, level: "warn" });
    clock.advance(60_000);
    await send(server, { method: "POST", path: "/v1/lock", token: "wrong" });
    clock.advance(60_000);
    expect(lines()).to.have.lengthOf(2);
  });
});

/** Resolves once a guess is refused: ten wrong ones are then counted or being checked. */
async function untilRefused(guesses: readonly Promise<ApiResponse>[]): Promise<void> {
  await Promise.any(guesses.map(async (guess) => expect((await guess).status).to.equal(429)));
}
