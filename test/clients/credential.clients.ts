/**
 * Programs that ask another program for credentials, unchanged, with the configuration that the documents show. Each has a
 * token for its own secrets alone, and meets a locked vault. One that is missing is skipped.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import aws4 from "aws4";
import { expect } from "chai";
import { generate } from "selfsigned";
import { startUpstream } from "../../tools/rig/broker-rig.js";
import { later, shared } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import type { Ended } from "../../tools/rig/process.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustListPaths, mustPut } from "../../tools/rig/test-client.js";
import { type Client, makeClient, mustNeedVault, recipe } from "./credential-rig.js";
import { has, python } from "./programs.js";

const page = "docs/extras/credential.md";
const readOnly = (path: string) => ({ can: ["get"], paths: [path] });
const login = (folder: string) => ({ can: ["get", "put", "delete"], paths: [folder] });

function mustEnd({ code, stdout, stderr }: Ended, says: RegExp): void {
  expect(code, stdout + stderr).to.equal(0);
  expect(stdout).to.match(says);
}

const certificateFile = (client: Client) => join(client.home, "ca.pem");

describe("clients of AWS", () => {
  const server = shareLocalServer({}, mustInit);
  const key = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "kept/in+the-vault", sessionToken: "session/token==" };
  const listing =
    "<ListAllMyBucketsResult><Buckets><Bucket><Name>mine</Name></Bucket></Buckets></ListAllMyBucketsResult>";

  /** Checks the signature with another implementation. */
  function serve(req: IncomingMessage, res: ServerResponse): void {
    const names = /SignedHeaders=([^,]+), /.exec(req.headers.authorization ?? "")?.[1] ?? "";
    const headers = Object.fromEntries(names.split(";").map((name) => [name, String(req.headers[name])]));
    const request = { service: "s3", region: "eu-west-1", method: req.method ?? "", path: req.url ?? "", headers };
    const signed = new aws4.RequestSigner(request, key).sign().headers?.["Authorization"];
    const isRight = signed === req.headers.authorization && headers["x-amz-security-token"] === key.sessionToken;
    res.writeHead(isRight ? 200 : 403, { "content-type": "application/xml" }).end(isRight ? listing : "");
  }
  const upstream = shared(() => startUpstream(["localhost"], serve));

  const client = async () => {
    await mustPut(server(), "cloud/aws", { value: JSON.stringify(key) });
    const config = /credential_process = .*?PATH/.exec(readFileSync(page, "utf8"))?.[0].replace("PATH", "cloud/aws");
    const files = { ".aws/config": `[default]\nregion = eu-west-1\n${config}\n`, "ca.pem": upstream().certificate };
    const made = await makeClient(server(), readOnly("cloud/aws"), files);
    made.env["AWS_CA_BUNDLE"] = certificateFile(made);
    return made;
  };

  it("sign their requests with a key from the vault (AWS's command line)", async function () {
    needs(this, has("aws", "--version"), "aws");
    const made = await client();
    const list = () =>
      made.run("aws", "s3api", "list-buckets", "--endpoint-url", `https://localhost:${upstream().port}`);
    await mustNeedVault(server(), made, list, (ended) => mustEnd(ended, /"mine"/));
  });

  it("read a key again when it has expired (botocore)", async function () {
    const withBotocore = [python, "python3"].find((program) => has(program, "-c", "import botocore"));
    needs(this, withBotocore !== undefined, "botocore");
    const made = await client();
    const put = (accessKeyId: string, expiresAt: string) =>
      mustPut(server(), "cloud/aws", { value: JSON.stringify({ ...key, accessKeyId, expiresAt }) });
    await put("FIRST", new Date(Date.now() + 120_000).toISOString()); // botocore renews ten minutes before the end
    const script = `
import botocore.session, os, sys
credentials = botocore.session.Session().get_credentials()
print(credentials.get_frozen_credentials().access_key, flush=True)
while not os.path.exists("rotated"): __import__("time").sleep(0.05)
print(credentials.get_frozen_credentials().access_key)
`;
    const running = made.run(withBotocore, "-c", script);
    while ((await mustGet(server(), "cloud/aws"))["lastAccess"] === "never") await new Promise(setImmediate);
    await put("SECOND", "2099-01-01T00:00:00Z");
    writeFileSync(join(made.home, "rotated"), "");
    const { stdout, stderr } = await running;
    expect(stdout, stderr).to.match(/^(?:FIRST|SECOND)\nSECOND\n$/);
  });
});

describe("kubectl", () => {
  const server = shareLocalServer({}, mustInit);
  before(function () {
    needs(this, has("kubectl", "version", "--client"), "kubectl");
  });

  /** Knows a user by a token, or by the name in a certificate. */
  function serve(req: IncomingMessage, res: ServerResponse): void {
    const { subject } = (req.socket as TLSSocket).getPeerCertificate();
    const user = req.headers.authorization === "Bearer kube-token" ? "by token" : subject?.CN;
    res.writeHead(user === undefined ? 401 : 200, { "content-type": "application/json" }).end(JSON.stringify({ user }));
  }
  const upstream = shared(async () => {
    const started = await startUpstream(["localhost"], serve);
    Object.assign(started.server, { requestCert: true, rejectUnauthorized: false });
    return started;
  });

  const client = async (value: object) => {
    await mustPut(server(), "k8s/me", { value: JSON.stringify(value) });
    const at = `https://localhost:${upstream().port}`;
    const config = `apiVersion: v1
kind: Config
clusters: [{ name: here, cluster: { server: "${at}", certificate-authority: ca.pem } }]
contexts: [{ name: here, context: { cluster: here, user: me } }]
current-context: here
${recipe(page, "yaml")}`;
    return makeClient(server(), readOnly("k8s/me"), { ".kube/config": config, ".kube/ca.pem": upstream().certificate });
  };

  it("kubectl sends a token from the vault", async () => {
    const made = await client({ token: "kube-token" });
    const ask = () => made.run("kubectl", "get", "--raw", "/version");
    await mustNeedVault(server(), made, ask, (ended) => mustEnd(ended, /^\{"user":"by token"\}/));
  });

  it("kubectl shows a certificate from the vault", async () => {
    const pair = await generate([{ name: "commonName", value: "by certificate" }], { keyType: "ec" });
    const made = await client({ clientCertificateData: pair.cert, clientKeyData: pair.private });
    mustEnd(await made.run("kubectl", "get", "--raw", "/version"), /^\{"user":"by certificate"\}/);
  });

  it("kubectl shows why an expired credential is refused", async () => {
    const made = await client({ token: "kube-token", expiresAt: "2020-01-01T00:00:00Z" });
    const { code, stderr } = await made.run("kubectl", "get", "--raw", "/version");
    expect([code, /the credential at k8s\/me has expired: store a new one/.test(stderr)], stderr).to.deep.equal([
      1,
      true,
    ]);
  });
});

describe("cargo", function () {
  this.timeout(0);
  const server = shareLocalServer({}, mustInit);
  before(function () {
    needs(this, has("cargo", "--version"), "cargo");
  });

  type Crate = { readonly bytes: Buffer; readonly line: string };

  /** Reads what `cargo publish` sends: the metadata and the crate, each after its length. */
  function published(body: Buffer): Crate {
    const metadataEnd = 4 + body.readUInt32LE(0);
    const { name, vers } = JSON.parse(body.subarray(4, metadataEnd).toString()) as { name: string; vers: string };
    const bytes = body.subarray(metadataEnd + 4);
    const cksum = createHash("sha256").update(bytes).digest("hex");
    return { bytes, line: JSON.stringify({ name, vers, cksum, deps: [], features: {}, yanked: false }) };
  }

  let crate: Crate | null = null;

  /** Returns the body of a response; null for what is missing. */
  async function respond(req: IncomingMessage): Promise<string | Buffer | null> {
    const origin = `https://${req.headers.host}`;
    if (req.url === "/index/config.json")
      return JSON.stringify({ dl: `${origin}/crates`, api: origin, "auth-required": true });
    if (req.method === "PUT") crate = published(await buffer(req));
    if (req.method !== "GET") return '{"ok":true}';
    return (req.url?.startsWith("/index/") ? crate?.line : crate?.bytes) ?? null;
  }

  /** A registry that wants a token for everything, and has one crate. */
  const upstream = shared(() =>
    startUpstream(["localhost"], (req, res) => {
      if (req.headers.authorization !== "cargo-token")
        return void res.writeHead(401, { "www-authenticate": 'Cargo login_url="https://example.org"' }).end();
      void respond(req).then((body) => res.writeHead(body === null ? 404 : 200).end(body ?? ""));
    }),
  );

  it("cargo publishes to and fetches from its registry with a token in the vault", async () => {
    const index = `sparse+https://localhost:${upstream().port}/index/`;
    const provider = /global-credential-providers = \[.*?\]/.exec(readFileSync(page, "utf8"))?.[0];
    const made = await makeClient(server(), login("cargo/"), {
      ".cargo/config.toml": `[registry]\n${provider}\n[registries.mine]\nindex = "${index}"\n[http]\ncainfo = "ca.pem"\n`,
      "ca.pem": upstream().certificate,
      "mine/Cargo.toml": '[package]\nname = "mine"\nversion = "1.0.0"\ndescription = "d"\nlicense = "MIT"\n',
      "mine/src/lib.rs": "",
      "user/Cargo.toml":
        '[package]\nname = "user"\nversion = "1.0.0"\n[dependencies]\nmine = { version = "1", registry = "mine" }\n',
      "user/src/lib.rs": "",
    });
    made.env["CARGO_HTTP_CAINFO"] = certificateFile(made);
    const manifest = (name: string) => ["--manifest-path", join(made.home, name, "Cargo.toml")];
    const fetch = () => made.run("cargo", "fetch", ...manifest("user"));
    const missing = await fetch();
    expect([missing.code, /no token found|cargo login/.test(missing.stderr)], missing.stderr).to.deep.equal([
      101,
      true,
    ]);
    mustEnd(await made.run("cargo", "login", "--registry", "mine", "cargo-token"), /^/);
    expect(await mustListPaths(server(), "cargo/")).to.deep.equal([
      `cargo/${encodeURIComponent(index).replaceAll("%3A", ":")}`,
    ]);
    mustEnd(await made.run("cargo", "publish", "--no-verify", "--registry", "mine", ...manifest("mine")), /^/);
    mustEnd(await fetch(), /^/);
    mustEnd(await made.run("cargo", "logout", "--registry", "mine"), /^/);
    expect(await mustListPaths(server(), "cargo/")).to.deep.equal([]);
    mustEnd(await made.run("cargo", "login", "--registry", "mine", "cargo-token"), /^/);
    const yank = () => made.run("cargo", "yank", "--registry", "mine", "mine@1.0.0");
    await mustNeedVault(server(), made, yank, (ended) => mustEnd(ended, /^/));
  });
});

for (const program of ["terraform", "tofu"])
  describe(program, () => {
    const host = "registry.example";
    const server = shareLocalServer({}, mustInit);
    before(function () {
      needs(this, has(program, "version"), program);
    });

    /** A registry of modules: its documents by their addresses. */
    function serve(req: IncomingMessage, res: ServerResponse): void {
      const json = (body: object) => res.setHeader("content-type", "application/json").end(JSON.stringify(body));
      if (req.url === "/.well-known/terraform.json") {
        const oauth = { client: "cli", authz: "/authorize", token: "/token", ports: [20_000, 29_999] };
        return void json({ "modules.v1": "/v1/", "login.v1": { ...oauth, grant_types: ["authz_code"] } });
      }
      if (req.url === "/token") return void json({ access_token: "host-token", token_type: "bearer" });
      if (req.headers.authorization !== "Bearer host-token") return void res.writeHead(401).end();
      if (req.url?.endsWith("/versions")) return void json({ modules: [{ versions: [{ version: "1.0.0" }] }] });
      res.writeHead(204, { "x-terraform-get": `file://${moduleDirectory}` }).end();
    }
    let moduleDirectory = "";
    const upstream = shared(() => startUpstream([host], serve));

    /** A proxy that takes every host for the upstream, which has no name on this machine. */
    const proxy = shared(async () => {
      const started = createServer().on("connect", (_req, socket) => {
        const onward = connect(upstream().port, "127.0.0.1", () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
        for (const end of [socket, onward]) end.on("error", () => end.destroy());
        socket.pipe(onward).pipe(socket);
      });
      await new Promise<void>((resolve) => started.listen(0, "127.0.0.1", resolve));
      later(() => {
        started.closeAllConnections();
        started.close();
      });
      return (started.address() as AddressInfo).port;
    });

    /** A browser whose user has logged in: it follows the address after Terraform has gone on, which waits for its end. */
    const browser = `#!/bin/sh
node -e '
const { searchParams } = new URL(process.argv[1]);
fetch(searchParams.get("redirect_uri") + "?code=c&state=" + encodeURIComponent(searchParams.get("state")));
' "$1" > /dev/null 2>&1 < /dev/null &
`;

    it(`${program} gets, stores and forgets the token of a host with a helper`, async () => {
      const helper = /credentials_helper "strongroom" \{\}/.exec(readFileSync(page, "utf8"))?.[0];
      const made = await makeClient(server(), login("terraform/"), {
        ...{ ".terraformrc": `${helper}\n`, ".tofurc": `${helper}\n`, "ca.pem": upstream().certificate },
        ...{ "module/main.tf": "", "bin/xdg-open": browser },
        "main.tf": `module "m" {\n  source = "${host}/a/m/x"\n}\n`,
      });
      moduleDirectory = join(made.home, "module");
      const { PATH = "" } = made.env;
      const plugins = join(made.home, ".terraform.d", "plugins");
      mkdirSync(plugins, { recursive: true });
      const found = PATH.split(":")[0] ?? "";
      symlinkSync(join(found, "terraform-credentials-strongroom"), join(plugins, "terraform-credentials-strongroom"));
      Object.assign(made.env, {
        ...{
          HTTPS_PROXY: `http://127.0.0.1:${proxy()}`,
          SSL_CERT_FILE: certificateFile(made),
          CHECKPOINT_DISABLE: "1",
        },
        TF_LOG: "warn", // where it says why it has no token
        PATH: `${join(made.home, "bin")}:${PATH}`,
      });
      const get = () => made.run("sh", "-c", `rm -rf .terraform; exec ${program} get -no-color`);
      const { code, stderr } = await get();
      expect([code, /401|unauthorized|login/i.test(stderr)], stderr).to.deep.equal([1, true]);
      const answer = await made.run("sh", "-c", `chmod 755 bin/xdg-open; echo yes | ${program} login ${host}`);
      mustEnd(answer, /Success|has obtained|stored/);
      expect(await mustListPaths(server(), "terraform/")).to.deep.equal([`terraform/${host}`]);
      mustEnd(await get(), /^/);
      mustEnd(await made.run(program, "logout", host), /^/);
      expect(await mustListPaths(server(), "terraform/")).to.deep.equal([]);
      await mustPut(server(), `terraform/${host}`, { value: "host-token" });
      await mustNeedVault(server(), made, get, (ended) => mustEnd(ended, /^/));
    });
  });
