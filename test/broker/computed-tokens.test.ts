/** Access tokens that are computed from a secret: apps of GitHub and refresh tokens, against an endpoint of the test. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { expect } from "chai";
import { jwtVerify } from "jose";
import {
  type Agent,
  bind,
  sendThrough,
  startAgent,
  startUpstream,
  startWithBroker,
  type Upstream,
} from "../../tools/rig/broker-rig.js";
import { shared } from "../../tools/rig/clean-up.js";
import type { TestServer } from "../../tools/rig/server.js";
import { type Json, mustLock, mustPut, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";
import { failingFiles } from "../support/failing-files.js";
import { ShiftedClock } from "../support/shifted-clock.js";

const minute = 60_000;

type Answer = (req: IncomingMessage, body: string, res: ServerResponse) => void;

/** Server with a token endpoint and an API; `requests`: what came to the endpoint. `answer`: what it does next. */
class Provider {
  readonly requests: { readonly body: string; readonly authorization: string }[] = [];
  readonly publicKeys: KeyObject[] = [];
  /** The refresh token that it takes. */
  valid = "refresh-0";
  issued = 0;
  lie: Answer | null = null;

  readonly handle = (req: IncomingMessage, res: ServerResponse): void => {
    const pieces: Buffer[] = [];
    req.on("data", (piece: Buffer) => pieces.push(piece));
    req.on("end", () => {
      const body = Buffer.concat(pieces).toString();
      const isToken = req.url === "/token" || req.url?.startsWith("/api/v3/app/") || req.url?.startsWith("/app/");
      if (!isToken) return void res.end("api\n");
      this.requests.push({ body, authorization: req.headers["authorization"] ?? "" });
      if (this.lie !== null) return this.lie(req, body, res);
      if (req.url === "/token") return this.#refresh(new URLSearchParams(body), res);
      const expiresAt = new Date(this.now() + 60 * minute).toISOString();
      json(res, 201, { token: `installation-${this.issued++}`, expires_at: expiresAt });
    });
  };

  now: () => number = () => Date.now();

  #refresh(parameters: URLSearchParams, res: ServerResponse): void {
    if (parameters.get("refresh_token") !== this.valid)
      return void json(res, 400, { error: "invalid_grant", error_description: "words of the endpoint" });
    this.valid = `refresh-${++this.issued}`;
    json(res, 200, {
      access_token: `access-${this.issued}`,
      token_type: "bearer",
      expires_in: 3600,
      refresh_token: this.valid,
    });
  }
}

function json(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
}

type Rig = { readonly server: TestServer; readonly upstream: Upstream; readonly provider: Provider };

const clock = new ShiftedClock();
const disk = failingFiles();

describe("computed access tokens", () => {
  const rig = shared(async (): Promise<Rig> => {
    const provider = new Provider();
    provider.now = () => clock.now();
    const upstream = await startUpstream(["localhost", "127.0.0.1"], provider.handle);
    const brokerLimits = { exchangeMs: 2_000 };
    const options = { clock, files: disk.files, idleTimeoutMs: 0, audit: "changes", brokerLimits } as const;
    const server = await startWithBroker([upstream], options);
    return { server, upstream, provider };
  });

  /** Puts a secret, binds it, and returns a session for it. */
  async function prepare(path: string, secret: string, ...bindings: readonly object[]): Promise<Agent> {
    const { server, upstream, provider } = rig();
    provider.lie = null;
    provider.requests.length = 0;
    await mustPut(server, path, { value: secret });
    for (const binding of bindings)
      await bind(server, path, { host: "localhost", port: upstream.port, private: true, ...binding });
    return startAgent(server, { paths: [path] });
  }

  function call(agent: Agent, host = "localhost"): Promise<string> {
    const at = `${host}:${rig().upstream.port}`;
    return sendThrough(agent, at, `GET /x HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`);
  }

  function lastCredential(): string | undefined {
    return rig().upstream.seen.findLast(({ url }) => url === "/x")?.headers["authorization"] as string | undefined;
  }

  describe("GitHub apps", () => {
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const pem = (type: "pkcs1" | "pkcs8") => privateKey.export({ type, format: "pem" }).toString();
    const app = { appId: "12345", installation: 67 };

    for (const type of ["pkcs1", "pkcs8"] as const) {
      it(`a GitHub app with a key of ${type} sends a JWT that jose verifies, and gets a Bearer token`, async () => {
        const agent = await prepare(`github/${type}`, pem(type), { githubApp: app });
        expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
        const { provider, upstream } = rig();
        const [request] = provider.requests;
        const jwt = request?.authorization.replace("Bearer ", "") ?? "";
        const options = { algorithms: ["RS256"], issuer: "12345", currentDate: new Date(clock.now()) };
        const { payload } = await jwtVerify(jwt, publicKey, options);
        expect((payload.exp ?? 0) - (payload.iat ?? 0)).to.equal(540);
        const seen = upstream.seen.find(({ url }) => url === "/app/installations/67/access_tokens");
        expect(seen?.headers).to.include({ "user-agent": "strongroom", accept: "application/vnd.github+json" });
        expect(lastCredential()).to.equal(`Bearer installation-${provider.issued - 1}`);
      });
    }

    it("bindings of one GitHub app share a token, and waiting requests share an exchange", async () => {
      const api = `https://localhost:${rig().upstream.port}/api/v3`;
      const githubApp = { ...app, api };
      const git = { host: "127.0.0.1", githubApp, basic: "x-access-token" };
      const agent = await prepare("github/both", pem("pkcs8"), { githubApp }, git);
      const hosts = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? "localhost" : "127.0.0.1"));
      const responses = await Promise.all(hosts.map((host) => call(agent, host)));
      for (const response of responses) expect(response).to.match(/^HTTP\/1\.1 200 /);
      expect(rig().provider.requests).to.have.length(1);
      await call(agent, "127.0.0.1");
      const token = `installation-${rig().provider.issued - 1}`;
      expect(lastCredential()).to.equal(`Basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}`);
    });

    it("a GitHub app gets a new token 5 minutes before expiry, after a lock, a put and a changed binding", async () => {
      const { server, provider, upstream } = rig();
      const agent = await prepare("github/life", pem("pkcs8"), { githubApp: app });
      const exchanges = async () => {
        expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
        return provider.requests.length;
      };
      expect(await exchanges()).to.equal(1);
      clock.advance(54 * minute);
      expect(await exchanges()).to.equal(1);
      clock.advance(2 * minute);
      expect(await exchanges()).to.equal(2);
      await mustLock(server);
      await mustUnlock(server);
      expect(await exchanges()).to.equal(3);
      await mustPut(server, "github/life", { value: `${pem("pkcs8")}\n` });
      expect(await exchanges()).to.equal(4);
      const binding = { host: "localhost", port: upstream.port, private: true, methods: ["GET"] };
      await bind(server, "github/life", { ...binding, githubApp: app });
      expect(await exchanges()).to.equal(5);
      expect(await exchanges()).to.equal(5);
    });

    it("a GitHub app whose value is no private key gets 400", async () => {
      const agent = await prepare("github/none", "no key", { githubApp: app });
      expect(await call(agent)).to.match(/^HTTP\/1\.1 400 .*not an RSA private key in PEM/s);
      expect(rig().provider.requests).to.deep.equal([]);
    });
  });

  describe("refresh tokens", () => {
    const oauth = () => ({
      tokenUrl: `https://localhost:${rig().upstream.port}/token`,
      clientId: "my client",
      scope: "a b",
    });
    const secret = (members: object = {}) =>
      JSON.stringify({ note: "kept", refreshToken: rig().provider.valid, ...members });

    async function stored(path: string): Promise<Record<string, unknown>> {
      const found = mustSucceed(await send(rig().server, { path: `/v1/secrets/${path}` }));
      return { ...JSON.parse(String(found["value"])), version: found["version"] };
    }

    it("50 requests exchange a refresh token once, and store its successor as a new version", async () => {
      const agent = await prepare("oauth/once", secret(), { oauth: oauth() });
      const { provider } = rig();
      const before = provider.valid;
      const responses = await Promise.all(Array.from({ length: 50 }, () => call(agent)));
      for (const response of responses) expect(response).to.match(/^HTTP\/1\.1 200 /);
      expect(provider.requests.map(({ body }) => body)).to.deep.equal([
        `grant_type=refresh_token&refresh_token=${before}&scope=a+b&client_id=my+client`,
      ]);
      expect(lastCredential()).to.equal(`Bearer access-${provider.issued}`);
      expect(await stored("oauth/once")).to.deep.equal({ note: "kept", refreshToken: provider.valid, version: 2 });
      clock.advance(56 * minute);
      expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
      expect(await stored("oauth/once")).to.include({ refreshToken: provider.valid, version: 3 });
      expect(provider.requests).to.have.length(2);
    });

    it("the client's id and secret are form-encoded and sent by Basic authentication", async () => {
      const agent = await prepare("oauth/basic", secret({ clientSecret: "p:w/ü" }), { oauth: oauth() });
      expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
      const [{ body = "", authorization = "" } = {}] = rig().provider.requests;
      const pair = Buffer.from(authorization.replace("Basic ", ""), "base64").toString();
      expect(pair).to.equal("my+client:p%3Aw%2F%C3%BC");
      expect(body).not.to.contain("client_id");
    });

    it("an invalid refresh token asks for a login, and is not sent again until the secret changes", async () => {
      const { server, provider } = rig();
      const agent = await prepare("oauth/ended", secret({ refreshToken: "old" }), { oauth: oauth() });
      const answers = [await call(agent), await call(agent)];
      for (const answer of answers)
        expect(answer)
          .to.match(/^HTTP\/1\.1 502 .*"code":"reauthorize"/s)
          .and.not.contain("words of the endpoint");
      await mustLock(server);
      await mustUnlock(server);
      expect(await call(agent)).to.contain("strongroom use login oauth/ended");
      expect(provider.requests).to.have.length(1);
      const { records } = mustSucceed(await send(server, { path: "/v1/audit?limit=1000" })) as {
        readonly records: Json[];
      };
      const uses = records.filter((record) => record["event"] === "use" && record["path"] === "oauth/ended");
      expect(uses.map((record) => `${record["status"]} ${record["code"]}`)).to.deep.equal(
        Array(3).fill("502 reauthorize"),
      );
      const status = mustSucceed(await send(server, { path: "/v1/status" }));
      expect(status["reauthorize"]).to.deep.equal(["oauth/ended"]);
      await mustPut(server, "oauth/ended", { value: secret() });
      expect(mustSucceed(await send(server, { path: "/v1/status" }))["reauthorize"]).to.equal(undefined);
      expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
    });

    it("a refresh token that is stored during a failing exchange is used, without a request for a login", async () => {
      const { server, provider } = rig();
      const agent = await prepare("oauth/replaced", secret({ refreshToken: "old" }), { oauth: oauth() });
      provider.lie = (_req, _body, res) => {
        provider.lie = null;
        const put = mustPut(server, "oauth/replaced", { value: secret() });
        void put.finally(() => json(res, 400, { error: "invalid_grant" }));
      };
      expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
      expect(provider.requests).to.have.length(2);
      expect(mustSucceed(await send(server, { path: "/v1/status" }))["reauthorize"]).to.equal(undefined);
    });

    it("a refresh token that cannot be stored is kept in memory with 503, and stored at the next request", async () => {
      const { provider, upstream } = rig();
      const agent = await prepare("oauth/full", secret(), { oauth: oauth() });
      const seen = upstream.seen.filter(({ url }) => url === "/x").length;
      disk.fail("rename", "ENOSPC");
      for (const answer of [await call(agent), await call(agent)])
        expect(answer).to.match(/^HTTP\/1\.1 503 .*cannot be stored, and is kept in memory/s);
      expect(upstream.seen.filter(({ url }) => url === "/x")).to.have.length(seen);
      disk.repair();
      expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
      expect(provider.requests).to.have.length(1);
      expect(await stored("oauth/full")).to.include({ refreshToken: provider.valid, version: 2 });
    });

    it("a refresh token that is issued while the vault locks and unlocks is stored as a version", async () => {
      const { server, provider } = rig();
      const agent = await prepare("oauth/locked", secret(), { oauth: oauth() });
      provider.lie = (_req, _body, res) => {
        provider.lie = null;
        const locked = mustLock(server).then(() => mustUnlock(server));
        const issued = { access_token: "access", token_type: "bearer", refresh_token: "issued-during-a-lock" };
        void locked.finally(() => json(res, 200, issued));
      };
      expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
      expect(provider.requests).to.have.length(1);
      expect(await stored("oauth/locked")).to.include({ refreshToken: "issued-during-a-lock", version: 2 });
    });

    it("a refresh token that one host's endpoint refuses is sent to another host's endpoint", async () => {
      const { provider } = rig();
      const refused = { host: "127.0.0.1", oauth: { ...oauth(), scope: "refused" } };
      const agent = await prepare("oauth/hosts", secret(), { oauth: oauth() }, refused);
      const waiting = new Promise<string>((resolve) => {
        provider.lie = (_req, _body, res) => {
          provider.lie = null;
          resolve(call(agent));
          setTimeout(() => json(res, 500, {}), 200);
        };
      });
      expect(await call(agent, "127.0.0.1")).to.match(/^HTTP\/1\.1 502 /);
      expect(await waiting).to.match(/^HTTP\/1\.1 200 /);
    });

    it("a missing refresh token asks for a login without an exchange", async () => {
      const agent = await prepare("oauth/missing", "{}", { oauth: oauth() });
      expect(await call(agent)).to.contain('"code":"reauthorize"');
      expect(rig().provider.requests).to.deep.equal([]);
    });

    it("a refresh token is not sent before the request is approved", async () => {
      const { server } = rig();
      const agent = await prepare("oauth/asks", secret(), { oauth: oauth(), ask: "request" });
      const answer = call(agent);
      let waiting: readonly { readonly id: string }[] = [];
      while (waiting.length === 0) {
        const found = mustSucceed(await send(server, { path: "/v1/approvals" }));
        waiting = found["approvals"] as typeof waiting;
      }
      expect(rig().provider.requests).to.deep.equal([]);
      const path = `/v1/approvals/${waiting[0]?.id}`;
      mustSucceed(await send(server, { method: "POST", path, body: { approve: false } }));
      expect(await answer).to.match(/^HTTP\/1\.1 403 /);
      expect(rig().provider.requests).to.deep.equal([]);
    });

    const token = { access_token: "words-of-the-endpoint", token_type: "Bearer", expires_in: 3600 };
    const lies: Readonly<Record<string, Answer>> = {
      redirects: (_req, _body, res) => void res.writeHead(302, { location: "/token" }).end(),
      "sends more than 64 KiB": (_req, _body, res) => json(res, 200, { ...token, pad: "x".repeat(70_000) }),
      "sends more than 64 KiB in chunks": (_req, _body, res) => {
        res.writeHead(200, { "content-type": "application/json" });
        for (let i = 0; i < 20; i++) res.write("x".repeat(10_000));
        res.end();
      },
      "sends no JSON": (_req, _body, res) =>
        void res.writeHead(200, { "content-type": "text/html" }).end("words-of-the-endpoint"),
      "sends JSON that is none": (_req, _body, res) =>
        void res.writeHead(200, { "content-type": "application/json" }).end('{"access_token":"words-of-the-endpoint"'),
      "closes the connection": (req) => void req.socket.destroy(),
      "closes the connection within the body": (req, _body, res) => {
        res.writeHead(200, { "content-type": "application/json", "content-length": 1000 }).write("{");
        setTimeout(() => req.socket.destroy(), 10);
      },
      "issues a token of another type": (_req, _body, res) => json(res, 200, { ...token, token_type: "mac" }),
      "issues a token that would end the header": (_req, _body, res) =>
        json(res, 200, { ...token, access_token: "a\r\nx: words-of-the-endpoint" }),
      "issues a token that has ended": (_req, _body, res) => json(res, 200, { ...token, expires_in: 0 }),
      "issues a refresh token that is no text": (_req, _body, res) => json(res, 200, { ...token, refresh_token: 1 }),
      "never ends its response": (_req, _body, res) => {
        res.writeHead(200, { "content-type": "application/json" }).write("{");
      },
      refuses: (_req, _body, res) => json(res, 401, { error: "words-of-the-endpoint" }),
      fails: (_req, _body, res) => json(res, 500, {}),
    };
    for (const [what, lie] of Object.entries(lies)) {
      it(`a request gets 502 where the token endpoint ${what}, and its refresh token is sent again`, async () => {
        const { provider, upstream } = rig();
        const agent = await prepare("oauth/lies", secret(), { oauth: oauth() });
        provider.lie = lie;
        const seen = upstream.seen.filter(({ url }) => url === "/x").length;
        expect(await call(agent))
          .to.match(/^HTTP\/1\.1 502 .*"code":"exchange"/s)
          .and.not.contain("words-of-the-endpoint");
        expect(upstream.seen.filter(({ url }) => url === "/x")).to.have.length(seen);
        provider.lie = null;
        expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
        expect(provider.requests).to.have.length(2);
      });
    }

    it("an access token goes only to the bound host, whatever the token response names", async () => {
      const { provider, upstream } = rig();
      const agent = await prepare("oauth/elsewhere", secret(), { oauth: oauth() });
      const elsewhere = `https://127.0.0.1:${upstream.port}`;
      provider.lie = (_req, _body, res) =>
        json(res, 200, { ...token, instance_url: elsewhere, aud: elsewhere, token_endpoint: `${elsewhere}/token` });
      const seen = upstream.seen.length;
      expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
      expect(upstream.seen.slice(seen).map(({ headers }) => headers["host"])).to.deep.equal(
        Array(2).fill(`localhost:${upstream.port}`),
      );
      expect(await call(agent, "127.0.0.1")).to.match(/^HTTP\/1\.1 403 |^$/);
    });

    it("the deletion of a secret also deletes its access token", async () => {
      const { server, provider } = rig();
      const agent = await prepare("oauth/deleted", secret(), { oauth: oauth() });
      expect(await call(agent)).to.match(/^HTTP\/1\.1 200 /);
      const { value } = mustSucceed(await send(server, { path: "/v1/secrets/oauth/deleted" }));
      mustSucceed(await send(server, { method: "DELETE", path: "/v1/secrets/oauth/deleted" }));
      expect(await call(agent)).to.match(/^HTTP\/1\.1 403 /);
      const again = await prepare("oauth/deleted", String(value), { oauth: oauth() });
      expect(await call(again)).to.match(/^HTTP\/1\.1 200 /);
      expect(provider.requests).to.have.length(1);
    });

    it("a refresh token is not sent to a private address unless the binding allows it", async () => {
      const agent = await prepare("oauth/private", secret(), {
        oauth: oauth(),
        private: false,
        host: "example.com",
        port: 443,
      });
      const response = await sendThrough(agent, "example.com", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").catch(
        String,
      );
      expect(response).not.to.match(/^HTTP\/1\.1 200 /);
      expect(rig().provider.requests).to.deep.equal([]);
    });
  });
});
