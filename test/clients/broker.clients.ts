/** Computed credentials, judged by programs that others wrote: curl, botocore, git, gh, jose and oidc-provider (from npm's registry). */
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { lookup } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { globalAgent, request } from "node:https";
import { createRequire } from "node:module";
import { hostname } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { jwtVerify } from "jose";
import { bind, sendThrough, startAgent, startUpstream, startWithBroker } from "../../tools/rig/broker-rig.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment, run } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import { runToItsEnd, stringIo } from "../../tools/rig/string-io.js";
import { mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { accessKey, verify } from "../support/aws-upstream.js";
import { has } from "./programs.js";

type Options = { readonly flags?: readonly string[]; readonly env?: Readonly<Record<string, string>> };

/** Runs a program with the session's environment and keys that are placeholders; returns its output. */
async function mustRunThrough(
  server: TestServer,
  program: readonly string[],
  { flags = [], env = {} }: Options = {},
): Promise<string> {
  const keys = {
    AWS_ACCESS_KEY_ID: "placeholder",
    AWS_SECRET_ACCESS_KEY: "placeholder",
    AWS_EC2_METADATA_DISABLED: "true",
  };
  const args = ["agent", "run", "--no-sandbox", ...flags, "--", ...program];
  const { code, stdout, stderr } = await run(args, { STRONGROOM_HOME: server.home, ...keys, ...env });
  expect(code, stdout + stderr).to.equal(0);
  return stdout;
}

async function startAws(service: string, right?: string) {
  const upstream = await startUpstream(["localhost"], (req, res) => verify(req, res, right));
  const server = await startWithBroker([upstream]);
  await mustPut(server, "aws/key", { value: JSON.stringify(accessKey) });
  const sigv4 = { service, region: "eu-central-1" };
  await bind(server, "aws/key", { host: "localhost", port: upstream.port, private: true, sigv4 });
  return { server, url: `https://localhost:${upstream.port}` };
}

describe("AWS signatures of the broker", () => {
  it("curl --aws-sigv4 gets a right signature in place of its own", async function () {
    needs(this, has("curl", "--aws-sigv4", "aws:amz", "--version"), "curl 7.75 or later");
    const { server, url } = await startAws("s3");
    const curl = ["curl", "-sS", "--aws-sigv4", "aws:amz:eu-central-1:s3", "--user", "placeholder:placeholder"];
    expect(await mustRunThrough(server, [...curl, `${url}/bucket/key?list-type=2`])).to.equal("signed 0\n");
    expect(await mustRunThrough(server, [...curl, "-X", "PUT", "-d", "abc", `${url}/bucket/key`])).to.equal(
      "signed 3\n",
    );
  });

  const identity = `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::1:user/a</Arn><UserId>u</UserId><Account>1</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`;
  const calls: readonly (readonly [service: string, right: string, call: string])[] = [
    ["s3", "", 'client.put_object(Bucket="b", Key="k ü+", Body=b"abc"); client.get_object(Bucket="b", Key="k ü+")'],
    ["s3", "", 'client.delete_object(Bucket="b", Key="a//b/../c")'],
    ["sts", identity, 'assert client.get_caller_identity()["Account"] == "1"'],
    ["dynamodb", '{"TableNames":["t"]}', 'assert client.list_tables()["TableNames"] == ["t"]'],
  ];
  for (const [service, right, call] of calls) {
    it(`botocore gets a right signature for  ${call}`, async function () {
      needs(this, has("python3", "-c", "import botocore"), "botocore");
      const { server, url } = await startAws(service, right);
      const program = `
import botocore.session, botocore.config
config = botocore.config.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0})
client = botocore.session.get_session().create_client(${JSON.stringify(service)}, region_name="eu-central-1", endpoint_url=${JSON.stringify(url)}, config=config)
${call}
`;
      await mustRunThrough(server, ["python3", "-c", program]);
    });
  }
});

/** Answers a request whose token the broker has put in; the JWT for it was verified. */
type Serve = (req: IncomingMessage, res: ServerResponse, pathname: string) => Promise<unknown> | unknown;

/** A GitHub that issues tokens of an installation for JWTs that jose has verified, and a server that has the app's key. */
async function startGithub(host: string, serve: Serve, credential: string, binding: object = {}) {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    const { authorization = "", ...headers } = req.headers;
    const { pathname } = new URL(req.url ?? "", "https://localhost");
    if (pathname === "/api/v3/app/installations/7/access_tokens") {
      await jwtVerify(authorization.replace("Bearer ", ""), publicKey, { algorithms: ["RS256"], issuer: "12" });
      expect(headers["user-agent"]).to.equal("strongroom");
      res.writeHead(201, { "content-type": "application/json" });
      return res.end('{"token":"installation-token","expires_at":"2999-01-01T00:00:00Z"}');
    }
    return authorization === credential ? serve(req, res, pathname) : res.writeHead(401).end();
  };
  const upstream = await startUpstream([host], (req, res) => void answer(req, res).catch(() => res.destroy()));
  const server = await startWithBroker([upstream]);
  await mustPut(server, "github/app", { value: privateKey.export({ type: "pkcs1", format: "pem" }).toString() });
  const at = `${host}:${upstream.port}`;
  const githubApp = { appId: "12", installation: "7", api: `https://${at}/api/v3` };
  await bind(server, "github/app", { host, port: upstream.port, private: true, githubApp, ...binding });
  return { server, upstream, at };
}

describe("GitHub apps at the broker", () => {
  it("git clones with the token of a GitHub app", async function () {
    needs(this, has("git", "--version"), "git");
    const repository = join(temporaryDirectory(), "r.git");
    const git = (...args: readonly string[]) => execFileSync("git", args, { env: environment({}), stdio: "pipe" });
    git("init", "-q", "--bare", "-b", "main", repository);
    const tree = git("-C", repository, "hash-object", "-w", "-t", "tree", "/dev/null").toString().trim();
    const identity = ["-c", "user.name=t", "-c", "user.email=t@t.test"];
    const commit = git("-C", repository, ...identity, "commit-tree", "-m", "one", tree)
      .toString()
      .trim();
    git("-C", repository, "update-ref", "refs/heads/main", commit);
    git("-C", repository, "update-server-info");
    const basic = `Basic ${Buffer.from("x-access-token:installation-token").toString("base64")}`;
    const serve: Serve = async (_, res, pathname) => {
      const file = await readFile(join(repository, pathname.replace("/r.git/", ""))).catch(() => null);
      res.writeHead(file === null ? 404 : 200).end(file);
    };
    const { server, at } = await startGithub("localhost", serve, basic, { basic: "x-access-token" });
    const clone = join(temporaryDirectory(), "clone");
    await mustRunThrough(server, ["git", "clone", "-q", `https://${at}/r.git`, clone]);
    expect(git("-C", clone, "rev-parse", "HEAD").toString().trim()).to.equal(commit);
  });

  it("gh reads, writes and queries with one exchange of a GitHub app", async function () {
    needs(this, has("gh", "--version"), "gh");
    const name = hostname().toLowerCase(); // Go uses no proxy for localhost
    const { address = "" } = await lookup(name, { family: 4 }).catch(() => ({ address: "" }));
    needs(this, address === "127.0.0.1", "a name of this machine for 127.0.0.1");
    const serve: Serve = async (req, res, pathname) => {
      const body = (await req.toArray()).join("");
      res.setHeader("content-type", "application/json");
      res.end(JSON.stringify({ login: `${req.method} ${pathname}`, data: { sent: body && JSON.parse(body) } }));
    };
    const { server, upstream, at } = await startGithub(name, serve, "Bearer installation-token");
    const gh = async (...args: readonly string[]) => {
      const flags = ["--placeholder", "GH_ENTERPRISE_TOKEN"];
      const out = await mustRunThrough(server, ["gh", "api", ...args], { flags, env: { GH_HOST: at } });
      return JSON.parse(out);
    };
    expect((await gh("user")).login).to.equal("GET /api/v3/user");
    const { login, data } = await gh("repos/o/r/issues", "-f", "title=one");
    expect(login).to.equal("POST /api/v3/repos/o/r/issues");
    expect(data.sent).to.deep.equal({ title: "one" });
    expect((await gh("graphql", "-f", "query={viewer{login}}")).data.sent.query).to.equal("{viewer{login}}");
    const exchanges = upstream.seen.filter(({ url }) => url.endsWith("/access_tokens"));
    expect(exchanges).to.have.length(1);
  });
});

type Page = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string };

/** A browser with cookies, which follows redirects to the provider itself. */
class Browser {
  readonly #cookies = new Map<string, string>();
  readonly #origin: string;

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Returns the first page that is no redirect, or the address of one that leads elsewhere. */
  async open(url: string, form?: Readonly<Record<string, string>>): Promise<Page | URL> {
    const page = await this.#request(new URL(url, this.#origin), form);
    const { location } = page.headers;
    if (location === undefined) return page;
    const next = new URL(location, this.#origin);
    return next.origin === this.#origin ? this.open(next.href) : next;
  }

  async #request(url: URL, form?: Readonly<Record<string, string>>): Promise<Page> {
    const cookie = [...this.#cookies].map((pair) => pair.join("=")).join("; ");
    const type = form && { "content-type": "application/x-www-form-urlencoded" };
    return new Promise((resolve, reject) => {
      const sent = request(url, { method: form ? "POST" : "GET", headers: { cookie, ...type } }, async (response) => {
        for (const line of response.headers["set-cookie"] ?? []) {
          const [name = "", value = ""] = (line.split(";")[0] ?? "").split("=");
          this.#cookies.set(name, value);
        }
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: await text(response) });
      });
      sent.on("error", reject).end(form && new URLSearchParams(form).toString());
    });
  }

  /** Fills the forms of the provider's pages and sends them; returns the page without one, or the address of one elsewhere. */
  async fill(page: Page | URL, values: Readonly<Record<string, string>>): Promise<Page | URL> {
    const [, action] = page instanceof URL ? [] : (/action="([^"]+)"/.exec(page.body) ?? []);
    if (page instanceof URL || action === undefined) return page;
    const hidden = page.body.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g);
    const form = Object.fromEntries([...hidden].map(([, name = "", value = ""]) => [name, value]));
    return this.fill(await this.open(action, { ...values, ...form }), values);
  }
}

/** A provider that rotates refresh tokens, and a server whose secrets are bound to it. */
async function startProvider(context: Mocha.Context, paths: readonly string[]) {
  const directory = temporaryDirectory();
  const install = ["install", "--no-audit", "--no-fund", "--silent", "--prefix", directory, "oidc-provider@9.13.3"];
  needs(context, has("npm", ...install), "npm's registry, for oidc-provider");
  const { default: Provider } = await import(createRequire(join(directory, "x.js")).resolve("oidc-provider"));
  let handle: (req: IncomingMessage, res: ServerResponse) => void = (_, res) => void res.end("api\n");
  const upstream = await startUpstream(["localhost"], (req, res) => handle(req, res));
  globalAgent.options.ca = upstream.certificate;
  const at = `localhost:${upstream.port}`;
  const origin = `https://${at}`;
  const provider = new Provider(origin, {
    clients: [
      {
        ...{ client_id: "cli", application_type: "native", token_endpoint_auth_method: "none" },
        ...{ redirect_uris: ["http://127.0.0.1/callback"], response_types: ["code"] },
        grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
      },
    ],
    features: { devInteractions: { enabled: true }, deviceFlow: { enabled: true } },
    cookies: { keys: ["key"] },
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
  });
  const serve = provider.callback();
  handle = (req, res) => (req.url === "/x" ? void res.end("api\n") : serve(req, res));
  const server = await startWithBroker([upstream]);
  const oauth = { tokenUrl: `${origin}/token`, clientId: "cli", scope: "openid" };
  for (const path of paths) {
    await mustPut(server, path, { value: "{}" });
    await bind(server, path, { host: "localhost", port: upstream.port, private: true, oauth });
  }
  return { server, upstream, at, origin };
}

describe("logins at oidc-provider", () => {
  const { ca } = globalAgent.options;
  let rig: Awaited<ReturnType<typeof startProvider>>;
  before(async function () {
    rig = await startProvider(this, ["oidc/code", "oidc/device"]);
  });
  after(() => {
    if (ca !== undefined) globalAgent.options.ca = ca;
    else delete globalAgent.options.ca; // the agent's options replace those of a request, undefined ones too
  });

  /** Starts the command, and returns what it printed for the person once it matches. */
  async function logIn(args: readonly string[], shown: RegExp) {
    const io = stringIo({ env: environment({ STRONGROOM_HOME: rig.server.home }) });
    const ended = runToItsEnd(["use", "login", ...args], io);
    let found: RegExpExecArray | null = null;
    while (found === null) {
      if (io.exitCode) throw new Error(io.printed().stderr);
      await sleep(20);
      found = shown.exec(io.printed().stderr);
    }
    const mustEnd = async () => {
      await ended;
      expect(io.exitCode, io.printed().stderr).to.equal(0);
    };
    return { found, mustEnd };
  }

  /** Returns how often the token endpoint was asked. */
  const questions = () => rig.upstream.seen.filter(({ url }) => url === "/token").length;

  /** 50 requests at the same time, which must get their response by one refresh that rotates the token. */
  async function mustRefreshOnce(path: string): Promise<void> {
    const { server, at } = rig;
    const stored = async () =>
      JSON.parse(String(mustSucceed(await send(server, { path: `/v1/secrets/${path}` }))["value"]));
    const first = await stored();
    const before = questions();
    const agent = await startAgent(server, { paths: [path] });
    const line = `GET /x HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`;
    const responses = await Promise.all(Array.from({ length: 50 }, () => sendThrough(agent, at, line)));
    for (const response of responses) expect(response).to.match(/^HTTP\/1\.1 200 /);
    expect(questions() - before).to.equal(1);
    expect((await stored()).refreshToken)
      .to.be.a("string")
      .and.not.equal(first.refreshToken);
  }

  it("a login by authorization code stores a refresh token, which is refreshed once for 50 requests", async () => {
    const { found, mustEnd } = await logIn(["oidc/code"], /https:\/\/\S+/);
    const browser = new Browser(rig.origin);
    const page = await browser.fill(await browser.open(found[0]), { login: "me", password: "any" });
    if (!(page instanceof URL)) throw new Error(page.body);
    await fetch(page, { headers: { connection: "close" } });
    await mustEnd();
    await mustRefreshOnce("oidc/code");
  });

  it("a login by device code stores a refresh token, which is refreshed once for 50 requests", async () => {
    const before = questions();
    const shown = /(https:\/\/\S+)\s+and enter the code:\s+(\S+)/;
    const { found, mustEnd } = await logIn(["oidc/device", "--device"], shown);
    const browser = new Browser(rig.origin);
    const [, address = "", user_code = ""] = found;
    while (questions() === before) await sleep(20); // asked before the person has entered the code
    const page = await browser.fill(await browser.open(address), { user_code, login: "me", password: "any" });
    expect(page).to.have.property("body").that.contains("Sign-in Success");
    await mustEnd();
    await mustRefreshOnce("oidc/device");
  });
});
