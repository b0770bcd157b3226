/**
 * Programs as they are, with only the environment of `agent run`: curl, git, Python, Node, SSE and WebSocket here; Go, gh and
 * the SDKs of providers in the long form, which installs them (npm run test:long -- agents).
 */

import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { lookup } from "node:dns/promises";
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { expect } from "chai";
import { stagePackage } from "../../packaging/packed-manifest.js";
import { bind, startUpstream, startWithBroker, type Upstream, value } from "../../tools/rig/broker-rig.js";
import { shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { type Ended, environment, run } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustPut } from "../../tools/rig/test-client.js";

const isLong = process.env["STRONGROOM_CLIENTS"] === "1";
/** Bytes of a stream in each direction: 1 GB in the long form. */
const streamBytes = isLong ? 1_000_000_000 : 20_000_000;

type Rig = {
  readonly server: TestServer;
  readonly upstream: Upstream;
  readonly at: string;
  /** Another upstream, at the name of this machine: Go uses no proxy for localhost. Null where the name is not loopback. */
  readonly named: string | null;
  readonly repository: string;
};

describe("clients of the broker", () => {
  const rig = shared(async (): Promise<Rig> => {
    const repository = makeRepository();
    const upstream = await startUpstream(["localhost"], (req, res) => answer(req, res));
    upstream.server.on("upgrade", acceptWebSocket);
    const name = hostname().toLowerCase();
    const { address = "" } = await lookup(name, { family: 4 }).catch(() => ({ address: "" }));
    const other = await startUpstream([name], answer, address.startsWith("127.") ? address : undefined);
    const server = await startWithBroker([upstream, other]);
    const place = { host: "localhost", port: upstream.port, private: true };
    for (const [path, binding] of [
      ["app/key", { name: "up" }],
      ["git/key", { basic: "x-access-token" }],
      ["anthropic/key", { header: "x-api-key", format: "{}", name: "anthropic" }],
      ["gh/key", { format: "token {}", host: name, port: other.port }],
    ] as const) {
      await mustPut(server, path, { value });
      await bind(server, path, { ...place, ...binding });
    }
    const named = address.startsWith("127.") ? `${name}:${other.port}` : null;
    return { server, upstream, at: `https://localhost:${upstream.port}`, named, repository };
  });

  function makeRepository(): string {
    const directory = temporaryDirectory();
    const git = (...args: readonly string[]) => {
      const identity = ["-c", "user.name=t", "-c", "user.email=t@t.test", "-c", "init.defaultBranch=main"];
      execFileSync("git", [...identity, "-C", directory, ...args], {
        env: { PATH: process.env["PATH"], HOME: directory },
      });
    };
    git("init", "-q");
    writeFileSync(join(directory, "file"), "of the repository\n");
    git("add", "file");
    git("commit", "-qm", "one");
    return directory;
  }

  /** Each credential in its own form; anything without one is refused, so that a success shows that it was there. */
  const credentials = [
    `Bearer ${value}`,
    `Basic ${Buffer.from(`x-access-token:${value}`).toString("base64")}`,
    `token ${value}`,
  ];

  function answer(req: IncomingMessage, res: ServerResponse): void {
    const given = [req.headers.authorization, req.headers["x-api-key"] === value ? credentials[0] : undefined];
    if (!given.some((credential) => credential !== undefined && credentials.includes(credential)))
      return void res.writeHead(401, { "WWW-Authenticate": 'Basic realm="r"' }).end();
    const { pathname } = new URL(req.url ?? "", "https://x");
    const handle = pathname.startsWith("/r.git/") ? serveRepository : (special[pathname] ?? report);
    handle(req, res);
  }

  function report(req: IncomingMessage, res: ServerResponse): void {
    const { pathname } = new URL(req.url ?? "", "https://x");
    let bytes = 0;
    req.on("data", (piece: Buffer) => {
      bytes += piece.length;
    });
    req.on("end", () => {
      const known = json[pathname];
      if (known !== undefined) res.setHeader("Content-Type", "application/json").end(JSON.stringify(known));
      else res.end(`${req.method} ${pathname} ${bytes}\n`);
    });
  }

  const special: Readonly<Record<string, typeof report>> = { "/sse": streamEvents, "/big": streamBody };

  const json: Readonly<Record<string, object>> = {
    "/v1/messages": {
      id: "m",
      type: "message",
      role: "assistant",
      model: "m",
      content: [{ type: "text", text: "hello from upstream" }],
      stop_reason: "end_turn",
      usage: { input_tokens: 1, output_tokens: 1 },
    },
    "/v1/chat/completions": {
      id: "c",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "hello from upstream" } }],
    },
    "/api/v3/user": { login: "hello-from-upstream" },
  };

  /** The next event is sent only once the one before it was received: a proxy that collects would stop here. */
  function streamEvents(_: IncomingMessage, res: ServerResponse): void {
    res.writeHead(200, { "Content-Type": "text/event-stream" });
    let n = 0;
    const timer = setInterval(() => {
      res.write(`data: ${n++}\n\n`);
      if (n === 3) res.end();
    }, 30);
    res.once("close", () => clearInterval(timer));
  }

  function streamBody(_: IncomingMessage, res: ServerResponse): void {
    const chunk = Buffer.alloc(64 * 1024, "x");
    let left = streamBytes;
    const send = () => {
      while (left > 0) {
        const piece = chunk.subarray(0, Math.min(left, chunk.length));
        left -= piece.length;
        if (!res.write(piece)) return void res.once("drain", send);
      }
      res.end();
    };
    send();
  }

  /** git's own program for smart HTTP (git-http-backend(1)). */
  function serveRepository(req: IncomingMessage, res: ServerResponse): void {
    const { pathname, search } = new URL(req.url ?? "", "https://x");
    const pieces: Buffer[] = [];
    req.on("data", (piece: Buffer) => pieces.push(piece));
    req.on("end", () => {
      const env = {
        PATH: process.env["PATH"],
        GIT_PROJECT_ROOT: join(rig().repository, ".git"),
        GIT_HTTP_EXPORT_ALL: "1",
        PATH_INFO: pathname.slice("/r.git".length),
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: req.method,
        CONTENT_TYPE: req.headers["content-type"] ?? "",
        ...(req.headers["content-encoding"] && { HTTP_CONTENT_ENCODING: req.headers["content-encoding"] }),
      };
      const { stdout } = spawnSync("git", ["http-backend"], { env, input: Buffer.concat(pieces) });
      const end = stdout.indexOf("\r\n\r\n");
      for (const line of stdout.toString("latin1", 0, end).split("\r\n")) {
        const [name = "", text = ""] = line.split(": ");
        if (name.toLowerCase() === "status") res.statusCode = Number.parseInt(text, 10);
        else res.setHeader(name, text);
      }
      res.end(stdout.subarray(end + 4));
    });
  }

  /** Sends back what comes, byte by byte as it is: masked frames of a client are not read. */
  function acceptWebSocket(req: IncomingMessage, socket: Duplex): void {
    const key = `${req.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash("sha1").update(key).digest("base64");
    const isKnown = credentials.includes(req.headers.authorization ?? "");
    const status = isKnown ? "101 Switching Protocols" : "401 Unauthorized";
    socket.write(
      `HTTP/1.1 ${status}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    if (!isKnown) return void socket.end();
    socket.on("error", () => {}).on("data", () => socket.write(Buffer.from([0x81, 5, ...Buffer.from("hello")])));
  }

  /** Runs a program under `agent run`. */
  function agent(use: string, command: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<Ended> {
    const { server } = rig();
    const env = { STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url, LANG: "C.UTF-8", ...more };
    return run(["agent", "run", "-q", "--no-sandbox", "--use", use, ...(flags[use] ?? []), "--", ...command], env);
  }

  const flags: Readonly<Record<string, readonly string[]>> = { "gh/": ["--placeholder", "GH_ENTERPRISE_TOKEN"] };

  /** A Node that reads NODE_USE_ENV_PROXY; null without one. */
  function fetchNode(): string | null {
    const node = process.env["STRONGROOM_FETCH_NODE"] ?? process.execPath;
    const version = execFileSync(node, ["-p", "process.versions.node"], { encoding: "utf8" });
    const [major = 0, minor = 0] = version.split(".").map(Number);
    return major > 22 || (major === 22 && minor >= 21) ? node : null;
  }

  function has(program: string, ...args: readonly string[]): boolean {
    return spawnSync(program, args, { stdio: "ignore" }).status === 0;
  }

  describe("programs as they are", function () {
    this.timeout(0);

    it("curl works, also with --http2, a chunked upload and a long stream in both directions", async () => {
      const { at } = rig();
      const file = join(temporaryDirectory(), "body");
      writeFileSync(file, Buffer.alloc(streamBytes, "y"));
      const script = `curl -sSf --http2 -w '%{http_version}\n' ${at}/a
curl -sSf -H 'Transfer-Encoding: chunked' -T ${file} ${at}/up
curl -sSf ${at}/big | wc -c`;
      const { stdout, stderr } = await agent("app/", ["sh", "-c", script]);
      expect(stdout, stderr).to.equal(`GET /a 0\n1.1\nPUT /up ${streamBytes}\n${streamBytes}\n`);
    });

    it("git clones with Basic authentication", async () => {
      const clone = join(temporaryDirectory(), "clone");
      const { code, stderr } = await agent("git/", ["git", "clone", "-q", `${rig().at}/r.git`, clone]);
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
      expect(existsSync(join(clone, "file"))).to.equal(true);
    });

    it("Python's urllib works, and requests where it is installed", async function () {
      const { at } = rig();
      const urllib = `import urllib.request as u; print(u.urlopen("${at}/py", data=b"abc").read().decode())`;
      expect((await agent("app/", ["python3", "-c", urllib])).stdout).to.contain("POST /py 3");
      needs(this, has("python3", "-c", "import requests"), "Python's requests");
      const { stdout } = await agent("app/", [
        "python3",
        "-c",
        `import requests; print(requests.get("${at}/rq").text)`,
      ]);
      expect(stdout).to.contain("GET /rq 0");
      return undefined;
    });

    it("server-sent events arrive one by one", async () => {
      const python = `import urllib.request, time
r = urllib.request.urlopen("${rig().at}/sse"); t = []
for line in r:
    if line.strip(): print(line.decode().strip()); t.append(time.monotonic())
print("apart" if t[2] - t[0] > 0.03 else "together")`;
      const { stdout, stderr } = await agent("app/", ["python3", "-c", python]);
      expect(stdout, stderr).to.equal("data: 0\ndata: 1\ndata: 2\napart\n");
    });

    it("curl's upgrade opens a WebSocket", async () => {
      const script = `(printf 'x'; sleep 1) | curl -sS --http1.1 -N -m 5 -H 'Connection: Upgrade' -H 'Upgrade: websocket' \\
-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' -D - -o /dev/null ${rig().at}/ws || true`;
      const { stdout } = await agent("app/", ["sh", "-c", script]);
      expect(stdout).to.contain("101 Switching Protocols").and.contain("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    });

    it("Node's fetch and WebSocket work from 22.21 on", async function () {
      const node = fetchNode();
      needs(this, node !== null, "Node 22.21");
      const { at } = rig();
      const script = `fetch("${at}/node", { method: "POST", body: "xyz" }).then((r) => r.text()).then(console.log)`;
      const { stdout, stderr } = await agent("app/", [node, "-e", script]);
      expect(stdout, stderr).to.equal("POST /node 3\n\n");
      const frames = `const socket = new WebSocket("${at.replace("https", "wss")}/ws");
socket.onopen = () => socket.send("x");
socket.onmessage = ({ data }) => { console.log(data); process.exit(); };
socket.onerror = ({ error }) => { console.log(error); process.exit(1); };`;
      const after = await agent("app/", [node, "-e", frames]);
      expect(after.stdout, after.stderr).to.equal("hello\n");
      return undefined;
    });
  });

  describe("programs that are installed for the test", function () {
    this.timeout(0);
    before(function () {
      needs(this, isLong, "STRONGROOM_CLIENTS");
    });

    it("a Go program works", async function () {
      const { named } = rig();
      needs(this, has("go", "version"), "go");
      needs(this, named !== null, "a host name of this machine on the loopback");
      const directory = temporaryDirectory();
      writeFileSync(
        join(directory, "main.go"),
        `package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	r, err := http.Get(os.Args[1])
	if err != nil { fmt.Println(err); os.Exit(1) }
	b, _ := io.ReadAll(r.Body)
	fmt.Print(string(b))
}`,
      );
      const program = join(directory, "program");
      execFileSync("go", ["build", "-o", program, join(directory, "main.go")], {
        env: { ...process.env, CGO_ENABLED: "0", XDG_CACHE_HOME: directory, XDG_CONFIG_HOME: directory },
      });
      const { stdout, stderr } = await agent("gh/", [program, `https://${named}/go`]);
      expect(stdout, stderr).to.equal("GET /go 0\n");
      return undefined;
    });

    it("gh works", async function () {
      const { named } = rig();
      needs(this, has("gh", "--version"), "gh");
      needs(this, named !== null, "a host name of this machine on the loopback");
      const { stdout, stderr } = await agent("gh/", ["gh", "api", "user"], { GH_HOST: named });
      expect(stdout, stderr).to.contain("hello-from-upstream");
      return undefined;
    });

    it("the fetch of any Node works with undici's agent", async () => {
      const directory = temporaryDirectory();
      execFileSync("npm", ["install", "--no-audit", "--no-fund", "--prefix", directory, "undici@6"], {
        stdio: "ignore",
      });
      const preload = join(directory, "proxy.mjs");
      writeFileSync(
        preload,
        'import { EnvHttpProxyAgent, setGlobalDispatcher } from "undici";\nsetGlobalDispatcher(new EnvHttpProxyAgent());\n',
      );
      const script = `fetch("${rig().at}/node").then((r) => r.text()).then(console.log)`;
      const { stdout, stderr } = await agent("app/", [process.execPath, "--import", preload, "-e", script]);
      expect(stdout, stderr).to.equal("GET /node 0\n\n");
    });

    it("the npm SDKs of Anthropic and OpenAI work by base URL", async () => {
      const directory = temporaryDirectory();
      mkdirSync(join(directory, "node_modules"));
      execFileSync(
        "npm",
        ["install", "--no-audit", "--no-fund", "--prefix", directory, "openai", "@anthropic-ai/sdk"],
        {
          stdio: "ignore",
        },
      );
      const script = `const { port } = new URL(process.env.HTTPS_PROXY), apiKey = process.env.AGENT_TOKEN, base = "http://127.0.0.1:" + port + "/r/";
const ask = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "x" }] };
process.chdir(${JSON.stringify(directory)});
const load = (name) => require(require.resolve(name, { paths: [process.cwd()] }));
(async () => {
  const name = process.argv[1];
  if (name === "anthropic") { const A = load("@anthropic-ai/sdk"); console.log((await new A.Anthropic({ apiKey, baseURL: base + name }).messages.create(ask)).content[0].text); }
  else { const O = load("openai"); console.log((await new O.OpenAI({ apiKey, baseURL: base + name + "/v1" }).chat.completions.create(ask)).choices[0].message.content); }
})();`;
      for (const [use, name] of [
        ["anthropic/", "anthropic"],
        ["app/", "up"],
      ] as const) {
        const { stdout, stderr } = await agent(use, [process.execPath, "-e", script, name]);
        expect(stdout, stderr).to.equal("hello from upstream\n");
      }
    });

    it("strongroom mcp works from its packages, called by the SDK's client", async () => {
      const directory = temporaryDirectory();
      const npm = (cwd: string, ...args: readonly string[]) =>
        execFileSync("npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
      const pack = (from: string) =>
        join(directory, npm(from, "pack", "--ignore-scripts", "--silent", "--pack-destination", directory));
      const [program, mcp] = [join(directory, "program"), join(directory, "mcp")];
      stagePackage(program);
      cpSync("packages/mcp", mcp, { recursive: true });
      cpSync("dist/mcp", join(mcp, "dist"), { recursive: true }); // as its prepack does
      npm(directory, "install", "--no-audit", "--no-fund", "--prefix", directory, pack(program), pack(mcp));
      const { server } = rig();
      const env = environment({ STRONGROOM_HOME: server.home, STRONGROOM_ADDRESS: server.url });
      const command = join(directory, "node_modules", ".bin", "strongroom");
      const args = ["mcp", "--use", "app/"];
      const client = new Client({ name: "test", version: "1.0.0" });
      await client.connect(new StdioClientTransport({ command, args, env: env as Record<string, string> }));
      const { content } = await client.callTool({ name: "request", arguments: { url: `${rig().at}/mcp` } });
      await client.close();
      expect(JSON.stringify(content)).to.contain("HTTP 200").and.contain("GET /mcp 0");
    });

    it("the PyPI packages anthropic, openai, requests and httpx work", async () => {
      const directory = temporaryDirectory();
      execFileSync("python3", ["-m", "venv", directory], { stdio: "ignore" });
      const python = join(directory, "bin", "python");
      execFileSync(python, ["-m", "pip", "install", "-q", "requests", "httpx", "openai", "anthropic"], {
        stdio: "ignore",
      });
      const { at } = rig();
      const base = `import os, urllib.parse as p; key = os.environ["AGENT_TOKEN"]
base = "http://127.0.0.1:%d/r/" % p.urlparse(os.environ["HTTPS_PROXY"]).port
ask = dict(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])
`;
      const programs: readonly (readonly [use: string, program: string, says: string])[] = [
        ["app/", `import requests; print(requests.get("${at}/rq").text)`, "GET /rq 0"],
        ["app/", `import httpx; print(httpx.post("${at}/hx", content=b"ab").text)`, "POST /hx 2"],
        [
          "app/",
          `${base}import openai; print(openai.OpenAI(api_key=key, base_url=base + "up/v1").chat.completions.create(**ask).choices[0].message.content)`,
          "hello from upstream",
        ],
        [
          "anthropic/",
          `${base}import anthropic; print(anthropic.Anthropic(api_key=key, base_url=base + "anthropic").messages.create(**ask).content[0].text)`,
          "hello from upstream",
        ],
      ];
      for (const [use, program, says] of programs) {
        const { stdout, stderr } = await agent(use, [python, "-c", program]);
        expect(stdout, stderr).to.contain(says);
      }
    });
  });
});
