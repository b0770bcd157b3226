/** Ways to lead a credential elsewhere, or to have one added where it must not be: the upstreams are the witnesses. */
import { execFile } from "node:child_process";
import type { TLSSocket } from "node:tls";
import { expect } from "chai";
import {
  type Agent,
  bind,
  exchange,
  openTunnel,
  proxyAuthorization,
  sendRaw,
  sendThrough,
  startAgent,
  startTls,
  startUpstream,
  startWithBroker,
  type Upstream,
  value,
} from "../../tools/rig/broker-rig.js";
import { shared } from "../../tools/rig/clean-up.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustPut } from "../../tools/rig/test-client.js";

type Rig = {
  readonly server: TestServer;
  /** A secret is bound to it, only at its name. */
  readonly bound: Upstream;
  /** None is. */
  readonly other: Upstream;
  readonly agent: Agent;
  /** As the agent, but it may reach all other hosts too. */
  readonly free: Agent;
};

describe("attacks on the broker", () => {
  const rig = shared(async (): Promise<Rig> => {
    const bound = await startUpstream(["localhost"], (req, res) => {
      const status = req.url?.startsWith("/redirect")
        ? { status: 302, location: req.url.slice("/redirect?".length) }
        : null;
      if (status !== null) res.setHeader("Location", status.location);
      res.statusCode = status?.status ?? 200;
      req.resume().on("end", () => res.end("ok"));
    });
    const other = await startUpstream(["localhost", "127.0.0.1"]);
    const server = await startWithBroker([bound, other]);
    await mustPut(server, "app/key", { value });
    await bind(server, "app/key", {
      host: "localhost",
      port: bound.port,
      private: true,
      paths: ["/ok", "/redirect", "/sub/**"],
      name: "up",
    });
    const [agent, free] = [await startAgent(server), await startAgent(server, { egress: "any" })];
    return { server, bound, other, agent, free };
  });

  function clear({ bound, other }: Rig): void {
    bound.seen.length = 0;
    other.seen.length = 0;
  }

  /** Nothing with the credential has arrived anywhere, and what did arrive went where it was meant to. */
  function mustHaveSent(sent: readonly string[]): void {
    const { bound, other } = rig();
    const found = [...bound.seen, ...other.seen];
    expect(found.map(({ url }) => url)).to.deep.equal(sent);
    expect(JSON.stringify(found)).not.to.contain(value);
  }

  const ok = (host: string) => `GET /ok HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

  describe("hosts without a binding", () => {
    beforeEach(() => clear(rig()));

    it("the bound host gets the credential", async () => {
      const { agent, bound } = rig();
      expect(await sendThrough(agent, `localhost:${bound.port}`, ok(`localhost:${bound.port}`))).to.match(
        /^HTTP\/1.1 200 /,
      );
      expect(bound.seen[0]?.headers).to.include({ authorization: `Bearer ${value}` });
    });

    /** `tunnel`: the target of CONNECT; `name`: of TLS; `host`: the header. Each names another host in one place. */
    type Fronted = { readonly tunnel: string; readonly name: string | null; readonly host: string };
    const fronted: readonly (readonly [what: string, of: (rig: Rig) => Fronted])[] = [
      [
        "another Host header",
        ({ bound }) => ({ tunnel: `localhost:${bound.port}`, name: "localhost", host: "evil.test" }),
      ],
      [
        "a Host header with another port",
        ({ bound, other }) => ({
          tunnel: `localhost:${bound.port}`,
          name: "localhost",
          host: `localhost:${other.port}`,
        }),
      ],
      [
        "a Host header without the port",
        ({ bound }) => ({ tunnel: `localhost:${bound.port}`, name: "localhost", host: "localhost" }),
      ],
      [
        "a Host header with the address",
        ({ bound }) => ({ tunnel: `localhost:${bound.port}`, name: "localhost", host: `127.0.0.1:${bound.port}` }),
      ],
      [
        "a Host header with a user",
        ({ bound }) => ({ tunnel: `localhost:${bound.port}`, name: "localhost", host: `x@localhost:${bound.port}` }),
      ],
      [
        "a Host header with a path",
        ({ bound }) => ({ tunnel: `localhost:${bound.port}`, name: "localhost", host: `localhost:${bound.port}/x` }),
      ],
      [
        "a list as Host header",
        ({ bound }) => ({
          tunnel: `localhost:${bound.port}`,
          name: "localhost",
          host: `localhost:${bound.port}, evil.test`,
        }),
      ],
      ["an empty Host header", ({ bound }) => ({ tunnel: `localhost:${bound.port}`, name: "localhost", host: "" })],
      [
        "another TLS name",
        ({ bound }) => ({ tunnel: `localhost:${bound.port}`, name: "evil.test", host: `localhost:${bound.port}` }),
      ],
      [
        "no TLS name and another Host header",
        ({ bound }) => ({ tunnel: `localhost:${bound.port}`, name: null, host: "evil.test" }),
      ],
    ];
    for (const [what, of] of fronted) {
      it(`a request with ${what} gets no credential`, async () => {
        const { tunnel, name, host } = of(rig());
        const { agent } = rig();
        const opened = await openTunnel(agent, tunnel);
        if (typeof opened === "string") throw new Error(opened);
        const secure = await startTls(agent, opened, "localhost", name);
        expect(await exchange(secure, ok(host))).to.match(/^HTTP\/1.1 400 .*Strongroom-Broker: refused/s);
        mustHaveSent([]);
      });
    }

    it("a tunnel to another host that names the bound one inside gets no credential", async () => {
      const { agent, free, bound, other } = rig();
      for (const place of [`localhost:${other.port}`, `127.0.0.1:${bound.port}`, "evil.test:443"])
        expect(await sendThrough(agent, place, ok(`localhost:${bound.port}`))).to.match(/^HTTP\/1.1 403 /);
      expect(await openTunnel(free, `localhost:${other.port}`)).to.contain("private, loopback or link-local");
      mustHaveSent([]);
    });

    const spellings = [
      "127.1",
      "0x7f.0.0.1",
      "0x7f000001",
      "2130706433",
      "017700000001",
      "[::ffff:127.0.0.1]",
      "[::1]",
      "0.0.0.0",
      "[::]",
    ];
    for (const spelling of spellings) {
      it(`the address ${spelling} gets no credential, with --egress any`, async () => {
        const { free, other } = rig();
        expect(await openTunnel(free, `${spelling}:${other.port}`)).to.match(/^HTTP\/1.1 40[03] /);
        mustHaveSent([]);
      });
    }

    it("a redirect to another host, port or scheme gets no credential", async () => {
      const { agent, bound, other } = rig();
      const from = `https://localhost:${bound.port}/redirect`;
      for (const to of [
        `https://localhost:${other.port}/ok`,
        `https://127.0.0.1:${other.port}/ok`,
        `http://localhost:${other.port}/ok`,
      ]) {
        const proxy = [
          "--proxy",
          `http://x:${agent.token}@127.0.0.1:${agent.port}`,
          "--noproxy",
          "",
          "--cacert",
          agent.caFile,
        ];
        expect(await curl("-sSL", "-w", "%{http_code}", ...proxy, `${from}?${to}`), to).to.match(/403/);
      }
      expect(bound.seen).to.have.length(3);
      expect(other.seen).to.have.length(0);
    });

    it("requests in cleartext or with a target in absolute form get no credential", async () => {
      const { agent, bound, other } = rig();
      const own = proxyAuthorization(agent);
      const at = `localhost:${bound.port}`;
      for (const [target, host] of [
        [`http://${at}/ok`, at],
        [`https://${at}/ok`, at],
        [`http://localhost:${other.port}/ok`, at],
        [`http://127.0.0.1:${agent.port}/r/up/ok`, `127.0.0.1:${agent.port}`],
      ]) {
        const response = await sendRaw(agent, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${own}\r\n\r\n`);
        expect(response, target).to.match(/^HTTP\/1.1 403 .*cleartext/s);
      }
      for (const target of [`https://${at}/ok`, `http://evil.test/ok`, "*", at]) {
        const response = await sendThrough(agent, at, `GET ${target} HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
        expect(response, target).to.match(/^HTTP\/1.1 400 /);
      }
      mustHaveSent([]);
    });

    it("a disallowed second request on the same connection gets no credential", async () => {
      const { agent, bound } = rig();
      const at = `localhost:${bound.port}`;
      const first = `GET /ok HTTP/1.1\r\nHost: ${at}\r\n\r\n`;
      const response = await sendThrough(agent, at, `${first}GET /other HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
      expect(response).to.match(/^HTTP\/1.1 200 .*HTTP\/1.1 403 /s);
      expect(bound.seen.map(({ url }) => url)).to.deep.equal(["/ok"]);
    });

    it("a limited binding refuses headers that override the method or the path", async () => {
      const { agent, bound } = rig();
      const at = `localhost:${bound.port}`;
      for (const header of [
        "X.HTTP.Method.Override: DELETE",
        "X-HTTP-Method-Override: DELETE",
        "X_HTTP_Method_Override: DELETE",
        "x-original-url: /admin",
        "X-Rewrite-Url: /admin",
        "X-Forwarded-Uri: /admin",
      ]) {
        const response = await sendThrough(agent, at, `GET /ok HTTP/1.1\r\nHost: ${at}\r\n${header}\r\n\r\n`);
        expect(response, header).to.match(/^HTTP\/1.1 400 /);
      }
      mustHaveSent([]);
    });

    it("a limited binding refuses ambiguous spellings of a path", async () => {
      const { agent, bound } = rig();
      const at = `localhost:${bound.port}`;
      for (const spelling of ["%c0%ae%c0%ae", "%u002e%u002e", ".%09.", "..%20", "..%3b", "..;", "%ef%bc%8e%ef%bc%8e"]) {
        const response = await sendThrough(agent, at, `GET /sub/${spelling}/admin HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
        expect(response, spelling).to.match(/^HTTP\/1.1 403 .*the path is ambiguous/s);
      }
      mustHaveSent([]);
    });
  });

  describe("methods that repeat their request", () => {
    for (const method of ["TRACE", "TRACK", "trace"]) {
      it(`the method ${method} is refused, since its response would repeat the credential`, async () => {
        const { agent, bound } = rig();
        clear(rig());
        const at = `localhost:${bound.port}`;
        const response = await sendThrough(agent, at, `${method} /ok HTTP/1.1\r\nHost: ${at}\r\n\r\n`);
        expect(response).to.match(/^HTTP\/1.1 403 .*repeat the credential/s);
        mustHaveSent([]);
      });
    }
  });

  describe("headers of the credential's name", () => {
    const sent: readonly (readonly [lines: readonly string[], others: readonly string[]])[] = [
      [["Authorization: Bearer own"], []],
      [["authorization: a", "AUTHORIZATION: b", "AuThOrIzAtIoN: c"], []],
      [["Authorization:\tBearer own"], []],
      [["Authorization:"], []],
      [
        ["Authorization_: kept", "_Authorization: kept"],
        ["Authorization_", "_Authorization"],
      ],
      [["Authorization:Bearer own", "X-Authorization: kept"], ["X-Authorization"]],
      [
        ["Authorizatio: kept", "Authorizations: kept"],
        ["Authorizatio", "Authorizations"],
      ],
    ];
    for (const [lines, others] of sent) {
      it(`the credential replaces every Authorization header in ${JSON.stringify(lines)}`, async () => {
        const { agent, bound } = rig();
        clear(rig());
        const at = `localhost:${bound.port}`;
        await sendThrough(
          agent,
          at,
          `GET /ok HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n${lines.join("\r\n")}\r\n\r\n`,
        );
        const raw = bound.seen[0]?.raw ?? [];
        const values = raw.filter((_, i) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === "authorization");
        expect(values).to.deep.equal([`Bearer ${value}`]);
        expect(raw.filter((name) => others.includes(name))).to.have.length(others.length);
      });
    }

    const invalid = [
      "Authorization : x",
      " Authorization: x",
      "Authorization\t: x",
      "X: y\r\n Authorization: x",
      "Authorization: x\x00",
      "Connection: authorization",
    ];
    for (const line of invalid) {
      it(`the header ${JSON.stringify(line)} is refused`, async () => {
        const { agent, bound } = rig();
        clear(rig());
        const at = `localhost:${bound.port}`;
        const response = await sendThrough(agent, at, `GET /ok HTTP/1.1\r\nHost: ${at}\r\n${line}\r\n\r\n`);
        expect(response).to.match(/^HTTP\/1.1 400 /);
        mustHaveSent([]);
      });
    }
  });

  /** A request that only a server sees that reads the one before it otherwise than the broker. */
  const hidden = (host: string) => `GET /hidden HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

  /** Lengths that contradict each other or that parsers read differently; `%` stands for the true length of the hidden request. */
  const framings: readonly (readonly string[])[] = [
    ["Content-Length: 0", "Content-Length: %"],
    ["Content-Length: %", "Content-Length: 0"],
    ["Content-Length: 0, %"],
    ["Content-Length: +0"],
    ["Content-Length: -0"],
    ["Content-Length: 0x0"],
    ["Content-Length: 00"],
    ["Content-Length: 0 %"],
    ["Content-Length:\x0b0"],
    ["Content-Length: "],
    ["Content-Length : %"],
    ["Content_Length: %", "Content-Length: 0"],
    ["Transfer-Encoding: chunked", "Content-Length: %"],
    ["Content-Length: %", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
    ["Transfer-Encoding: identity", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked, identity"],
    ["Transfer-Encoding: identity"],
    ["Transfer-Encoding: xchunked"],
    ["Transfer-Encoding: x, chunked"],
    ['Transfer-Encoding: "chunked"'],
    ["Transfer-Encoding: chunked;x=y"],
    ["Transfer-Encoding:\x0bchunked"],
    ["Transfer-Encoding:\x0cchunked", "Content-Length: %"],
    ["Transfer-Encoding : chunked", "Content-Length: %"],
    ["Transfer-Encoding\t: chunked", "Content-Length: %"],
    [" Transfer-Encoding: chunked", "Content-Length: %"],
    ["X: y\r\n Transfer-Encoding: chunked", "Content-Length: %"],
    ["X: y\nTransfer-Encoding: chunked", "Content-Length: %"],
    ["X: y\rTransfer-Encoding: chunked", "Content-Length: %"],
    ["X: y\x00Transfer-Encoding: chunked", "Content-Length: %"],
    ["Transfer-Encoding: chunked\r\nContent-Length: %\r\nTransfer-Encoding: chunked"],
    ["Transfer-Encoding: Chunked"],
    ["Transfer-Encoding: \tchunked"],
    ["TE: trailers", "Content-Length: 0"],
    ["Content-Length: 0", "Expect: 100-continue, x"],
    ["Content-Length: 99999999999999999999"],
    ["Content-Length: 18446744073709551616"],
    ["Connection: content-length", "Content-Length: 0"],
    ["Connection: transfer-encoding", "Transfer-Encoding: chunked"],
  ];

  /** Bodies in which a second request hides. */
  const bodies: readonly ((host: string) => string)[] = [
    (host) => hidden(host),
    (host) => `0\r\n\r\n${hidden(host)}`,
    (host) => `0\n\n${hidden(host)}`,
    (host) => `0\r\nX: y\r\n\r\n${hidden(host)}`,
    (host) => `0;\n${hidden(host)}\r\n0\r\n\r\n`,
    (host) => `-1\r\n\r\n${hidden(host)}`,
  ];

  describe("request smuggling", function () {
    this.timeout(0);
    const heads = framings.flatMap((lines) => bodies.map((body) => ({ lines, body })));

    it(`${heads.length} ambiguous heads and bodies smuggle no request`, async () => {
      expect(heads).to.have.length.above(200);
      const { agent, bound } = rig();
      const at = `localhost:${bound.port}`;
      clear(rig());
      const start = performance.now();
      await sendThrough(agent, at, ok(at));
      const restMs = Math.max(30, 4 * (performance.now() - start)); // a slow machine gets longer
      for (const [n, { lines, body }] of heads.entries()) {
        const fields = lines.join("\r\n").replaceAll("%", String(hidden(at).length));
        await sendAndEnd(agent, at, restMs, `POST /ok?${n} HTTP/1.1\r\nHost: ${at}\r\n${fields}\r\n\r\n${body(at)}`);
      }
      expect(await sendThrough(agent, at, ok(at))).to.match(/^HTTP\/1.1 200 /); // after all others
      const [first, last] = [bound.seen[0]?.url, bound.seen.at(-1)?.url];
      const targets = bound.seen.map(({ url }) => url).slice(1, -1);
      expect([first, last]).to.deep.equal(["/ok", "/ok"]);
      expect(targets.filter((url) => !/^\/ok\?\d+$/.test(url))).to.deep.equal([]);
      expect(new Set(targets)).to.have.property("size", targets.length);
      expect(targets, "those that are valid").to.have.length.above(3);
    });

    /** Ends the connection after the response's first bytes, or where none come because the body is not whole. */
    async function sendAndEnd(agent: Agent, at: string, restMs: number, bytes: string): Promise<void> {
      const opened = await openTunnel(agent, at);
      if (typeof opened === "string") throw new Error(opened);
      const secure: TLSSocket = await startTls(agent, opened, "localhost", "localhost");
      const end = () => secure.end();
      const timer = setTimeout(end, restMs);
      secure.once("data", end);
      await exchange(secure, bytes);
      clearTimeout(timer);
    }
  });

  describe("upstream certificates", () => {
    it("an upstream with another name in its certificate, or an unknown root, gets no request", async () => {
      const [named, unknown] = [await startUpstream(["evil.test"]), await startUpstream()];
      const server = await startWithBroker([named]);
      await mustPut(server, "app/key", { value });
      await mustPut(server, "app/other", { value });
      await bind(server, "app/key", { host: "localhost", port: named.port, private: true });
      await bind(server, "app/other", { host: "localhost", port: unknown.port, private: true });
      const agent = await startAgent(server);
      for (const { port, seen } of [named, unknown]) {
        const at = `localhost:${port}`;
        expect(await sendThrough(agent, at, ok(at))).to.match(/^HTTP\/1.1 502 .*certificate/s);
        expect(seen).to.have.length(0);
      }
    });
  });

  function curl(...args: readonly string[]): Promise<string> {
    const options = { env: { PATH: process.env["PATH"] ?? "" }, timeout: 30_000 };
    return new Promise((resolve) =>
      execFile("curl", args, options, (_error, out, problems) => resolve(out + problems)),
    );
  }
});
