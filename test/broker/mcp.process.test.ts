/** `strongroom mcp`, judged by the official SDK's own client: agents use secrets, and no tool returns a value. */
import { existsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { expect } from "chai";
import { bind, startUpstream, startWithBroker, type Upstream } from "../../tools/rig/broker-rig.js";
import { later, shared } from "../../tools/rig/clean-up.js";
import { mainFile, node, run } from "../../tools/rig/process.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustGet, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { asUser, needsSandbox, ownDirectory, ownEnvironment } from "./plain-user.js";

/** With characters that JSON, URLs and base64 write in another way. */
const value = 'Zk4/"q9+vX&7f3aB?Rt8wL2%pQ6<mN5>cJ1=dH0yU/sE7gV';
const basic = "Vt5Qm8Wc2Ry7Kx4Hb9Nz3Lp6Jd1Gf0Sa";

/** Values from a person, or from a program that counts: an agent could try all of them. */
const guessable = ["482913", "correct-horse-battery-staple-2024", "postgres://app:hunter2@db.example.com:5432/app"];

const wrapped = (text: string, width: number, end: string) =>
  text.replaceAll(new RegExp(`.{${width}}`, "g"), `$&${end}`);
const eachByte = (show: (hex: string) => string) =>
  Array.from(Buffer.from(value), (byte) => show(toHex(byte))).join("");
const toHex = (byte: number) => byte.toString(16).padStart(2, "0");
const toBase64 = (text: string | Buffer) => Buffer.from(text).toString("base64");
const escapeHtml = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&#34;");

/** Forms in which programs repeat a value; each on lines of its own. */
const forms: Readonly<Record<string, string | Buffer>> = {
  "as it is": value,
  "on wrapped lines": wrapped(value, 10, "\n"),
  JSON: JSON.stringify(value),
  "JSON with escaped slashes": JSON.stringify(value).replaceAll("/", "\\/"),
  "JSON for HTML": JSON.stringify(value).replace(/[&<>+]/g, (one) => `\\u00${toHex(one.charCodeAt(0))}`),
  "JSON in JSON": JSON.stringify(JSON.stringify(value)),
  "escapes of each byte": eachByte((hex) => `\\x${hex}`),
  "a URL": encodeURIComponent(value),
  "a URL in small letters": encodeURIComponent(value).replace(/%../g, (one) => one.toLowerCase()),
  "a URL with some escapes": value.replaceAll("/", "%2f"),
  "a URL in a URL": encodeURIComponent(encodeURIComponent(value)),
  "escapes of a URL for each byte": eachByte((hex) => `%${hex}`),
  HTML: escapeHtml(value),
  "HTML of JSON": escapeHtml(JSON.stringify(value)),
  "HTML with numbers": eachByte((hex) => `&#x${hex};`),
  ...Object.fromEntries([0, 1, 2].map((n) => [`base64 after ${n} bytes`, toBase64(`${"x".repeat(n)}${value}xyz`)])),
  "base64 on lines": wrapped(toBase64(`me:${value}`), 19, "\r\n"),
  "base64 on lines in JSON": JSON.stringify(wrapped(toBase64(`me:${value}`), 19, "\n")),
  "base64 in a URL": encodeURIComponent(toBase64(value)),
  base64url: Buffer.from(`x${value}`).toString("base64url"),
  "base64 of UTF-16": toBase64(Buffer.from(value, "utf16le")),
  hex: Buffer.from(value).toString("hex"),
  "hex in capitals": Buffer.from(value).toString("hex").toUpperCase(),
  "hex with colons": eachByte((hex) => `${hex}:`),
  "UTF-16": Buffer.from(value, "utf16le"),
  "UTF-16, big-endian": Buffer.from(value, "utf16le").swap16(),
  "quoted-printable": `${value.replaceAll("=", "=3D").slice(0, 20)}=\r\n${value.replaceAll("=", "=3D").slice(20)}`,
};

const formText = Buffer.concat(
  Object.entries(forms).flatMap(([name, form]) => [`<<${name}>> `, form, "\n"].map((each) => Buffer.from(each))),
);

type Rig = { readonly server: TestServer; readonly upstream: Upstream; readonly client: Client };

async function startClient(server: TestServer): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" });
  const env = { ...ownEnvironment(server), PATH: pathWithMcp() };
  const [command = node, ...args] = [...asUser(), node, mainFile, "mcp", "--use", "app/"];
  await client.connect(
    new StdioClientTransport({
      command,
      args,
      cwd: "/",
      env: env as Record<string, string>,
    }),
  );
  later(() => client.close());
  return client;
}

/** The package's program as it is built, under the name that it has once it is installed. */
function pathWithMcp(): string {
  const directory = ownDirectory();
  const program = resolve("dist/mcp/strongroom-mcp.mjs");
  writeFileSync(join(directory, "strongroom-mcp"), `#!/bin/sh\nexec "${node}" "${program}" "$@"\n`, { mode: 0o755 });
  return `${directory}:${process.env["PATH"] ?? ""}`;
}

/** The shown output ends within the value that follows. */
const filler = Buffer.alloc(64 * 1024 - 20, "- ");

describe("strongroom mcp", function () {
  this.timeout(0);

  const rig = shared(async (): Promise<Rig> => {
    const upstream = await startUpstream(["localhost"], (req, res) => {
      const authorization = String(req.headers.authorization ?? req.headers["x-api-key"]);
      res.setHeader("X-Echo", encodeURIComponent(authorization));
      const body = req.url === "/key" ? formText : Buffer.from(authorization);
      req.resume().on("end", () => res.end(req.url === "/long" ? Buffer.concat([filler, Buffer.from(value)]) : body));
    });
    const server = await startWithBroker([upstream]);
    await mustPut(server, "app/key", { value });
    await mustPut(server, "app/basic", { value: basic });
    await mustPut(server, "other/key", { value: "of-another-agent" });
    const place = { host: "localhost", port: upstream.port, private: true };
    await bind(server, "app/key", { ...place, paths: ["/key", "/long"], header: "x-api-key", format: "{}" });
    await bind(server, "app/basic", { ...place, paths: ["/basic"], basic: "me" });
    await bind(server, "other/key", { host: "other.test" });
    return { server, upstream, client: await startClient(server) };
  });

  async function call(name: string, args: Record<string, unknown> = {}): Promise<string> {
    const { content, isError } = await rig().client.callTool({ name, arguments: args });
    const [{ text }] = content as [{ readonly text: string }];
    for (const secret of [value, basic]) expect(text).not.to.contain(secret);
    return isError === true ? `failed: ${text}` : text;
  }

  it("mcp lists its four tools, each with a description and a schema", async () => {
    const { tools } = await rig().client.listTools();
    expect(tools.map(({ name }) => name)).to.deep.equal(["list", "generate", "request", "run"]);
    for (const { description, inputSchema } of tools) {
      expect(description).to.be.a("string").with.length.above(20);
      expect(inputSchema.type).to.equal("object");
    }
  });

  it("the tool list returns the secrets of the scope with their hosts", async () => {
    const { secrets } = JSON.parse(await call("list"));
    expect(secrets.map((one: { path: string; host: string }) => [one.path, one.host])).to.deep.equal([
      ["app/basic", "localhost"],
      ["app/key", "localhost"],
    ]);
    expect(JSON.parse(await call("list", { prefix: "app/k" })).secrets).to.have.length(1);
    expect(JSON.parse(await call("list", { prefix: "other/" })).secrets).to.have.length(0);
  });

  it("the tool generate creates a secret in the scope, and replaces none", async () => {
    expect(await call("generate", { path: "app/new", length: 40 })).to.equal("stored app/new, version 1");
    const made = String((await mustGet(rig().server, "app/new"))["value"]);
    expect(made).to.match(/^[A-Za-z0-9]{40}$/);
    expect(await call("generate", { path: "app/new" })).to.match(/^failed: /);
    expect(await call("generate", { path: "other/new" })).to.contain("failed: other/new is outside");
    expect(await mustGet(rig().server, "app/new")).to.include({ value: made });
  });

  it("the tool request sends the credential, and hides it in the response", async () => {
    const { upstream } = rig();
    const answer = await call("request", { url: `https://localhost:${upstream.port}/key`, method: "POST", body: "x" });
    expect(answer)
      .to.match(/^HTTP 200\n/)
      .and.to.contain("***");
    expect(upstream.seen.at(-1)?.headers).to.include({ "x-api-key": value });
    expect(answer).to.match(/x-echo: \*\*\*\n/);
    for (const name of Object.keys(forms)) {
      const [, after = ""] = answer.split(`<<${name}>> `);
      const [shown = ""] = after.split("<<");
      expect(shown.replaceAll("\0", ""), name).to.match(/^[^*]{0,8}\*\*\*[^*]{0,8}$/);
    }
    const long = await call("request", { url: `https://localhost:${upstream.port}/long` });
    expect(long).to.match(/- \*\*\*\n\[cut here\]$/);
    const second = await call("request", { url: `https://localhost:${upstream.port}/basic` });
    expect(second)
      .to.contain("***")
      .and.not.contain(Buffer.from(`me:${basic}`).toString("base64").replace(/.?=*$/, ""));
  });

  it("a response to a right guess of a value equals that to a wrong one", async () => {
    const { server, upstream } = rig();
    const at = `https://localhost:${upstream.port}/pin`;
    for (const pin of guessable) {
      await mustPut(server, "app/pin", { value: pin });
      await bind(server, "app/pin", {
        host: "localhost",
        port: upstream.port,
        private: true,
        paths: ["/pin"],
        basic: "me",
      });
      const asked = await Promise.all(
        [pin, "another"].map((body) => call("request", { url: at, method: "POST", body })),
      );
      expect(asked[0]).to.match(/^HTTP 200\nThe rest is withheld, whatever it is: the value of app\/pin/);
      const isFirst = pin === guessable[0]; // the tools share the judgement of a value
      const programs = isFirst && existsSync("/usr/bin/bwrap") ? ["printf", "false"] : [];
      const ran = await Promise.all(programs.map((program) => call("run", { command: [program, pin] })));
      for (const [answers, wanted] of [
        [asked, 1],
        [ran, Math.min(1, ran.length)],
      ] as const)
        expect(new Set(answers).size, pin).to.equal(wanted);
      expect([...asked, ...ran].join()).not.to.contain(pin);
    }
    mustSucceed(await send(server, { method: "DELETE", path: "/v1/secrets/app/pin" }));
  });

  it("the tool request says why a request was refused", async () => {
    const { upstream } = rig();
    expect(await call("request", { url: `https://localhost:${upstream.port}/other` })).to.contain(
      "does not allow this path",
    );
    expect(await call("request", { url: "https://other.test/" }))
      .to.contain("HTTP 403")
      .and.contain("no binding");
    expect(await call("request", { url: "http://localhost/" })).to.match(/^failed: .*https/);
    for (const url of ["https://x:y@localhost/", "file:///etc/passwd", "unix:/run/docker.sock", "ftp://localhost/"])
      expect(await call("request", { url }), url).to.match(/^failed: .*https/);
    const url = `https://localhost:${upstream.port}/key`;
    expect(await call("request", { url, headers: { RANGE: "bytes=0-3" } })).to.match(/^failed: .*without Range/);
    expect(await call("request", { url, headers: { "X-A": "b\r\nX-C: d" } })).to.match(/^failed: /);
  });

  it("mcp continues with a new session after the revocation of its session", async () => {
    const { server, upstream } = rig();
    const { tokens } = mustSucceed(await send(server, { path: "/v1/tokens" })) as {
      readonly tokens: { name: string }[];
    };
    for (const { name } of tokens) mustSucceed(await send(server, { method: "DELETE", path: `/v1/tokens/${name}` }));
    expect(await call("request", { url: `https://localhost:${upstream.port}/key` })).to.match(/^HTTP 200\n/);
  });

  it("the tool run starts programs in the sandbox, and hides credentials in their output", async function () {
    needsSandbox(this);
    const { server, upstream } = rig();
    const script = `curl -sS https://localhost:${upstream.port}/key; cat ${join(server.home, "token")}; env; cat; exit 3`;
    const answer = await call("run", { command: ["sh", "-c", script], input: "given" });
    expect(answer).to.contain("exit status 3").and.contain("***").and.contain("given").and.not.contain(server.token);
    expect(answer).not.to.contain("STRONGROOM_");
    expect(answer).not.to.contain(Buffer.from(value).toString("base64").slice(0, 16));
  });
});

describe("strongroom mcp without its package", () => {
  it("mcp says how to install its missing package", async () => {
    const { code, stderr } = await run(["mcp"], { PATH: "/usr/bin:/bin" });
    expect({ code, stderr }).to.deep.include({ code: 2 });
    expect(stderr).to.contain("npm pack -w strongroom-mcp");
  });
});
