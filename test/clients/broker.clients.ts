/** Computed credentials, judged by programs that others wrote: curl, botocore, git, jose and oidc-provider (from npm's registry). */
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { globalAgent, request } from "node:https";
import { createRequire } from "node:module";
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

/** Runs a program with the session's environment and keys that are placeholders; returns its output. */
async function mustRunThrough(server: TestServer, program: readonly string[]): Promise<string> {
  const keys = {
    AWS_ACCESS_KEY_ID: "placeholder",
    AWS_SECRET_ACCESS_KEY: "placeholder",
    AWS_EC2_METADATA_DISABLED: "true",
  };
  const args = ["agent", "run", "--no-sandbox", "--", ...program];
  const { code, stdout, stderr } = await run(args, { STRONGROOM_HOME: server.home, ...keys });
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

describe("an access key of AWS at the broker, as another program signs", () => {
  it("gives curl --aws-sigv4 a right signature in place of its own", async function () {
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
    it(`gives botocore a right signature for  ${call}`, async function () {
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

describe("an app of GitHub at the broker, as git clones", () => {
  it("gives git a token for which jose has verified the JWT", async function () {
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
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const basic = `Basic ${Buffer.from("x-access-token:installation-token").toString("base64")}`;
    const serve = async (req: IncomingMessage, res: ServerResponse) => {
      const { authorization = "", ...headers } = req.headers;
      const { pathname } = new URL(req.url ?? "", "https://localhost");
      if (pathname === "/api/app/installations/7/access_tokens") {
        await jwtVerify(authorization.replace("Bearer ", ""), publicKey, { algorithms: ["RS256"], issuer: "12" });
        expect(headers["user-agent"]).to.equal("strongroom");
        res.writeHead(201, { "content-type": "application/json" });
        return res.end('{"token":"installation-token","expires_at":"2999-01-01T00:00:00Z"}');
      }
      if (authorization !== basic) return res.writeHead(401).end();
      const file = await readFile(join(repository, pathname.replace("/r.git/", ""))).catch(() => null);
      return res.writeHead(file === null ? 404 : 200).end(file);
    };
    const upstream = await startUpstream(["localhost"], (req, res) => void serve(req, res).catch(() => res.destroy()));
    const server = await startWithBroker([upstream]);
    await mustPut(server, "github/app", { value: privateKey.export({ type: "pkcs1", format: "pem" }).toString() });
    const githubApp = { appId: "12", installation: "7", api: `https://localhost:${upstream.port}/api` };
    const place = { host: "localhost", port: upstream.port, private: true };
    await bind(server, "github/app", { ...place, basic: "x-access-token", githubApp });
    const clone = join(temporaryDirectory(), "clone");
    await mustRunThrough(server, ["git", "clone", "-q", `https://localhost:${upstream.port}/r.git`, clone]);
    expect(git("-C", clone, "rev-parse", "HEAD").toString().trim()).to.equal(commit);
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
}

describe("a login and refreshes at oidc-provider, which rotates refresh tokens", () => {
  const { ca } = globalAgent.options;
  after(() => {
    globalAgent.options.ca = ca;
  });

  it("stores a refresh token of its own, and refreshes once for 50 requests", async function () {
    const directory = temporaryDirectory();
    const install = ["install", "--no-audit", "--no-fund", "--silent", "--prefix", directory, "oidc-provider@9.13.3"];
    needs(this, has("npm", ...install), "npm's registry, for oidc-provider");
    const { default: Provider } = await import(createRequire(join(directory, "x.js")).resolve("oidc-provider"));
    let handle: (req: IncomingMessage, res: ServerResponse) => void = (_, res) => void res.end("api\n");
    const upstream = await startUpstream(["localhost"], (req, res) => handle(req, res));
    globalAgent.options.ca = upstream.certificate;
    const origin = `https://localhost:${upstream.port}`;
    const provider = new Provider(origin, {
      clients: [
        {
          ...{ client_id: "cli", application_type: "native", token_endpoint_auth_method: "none" },
          ...{ redirect_uris: ["http://127.0.0.1/callback"], response_types: ["code"] },
          grant_types: ["authorization_code", "refresh_token"],
        },
      ],
      features: { devInteractions: { enabled: true } },
      cookies: { keys: ["key"] },
      rotateRefreshToken: true,
      issueRefreshToken: () => true,
    });
    const serve = provider.callback();
    handle = (req, res) => (req.url === "/x" ? void res.end("api\n") : serve(req, res));
    const server = await startWithBroker([upstream]);
    await mustPut(server, "oidc/login", { value: "{}" });
    const oauth = { tokenUrl: `${origin}/token`, clientId: "cli", scope: "openid" };
    await bind(server, "oidc/login", { host: "localhost", port: upstream.port, private: true, oauth });

    const io = stringIo({ env: environment({ STRONGROOM_HOME: server.home }) });
    const ended = runToItsEnd(["use", "login", "oidc/login"], io);
    let address: string | undefined;
    while (address === undefined) {
      await sleep(20);
      address = /https:\/\/\S+/.exec(io.printed().stderr)?.[0];
    }
    const browser = new Browser(origin);
    let page = await browser.open(address);
    for (const prompt of ["login", "consent"]) {
      if (page instanceof URL) break;
      const [, action = ""] = /action="([^"]+)"/.exec(page.body) ?? [];
      page = await browser.open(action, { prompt, login: "me", password: "any" });
    }
    if (!(page instanceof URL)) throw new Error(page.body);
    await fetch(page, { headers: { connection: "close" } });
    await ended;
    expect(io.exitCode, io.printed().stderr).to.equal(0);

    const stored = async () =>
      JSON.parse(String(mustSucceed(await send(server, { path: "/v1/secrets/oidc/login" }))["value"]));
    const first = await stored();
    const agent = await startAgent(server, { paths: ["oidc/login"] });
    const at = `localhost:${upstream.port}`;
    const line = `GET /x HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`;
    const responses = await Promise.all(Array.from({ length: 50 }, () => sendThrough(agent, at, line)));
    for (const response of responses) expect(response).to.match(/^HTTP\/1\.1 200 /);
    expect(
      upstream.seen.filter(({ url }) => url === "/token"),
      "the login and one refresh",
    ).to.have.length(2);
    expect((await stored()).refreshToken)
      .to.be.a("string")
      .and.not.equal(first.refreshToken);
  });
});
