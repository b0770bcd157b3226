/** Logins at an authorization server of the test: the refresh token is issued to the server alone, which stores it. */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { globalAgent } from "node:https";
import { connect } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { expect } from "chai";
import { bind, sendThrough, startAgent, startUpstream, startWithBroker } from "../../tools/rig/broker-rig.js";
import { shared } from "../../tools/rig/clean-up.js";
import { environment } from "../../tools/rig/process.js";
import { runToItsEnd, type StringIo, stringIo } from "../../tools/rig/string-io.js";
import { type Json, mustPut, mustStatus, mustSucceed, send } from "../../tools/rig/test-client.js";
import { runHere } from "../support/command-here.js";
import { ShiftedClock } from "../support/shifted-clock.js";

type Answer = readonly [status: number, body: object];

const refreshToken = "refresh-token-that-is-born-in-the-vault";
const issued: Answer = [
  200,
  { access_token: "access", token_type: "Bearer", expires_in: 3600, refresh_token: refreshToken },
];

/** An authorization server. `answers`: those of its token endpoint, the last one of them forever. */
class Provider {
  port = 0;
  answers: Answer[] = [issued];
  metadata: object = {};
  beforeAnswer: (() => Promise<unknown>) | null = null;
  readonly asked: URLSearchParams[] = [];
  readonly devices: URLSearchParams[] = [];
  readonly credentials: (string | undefined)[] = [];
  readonly device = { device_code: "device-code", user_code: "WDJB-MJHT", expires_in: 60, interval: 5 };

  readonly handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const body = new URLSearchParams(Buffer.concat(await req.toArray()).toString());
    await this.beforeAnswer?.();
    const [status, answer] = this.#answer(req, body);
    res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
  };

  #answer({ url, headers }: IncomingMessage, body: URLSearchParams): Answer {
    if (url === "/token") {
      this.asked.push(body);
      this.credentials.push(headers["authorization"]);
      return (this.answers.length > 1 ? this.answers.shift() : this.answers[0]) ?? issued;
    }
    if (url === "/device") {
      this.devices.push(body);
      return [200, { ...this.device, verification_uri: `${this.origin}/activate` }];
    }
    if (url === "/.well-known/openid-configuration") return [200, this.metadata];
    return [url === "/x" ? 200 : 404, {}];
  }

  get origin(): string {
    return `https://localhost:${this.port}`;
  }
}

describe("strongroom use login", () => {
  const clock = new ShiftedClock();
  const rig = shared(async () => {
    const provider = new Provider();
    const upstream = await startUpstream(["localhost", "127.0.0.1"], (req, res) => void provider.handle(req, res));
    provider.port = upstream.port;
    const server = await startWithBroker([upstream], { idleTimeoutMs: 0, audit: "changes" });
    return { server, provider, upstream };
  });
  const { ca } = globalAgent.options;
  before(() => {
    globalAgent.options.ca = rig().upstream.certificate;
  });
  after(() => {
    if (ca !== undefined) globalAgent.options.ca = ca;
    else delete globalAgent.options.ca; // the agent's options replace those of a request, undefined ones too
  });

  async function prepare(path: string, secret: object = {}): Promise<string> {
    const { server, provider, upstream } = rig();
    provider.answers = [issued];
    provider.asked.length = 0;
    provider.metadata = {
      token_endpoint: `${provider.origin}/token`,
      authorization_endpoint: `${provider.origin}/authorize?tenant=a`,
      device_authorization_endpoint: `${provider.origin}/device`,
    };
    const oauth = { tokenUrl: `${provider.origin}/token`, clientId: "my client", scope: "mail offline_access" };
    await mustPut(server, path, { value: JSON.stringify(secret) });
    await bind(server, path, { host: "localhost", port: upstream.port, private: true, oauth });
    return path;
  }

  const home = () => ({ STRONGROOM_HOME: rig().server.home });

  type Started = { readonly io: StringIo; readonly ended: Promise<void>; readonly slept: readonly number[] };

  /** Runs the command. Its time passes while it sleeps between two questions. */
  function login(...args: readonly string[]): Started {
    const slept: number[] = [];
    const io = stringIo({
      env: environment(home()),
      clock,
      sleep(ms, signal) {
        if (signal !== undefined) return wait(60_000, undefined, { signal });
        slept.push(ms);
        clock.advance(ms);
        return Promise.resolve();
      },
    });
    return { io, ended: runToItsEnd(["use", "login", ...args], io), slept };
  }

  /** Returns the address that the command shows, once it does. */
  async function shownAddress({ io, ended }: Started): Promise<URL> {
    let hasEnded = false;
    void ended.finally(() => {
      hasEnded = true;
    });
    for (;;) {
      const [address] = /https:\/\/\S+/.exec(io.printed().stderr) ?? [];
      if (address !== undefined) return new URL(address);
      if (hasEnded) throw new Error(io.printed().stderr);
      await wait(5);
    }
  }

  /** Follows the redirect of a provider, as a browser does. */
  async function redirect(address: URL, parameters: Readonly<Record<string, string>>): Promise<Response> {
    const target = new URL(address.searchParams.get("redirect_uri") ?? "");
    const all = { state: address.searchParams.get("state") ?? "", ...parameters };
    for (const [name, value] of Object.entries(all)) target.searchParams.set(name, value);
    return fetch(target, { headers: { connection: "close" } });
  }

  async function stored(path: string): Promise<Record<string, unknown>> {
    const found = mustSucceed(await send(rig().server, { path: `/v1/secrets/${path}` }));
    return JSON.parse(String(found["value"]));
  }

  it("a login by authorization code stores a refresh token that the command never sees", async () => {
    const { server, provider, upstream } = rig();
    const path = await prepare("login/code", { clientSecret: "s", note: "kept" });
    const started = login(path);
    const address = await shownAddress(started);
    expect(address.origin + address.pathname).to.equal(`${provider.origin}/authorize`);
    const { searchParams } = address;
    const redirectUri = searchParams.get("redirect_uri") ?? "";
    expect(redirectUri).to.match(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    expect(Object.fromEntries(searchParams)).to.include({
      ...{ tenant: "a", response_type: "code", client_id: "my client", scope: "mail offline_access" },
      ...{ code_challenge_method: "S256" },
    });
    const page = await redirect(address, { code: "a code&b" });
    expect([page.status, await page.text()].join(" ")).to.match(/^200 .*return to the terminal/);
    await started.ended;
    expect(started.io.exitCode, started.io.printed().stderr).to.equal(0);
    const [asked] = provider.asked;
    const verifier = asked?.get("code_verifier") ?? "";
    expect(createHash("sha256").update(verifier).digest("base64url")).to.equal(searchParams.get("code_challenge"));
    expect(Object.fromEntries(asked ?? [])).to.deep.equal({
      ...{ grant_type: "authorization_code", code: "a code&b", code_verifier: verifier, redirect_uri: redirectUri },
    });
    expect(provider.credentials.at(-1)).to.equal(`Basic ${Buffer.from("my+client:s").toString("base64")}`);
    expect(await stored(path)).to.deep.equal({ clientSecret: "s", note: "kept", refreshToken });
    expect(JSON.stringify(started.io.printed())).not.to.contain(refreshToken);
    const at = `localhost:${upstream.port}`;
    const agent = await startAgent(server, { paths: [path] });
    const request = `GET /x HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`;
    expect(await sendThrough(agent, at, request)).to.match(/^HTTP\/1\.1 200 /);
    expect(provider.asked.at(-1)?.get("refresh_token")).to.equal(refreshToken);
  });

  it("a login accepts one redirect with its state, refuses others, and then stops listening", async () => {
    const path = await prepare("login/state");
    const started = login(path, "--authorize", "https://id.example.com/login");
    const address = await shownAddress(started);
    expect(address.origin).to.equal("https://id.example.com");
    expect((await redirect(address, { code: "forged", state: "guessed" })).status).to.equal(404);
    expect(rig().provider.asked).to.deep.equal([]);
    expect((await redirect(address, { code: "genuine" })).status).to.equal(200);
    await started.ended;
    expect(rig().provider.asked.map((form) => form.get("code"))).to.deep.equal(["genuine"]);
    const { port } = new URL(address.searchParams.get("redirect_uri") ?? "");
    const failed = await new Promise((resolve) => connect(Number(port), "127.0.0.1").once("error", resolve));
    expect(failed).to.include({ code: "ECONNREFUSED" });
  });

  it("a login that the provider refuses in the browser fails without repeating the provider's words", async () => {
    const path = await prepare("login/refused");
    const started = login(path);
    await redirect(await shownAddress(started), { error: "access_denied", error_description: "words-of-the-provider" });
    await started.ended;
    expect(started.io.exitCode).to.equal(13);
    expect(started.io.printed().stderr)
      .to.contain("the provider refused the login")
      .and.not.to.contain("words-of-the-provider");
    expect(await stored(path)).to.deep.equal({});
  });

  it("a login on a device shows the code, honours slow_down, and clears the status", async () => {
    const { server, provider, upstream } = rig();
    const path = await prepare("login/device");
    const at = `localhost:${upstream.port}`;
    const agent = await startAgent(server, { paths: [path] });
    const request = `GET /x HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`;
    expect(await sendThrough(agent, at, request)).to.contain(`strongroom use login ${path}`);
    expect((await mustStatus(server))["reauthorize"]).to.deep.equal([path]);
    const shown = await Promise.all([["status"], ["approve", "--once"]].map((args) => runHere(args, home())));
    for (const { stdout, stderr } of shown) expect(stdout + stderr).to.contain(`strongroom use login ${path}`);
    const pending: Answer = [400, { error: "authorization_pending" }];
    provider.answers = [pending, [400, { error: "slow_down" }], [200, { error: "authorization_pending" }], issued];
    const { io, ended, slept } = login(path, "localhost", "--device", "--json");
    await ended;
    expect(io.exitCode, io.printed().stderr).to.equal(0);
    expect(JSON.parse(io.printed().stdout)).to.deep.equal({ ok: true, path, host: "localhost" });
    expect(io.printed().stderr).to.contain(`${provider.origin}/activate`).and.to.contain("WDJB-MJHT");
    expect(slept).to.deep.equal([5_000, 5_000, 10_000, 10_000]);
    expect(Object.fromEntries(provider.devices.at(-1) ?? [])).to.deep.equal({
      ...{ client_id: "my client", scope: "mail offline_access" },
    });
    expect(Object.fromEntries(provider.asked.at(-1) ?? [])).to.deep.equal({
      grant_type: "urn:ietf:params:oauth:grant-type:device_code",
      ...{ device_code: "device-code", client_id: "my client" },
    });
    expect(await stored(path)).to.deep.equal({ refreshToken });
    expect((await mustStatus(server))["reauthorize"]).to.equal(undefined);
    const { records } = mustSucceed(await send(server, { path: "/v1/audit" })) as { readonly records: Json[] };
    const logins = records.filter((record) => record["event"] === "use-login" && record["path"] === path);
    expect(logins.map((record) => record["status"])).to.deep.equal([200, 200, 200, 200]);
  });

  const failures: readonly (readonly [what: string, answer: Answer, words: string])[] = [
    ["is denied", [400, { error: "access_denied" }], "the login was refused"],
    ["takes too long for the provider", [400, { error: "expired_token" }], "the code has expired"],
    ["brings no refresh token", [200, { ...issued[1], refresh_token: undefined }], "offline_access"],
    ["is never decided", [400, { error: "authorization_pending" }], "the time for this login is over"],
    ["never reaches the token endpoint", [500, {}], "the time for this login is over"],
  ];
  for (const [what, answer, words] of failures) {
    it(`a login on a device that ${what} fails and stores nothing`, async () => {
      const path = await prepare("login/fails");
      rig().provider.answers = [answer];
      const { io, ended, slept } = login(path, "--device");
      await ended;
      expect(io.exitCode).to.be.oneOf([2, 13]);
      expect(io.printed().stderr).to.contain(words);
      expect(slept.reduce((sum, ms) => sum + ms, 0)).to.be.below(60_000);
      expect(await stored(path)).to.deep.equal({});
    });
  }

  it("a login with an unknown address, a binding without OAuth, or a missing code is refused", async () => {
    const { server, provider } = rig();
    const path = await prepare("login/none");
    provider.metadata = { token_endpoint: "https://id.example.com/token", authorization_endpoint: provider.origin };
    const unknown = login(path);
    await unknown.ended;
    expect(unknown.io.printed().stderr).to.contain("does not say where to log in");
    await bind(server, path, { host: "api.example.com" });
    const requests = [
      ["localhost", {}, "400 the body must have code, codeVerifier and redirectUri, or deviceCode"],
      ["localhost", { deviceCode: 7 }, "400 the body must have code"],
      [
        "api.example.com",
        { deviceCode: "code" },
        "400 the binding of login/none to api.example.com has no token endpoint",
      ],
      ["example.org", { deviceCode: "code" }, "404 login/none is not bound to example.org"],
    ] as const;
    for (const [host, body, wanted] of requests) {
      const { status, json } = await send(server, { method: "POST", path: `/v1/uses/${path}?host=${host}`, body });
      expect(`${status} ${json["error"]}`).to.contain(wanted);
    }
    expect(provider.asked).to.deep.equal([]);
    const other = login("login/missing");
    await other.ended;
    expect(other.io.exitCode).to.equal(4);
  });

  it("a login stores nothing where the secret has changed since it began", async () => {
    const { server, provider } = rig();
    const path = await prepare("login/changed");
    provider.beforeAnswer = () => mustPut(server, path, { value: '{"refreshToken":"other"}' });
    const body = { deviceCode: "code" };
    const { status, json } = await send(server, { method: "POST", path: `/v1/uses/${path}?host=localhost`, body });
    provider.beforeAnswer = null;
    expect(`${status} ${json["error"]}`).to.contain("400 the secret has changed since the login began");
    expect(await stored(path)).to.deep.equal({ refreshToken: "other" });
  });
});
