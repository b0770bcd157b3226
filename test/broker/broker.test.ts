/** The broker: programs use secrets that they never read, at the hosts that a secret is bound to and nowhere else. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { relayPreface } from "../../src/relay-preface.js";
import {
  type Agent,
  bind,
  brokerRig,
  proxyAuthorization,
  sendRaw,
  sendThrough,
  startAgent,
  startBound,
  startUpstream,
  value,
} from "../../tools/rig/broker-rig.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import {
  type Json,
  mustCreateToken,
  mustLock,
  mustPut,
  mustRefuse,
  mustSucceed,
  send,
} from "../../tools/rig/test-client.js";

/** Runs curl through the broker; returns its output and the response's status behind it. */
function curl({ token, port, caFile }: Agent, ...args: readonly string[]): Promise<string> {
  const proxy = ["--proxy", `http://x:${token}@127.0.0.1:${port}`, "--noproxy", "", "--cacert", caFile];
  return output("curl", ["-sS", "-w", "%{http_code}", ...proxy, ...args]);
}

function output(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const options = { env: { PATH: process.env["PATH"] ?? "", ...env }, timeout: 30_000 };
  return new Promise((resolve) => execFile(command, args, options, (_error, out, problems) => resolve(out + problems)));
}

describe("the broker", () => {
  const rig = brokerRig();

  it("the broker injects the credential, and the program never sees it", async () => {
    const { server, upstream } = rig();
    const agent = await startAgent(server);
    const url = `https://localhost:${upstream.port}`;
    const seen = upstream.seen.length;
    expect(await curl(agent, `${url}/a`, "-H", "Authorization: Bearer own", "-H", "X-Own: kept")).to.equal(
      "GET /a 0\n200",
    );
    expect(await curl(agent, `${url}/b`, "-d", "x=1")).to.equal("POST /b 3\n200");
    const [first, second] = upstream.seen.slice(seen);
    expect(first?.headers).to.include({ authorization: `Bearer ${value}`, "x-own": "kept" });
    expect(second?.headers["authorization"]).to.equal(`Bearer ${value}`);
    expect(JSON.stringify(upstream.seen)).not.to.contain(agent.token);
  });

  it("a binding's route works as a base URL with the token as API key", async () => {
    const { server, upstream } = rig();
    const { token, port } = await startAgent(server);
    const route = `http://127.0.0.1:${port}/r/up/v1/x?y=1`;
    for (const header of [`Authorization: Bearer ${token}`, `X-Api-Key: ${token}`]) {
      const seen = upstream.seen.length;
      expect(await output("curl", ["-sS", "--noproxy", "*", "-H", header, route])).to.equal("GET /v1/x?y=1 0\n");
      expect(upstream.seen[seen]?.headers).to.include({ authorization: `Bearer ${value}` });
      expect(JSON.stringify(upstream.seen[seen])).not.to.contain(token);
    }
    expect(
      await output("curl", ["-sS", "--noproxy", "*", "-H", "Host: rebound.test", "-H", `X-Api-Key: ${token}`, route]),
    ).to.contain("BAD_REQUEST");
    expect(
      await output("curl", [
        "-sS",
        "--noproxy",
        "*",
        "-H",
        "Origin: https://x.test",
        "-H",
        `X-Api-Key: ${token}`,
        route,
      ]),
    ).to.contain("BAD_REQUEST");
    expect(await output("curl", ["-sS", "--noproxy", "*", route])).to.contain("no token");
  });

  it("the broker streams bodies with a length, with chunks and after 100 Continue", async () => {
    const { server, upstream } = rig();
    const agent = await startAgent(server);
    const file = join(temporaryDirectory(), "body");
    writeFileSync(file, Buffer.alloc(3_000_000, "x"));
    const url = `https://localhost:${upstream.port}/upload`;
    expect(await curl(agent, url, "--data-binary", `@${file}`)).to.equal("POST /upload 3000000\n200");
    expect(await curl(agent, url, "-H", "Transfer-Encoding: chunked", "--data-binary", `@${file}`)).to.equal(
      "POST /upload 3000000\n200",
    );
    expect(await curl(agent, url, "-H", "Expect: 100-continue", "--data-binary", `@${file}`)).to.equal(
      "POST /upload 3000000\n200",
    );
  });

  it("Python's strict verification and git work unchanged", async () => {
    const { server, upstream } = rig();
    const { token, port, caFile } = await startAgent(server);
    const proxy = `http://x:${token}@127.0.0.1:${port}`;
    const script = `import ssl, urllib.request
c = ssl.create_default_context(cafile=${JSON.stringify(caFile)}); c.verify_flags |= ssl.VERIFY_X509_STRICT
o = urllib.request.build_opener(urllib.request.ProxyHandler({"https": "${proxy}"}), urllib.request.HTTPSHandler(context=c))
print(o.open("https://localhost:${upstream.port}/py").read().decode())`;
    expect(await output("python3", ["-c", script])).to.contain("GET /py 0");
    const seen = upstream.seen.length;
    await output("git", ["-c", `http.proxy=${proxy}`, "ls-remote", `https://localhost:${upstream.port}/r.git`], {
      GIT_SSL_CAINFO: caFile,
      NO_PROXY: "",
    });
    expect(upstream.seen[seen]).to.include({ url: "/r.git/info/refs?service=git-upload-pack" });
  });

  const refusals: readonly (readonly [
    rule: string,
    body: object,
    target: string,
    args: readonly string[],
    says: string,
  ])[] = [
    ["a method that the binding does not allow", { methods: ["POST"] }, "/x", [], "does not allow GET"],
    ["a path that the binding does not allow", { paths: ["/v1/*"] }, "/v1/a/b", [], "does not allow this path"],
    ["a path with dot segments", { paths: ["/v1/**"] }, "/v1/../admin", ["--path-as-is"], "ambiguous"],
    ["a path with an encoded slash", { paths: ["/v1/*"] }, "/v1/a%2Fb", [], "ambiguous"],
  ];
  for (const [rule, limits, target, args, says] of refusals) {
    it(`${rule} is refused`, async () => {
      const { server, upstream } = rig();
      await mustPut(server, "limited/key", { value });
      await bind(server, "limited/key", { host: "localhost", port: upstream.port, private: true, ...limits });
      const agent = await startAgent(server, { paths: ["limited/"] });
      const seen = upstream.seen.length;
      const answer = await curl(agent, ...args, `https://localhost:${upstream.port}${target}`);
      expect(answer).to.contain(says).and.to.match(/403$/);
      expect(upstream.seen).to.have.length(seen);
    });
  }

  for (const [rule, body] of [
    ["a chunk whose size ends in a bare LF", "5\nhello\r\n0\r\n\r\n"],
    ["a chunk that is longer than its size", "5\r\nhello, world\r\n0\r\n\r\n"],
    ["trailers", "5\r\nhello\r\n0\r\nX: y\r\n\r\n"],
  ] as const) {
    it(`a body with ${rule} is refused`, async () => {
      const { server, upstream } = rig();
      const at = `localhost:${upstream.port}`;
      const head = `POST /ambiguous HTTP/1.1\r\nHost: ${at}\r\nTransfer-Encoding: chunked\r\n\r\n`;
      const response = await sendThrough(await startAgent(server), at, head + body);
      expect(response)
        .to.match(/^HTTP\/1.1 400 /)
        .and.to.contain("send a plain HTTP/1.1 request");
      expect(upstream.seen.filter(({ url }) => url === "/ambiguous")).to.deep.equal([]);
    });
  }

  it("other hosts, private addresses and cleartext are refused", async () => {
    const { server, upstream } = rig();
    const agent = await startAgent(server, { allowHosts: ["127.0.0.1"] });
    expect(await curl(agent, "https://other.test/")).to.contain("403");
    expect(await curl(agent, `https://127.0.0.1:${upstream.port}/`)).to.contain("403");
    expect(await curl(agent, `http://localhost:${upstream.port}/`)).to.contain("cleartext");
    await mustPut(server, "public/key", { value });
    await bind(server, "public/key", { host: "localhost", port: upstream.port });
    const other = await startAgent(server, { paths: ["public/"] });
    expect(await curl(other, `https://localhost:${upstream.port}/`)).to.contain("private, loopback or link-local");
  });

  it("a missing token, and a token without the right to use secrets, are refused", async () => {
    const { server, upstream } = rig();
    const agent = await startAgent(server);
    const url = `https://localhost:${upstream.port}/`;
    expect(await curl({ ...agent, token: "wrong" }, url)).to.contain("407");
    const { token } = await mustCreateToken(server, { name: "reader", can: ["get"] });
    expect(await curl({ ...agent, token }, url)).to.contain("403");
  });

  it("the root token is refused as the proxy's password and as the key of a route", async () => {
    const { server, upstream } = rig();
    const [agent, seen] = [{ ...(await startAgent(server)), token: server.token }, upstream.seen.length];
    expect(await curl(agent, `https://localhost:${upstream.port}/root`)).to.contain("403");
    const route = `http://127.0.0.1:${agent.port}/r/up/root`;
    const refused = await output("curl", ["-sS", "--noproxy", "*", "-H", `X-Api-Key: ${server.token}`, route]);
    expect(refused).to.contain("the broker does not take the root token");
    expect(upstream.seen).to.have.length(seen);
  });

  it("the relay of a sandbox accepts only its session's token", async () => {
    const { server, upstream } = rig();
    await mustPut(server, "relayed/key", { value });
    await bind(server, "relayed/key", { host: "localhost", port: upstream.port, private: true, name: "relayed" });
    const agent = await startAgent(server, { paths: ["relayed/"] });
    const other = await startAgent(server, { paths: ["relayed/"] });
    const { token } = await mustCreateToken(server, { name: "beside", can: ["use"] });
    const at = `localhost:${upstream.port}`;
    const tunnel = (used: Agent) => `CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n${proxyAuthorization(used)}\r\n\r\n`;
    const route = (used: Agent) =>
      `GET /r/relayed/own HTTP/1.1\r\nHost: 127.0.0.1:${agent.port}\r\nX-Api-Key: ${used.token}\r\nConnection: close\r\n\r\n`;
    const plain = (used: Agent) => `GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n${proxyAuthorization(used)}\r\n\r\n`;
    const relayed = (bytes: string) => sendRaw(agent, relayPreface(agent.token) + bytes);
    const foreign = [other.token, token, server.token, "", ...Array.from({ length: 12 }, (_, n) => `guess-${n}`)];
    for (const each of foreign)
      for (const form of [tunnel, route, plain])
        expect(await relayed(form({ ...agent, token: each })), each)
          .to.match(/^HTTP\/1.1 403 /)
          .and.contain("only the session's own token counts");
    for (const form of [tunnel, route])
      expect(await relayed(relayPreface(other.token) + form(other))).to.match(/^HTTP\/1.1 (?:400|403) /);
    expect(await relayed(route(agent).replace("close", "keep-alive") + route(other))).to.match(
      / 200 .* 403 .*own token/s,
    );
    expect(await relayed(route(agent))).to.contain("GET /own 0");
    expect(await relayed("GET /r/up/ HTTP/1.1\r\nHost: a\r\n\r\n")).to.match(/^HTTP\/1.1 400 /);
    expect(await curl(other, `https://${at}/beside`)).to.contain("GET /beside"); // nobody is locked out
  });

  it("an agent's token reads nothing of the vault", async () => {
    const { server } = rig();
    const { token } = await startAgent(server);
    for (const path of ["/v1/secrets/app/key", "/v1/secrets", "/v1/uses", "/v1/uses/app/key", "/v1/tokens"]) {
      mustRefuse(await send(server, { path, token }), 403, "FORBIDDEN");
    }
  });

  it("a locked vault gives 503, and a revoked token 407", async () => {
    const upstream = await startUpstream();
    const { server } = await startBound(upstream);
    const agent = await startAgent(server);
    const url = `https://localhost:${upstream.port}/`;
    await mustLock(server);
    expect(await curl(agent, url)).to.contain("503");
    const { tokens } = mustSucceed(await send(server, { path: "/v1/tokens" })) as { readonly tokens: readonly Json[] };
    mustSucceed(await send(server, { method: "DELETE", path: `/v1/tokens/${tokens[0]?.["name"]}` }));
    expect(await curl(agent, url)).to.contain("407");
    expect(upstream.seen).to.have.length(0);
  });
});
