/** The client library's connections: errors, trust, reuse, cancellation, and what it never sends twice. */
import { once } from "node:events";
import { cpSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { generate } from "selfsigned";
import { StrongroomClient } from "strongroom/client";
import { Lifetime } from "../../src/client/lifetime.js";
import { idleMs, Transport } from "../../src/client/transport.js";
import { defaultLimits } from "../../src/http/listener.js";
import { later, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { emptyHome } from "../../tools/rig/prepared-home.js";
import { passphrase, shareTestServer, startTestServer, uncached } from "../../tools/rig/server.js";
import { mustInit, mustLock, mustPut, mustStatus, send } from "../../tools/rig/test-client.js";
import { makeClient, mustFail, proxiedClient } from "../support/library.js";
import { FakeClock } from "../support/manual-clock.js";
import { startProxy } from "../support/proxy.js";

describe("the client library's errors", () => {
  const server = shareTestServer({}, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "a", "v");
  });

  it("NOT_FOUND has the server's status and message", async () => {
    const error = await mustFail(makeClient(server()).get("none"), "NOT_FOUND", /no secret at none/);
    expect(error).to.include({ status: 404, retryAfter: undefined, requestId: undefined, name: "StrongroomError" });
  });

  it("ALREADY_EXISTS and BAD_REQUEST say what to do", async () => {
    await mustFail(makeClient(server()).init(passphrase), "ALREADY_EXISTS", /send force: true/);
    await mustFail(makeClient(server()).init(""), "BAD_REQUEST", /non-empty string/);
    await mustFail(makeClient(server()).put("a//b", "v"), "BAD_REQUEST", /./);
  });

  it("paths and values that cannot be encoded are rejected before a request", async () => {
    await mustFail(makeClient(server()).get(""), "BAD_REQUEST", /path is empty/);
    const client = makeClient(server());
    const works = [
      () => client.get("\ud800"),
      () => client.list({ prefix: "\ud800" }),
      () => client.deleteKey("\ud800"),
      () => client.snapshot({ reader: "\ud800" }),
    ];
    for (const work of works) await mustFail(work(), "BAD_REQUEST", /lone surrogate/);
    await mustFail(makeClient(server()).put("a", "\udc00"), "BAD_REQUEST", /value has a lone surrogate/);
  });

  it("more concurrent puts than the client keeps connections cause no error", async () => {
    const { url: address, certificateFile, token } = server();
    const client = new StrongroomClient({ address, certificateFile, token });
    later(() => client.close());
    const paths = Array.from({ length: 40 }, (_, n) => `many/${n}`);
    for (const path of paths.slice(0, 2)) await client.put(path, path);
    await Promise.all(paths.map((path) => client.put(path, path)));
    expect((await client.get("many/39")).reveal()).to.equal("many/39");
  });

  it("UNAUTHORIZED distinguishes a wrong passphrase from a wrong token", async () => {
    const wrong = await mustFail(makeClient(server()).unlock("wrong"), "UNAUTHORIZED", /passphrase is wrong/);
    expect(wrong).to.include({ status: 401, credential: "passphrase" });
    const other = await mustFail(
      makeClient(server(), { token: "x" }).list(),
      "UNAUTHORIZED",
      /option token is not .* leave it out to use STRONGROOM_TOKEN_FILE/,
    );
    expect(other).to.include({ status: 401, credential: "token" });
    const tokenFile = join(temporaryDirectory(), "none");
    const none = await mustFail(
      makeClient(server(), { tokenFile }).list(),
      "UNAUTHORIZED",
      /cannot read .*none: no such file/,
    );
    expect(none).to.include({ status: undefined, credential: "token" });
    expect((await makeClient(server(), { tokenFile }).status()).initialized).to.equal(true);
  });

  it("RATE_LIMITED says how long to wait", async () => {
    const fresh = await startTestServer();
    for (let i = 0; i < 10; i++) await send(fresh, { path: "/v1/secrets", token: "wrong" });
    const error = await mustFail(makeClient(fresh).list(), "RATE_LIMITED", /try again .*\(\d+ s\)/);
    expect(error.retryAfter).to.be.within(1, 300);
  });

  it("VAULT_LOCKED comes from every secret operation", async () => {
    const fresh = await startTestServer();
    const client = makeClient(fresh);
    const works = [() => client.get("a"), () => client.put("a", "v"), () => client.delete("a"), () => client.list()];
    for (const work of works) {
      expect((await mustFail(work(), "VAULT_LOCKED", /unlock it first/)).status).to.equal(403);
    }
  });

  it("INTEGRITY has the request id of the log", async () => {
    const fresh = await startTestServer(uncached);
    await mustInit(fresh);
    await mustPut(fresh, "a", "v");
    writeFileSync(join(fresh.vaultPath, "gen-1", "secrets", "a.sealed"), "not a blob");
    const { status, requestId } = await mustFail(makeClient(fresh).get("a"), "INTEGRITY", /is corrupt/);
    expect(status).to.equal(500);
    expect(fresh.logged()).to.contain(requestId ?? "none");
  });

  it("UNREACHABLE: the server has stopped", async () => {
    const fresh = await startTestServer();
    await fresh.stop();
    await mustFail(makeClient(fresh).status(), "UNREACHABLE", /strongroom up/);
  });

  it("UNREACHABLE: the home is empty", async () => {
    await mustFail(new StrongroomClient({ home: temporaryDirectory() }).status(), "UNREACHABLE", /strongroom up/);
  });

  it("BAD_REQUEST: an address that is not HTTPS, or has a path or query", async () => {
    for (const address of ["http://localhost:1", "bogus", `${server().url}/v1`, `${server().url}?a`]) {
      await mustFail(makeClient(server(), { address }).status(), "BAD_REQUEST", /https:\/\/localhost/);
    }
  });

  it("PROTOCOL: what listens does not speak TLS", async () => {
    const listener = createServer((socket) => socket.on("error", () => {}).end("220 hello\r\n"));
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    later(() => void listener.close());
    const { port } = listener.address() as AddressInfo;
    await mustFail(makeClient(server(), { address: `https://localhost:${port}` }).status(), "PROTOCOL", /HTTPS/);
  });
});

describe("the client library's trust", () => {
  const server = shareTestServer();

  it("a server with another certificate is refused, and receives nothing", async () => {
    const other = await startTestServer({ home: emptyHome() });
    const { url } = await startProxy(other);
    const error = await mustFail(
      makeClient(server(), { address: url }).lock(),
      "UNTRUSTED_CERTIFICATE",
      /tls\/cert\.pem/,
    );
    expect(error.status).to.equal(undefined);
    expect(other.logged()).not.to.contain('"request"');
  });

  it("NODE_TLS_REJECT_UNAUTHORIZED=0 does not make the client accept another certificate", async () => {
    const other = await startTestServer({ home: emptyHome() });
    const { url } = await startProxy(other);
    const warnings: string[] = [];
    const listen = ({ name, message }: Error) => warnings.push(`${name}: ${message}`);
    process.on("warning", listen);
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      const client = makeClient(server(), { address: url });
      await mustFail(client.unlock(passphrase), "UNTRUSTED_CERTIFICATE", /tls\/cert\.pem/);
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      process.off("warning", listen);
    }
    expect(other.logged()).not.to.contain('"request"');
    expect(warnings.join("\n")).to.match(/StrongroomWarning: NODE_TLS_REJECT_UNAUTHORIZED=0 .*unset it/);
  });

  it("the right certificate under another name is refused", async function () {
    needs(this, process.platform === "linux", "Linux");
    const { port } = await startProxy(server(), "127.0.0.9");
    const client = makeClient(server(), { address: `https://127.0.0.9:${port}` });
    await mustFail(client.status(), "UNTRUSTED_CERTIFICATE", /not for that name/);
  });

  it("an expired certificate is refused", async () => {
    const old = await startTestServer({
      home: emptyHome(),
      clock: new FakeClock(Date.parse("2020-01-01T00:00:00.000Z")),
    });
    await mustFail(makeClient(old).status(), "UNTRUSTED_CERTIFICATE", /expired/);
  });

  it("a certificate that is not valid yet is refused, with a hint at the clock", async () => {
    const early = await startTestServer({
      home: emptyHome(),
      clock: new FakeClock(Date.now() + 30 * 24 * 3600 * 1000),
    });
    await mustFail(makeClient(early).status(), "UNTRUSTED_CERTIFICATE", /not valid yet: correct this machine's clock/);
  });

  it("the client trusts only the given one of two certificates from one authority", async () => {
    const authority = await generate([{ name: "commonName", value: "authority" }], {
      keyType: "ec",
      algorithm: "sha256",
    });
    const [one, two] = await Promise.all(
      [1, 2].map(async (n) => {
        const ca = { key: authority.private, cert: authority.cert };
        const { cert, private: key } = await generate([{ name: "commonName", value: `leaf ${n}` }], {
          keyType: "ec",
          algorithm: "sha256",
          ca,
          extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
        });
        const [tlsCert, tlsKey] = [join(temporaryDirectory(), "cert.pem"), join(temporaryDirectory(), "key.pem")];
        writeFileSync(tlsCert, cert);
        writeFileSync(tlsKey, key, { mode: 0o600 });
        return startTestServer({ tlsCert, tlsKey });
      }),
    );
    if (one === undefined || two === undefined) return;
    const certificateFile = one.certificateFile;
    expect((await makeClient(one, { certificateFile }).status()).initialized).to.equal(false);
    await mustFail(makeClient(two, { certificateFile }).status(), "UNTRUSTED_CERTIFICATE", /is not the one in/);
  });

  it("a file without a certificate is named in the error", async () => {
    const certificateFile = join(temporaryDirectory(), "cert.pem");
    await mustFail(makeClient(server(), { certificateFile }).status(), "UNTRUSTED_CERTIFICATE", /ENOENT/);
    writeFileSync(certificateFile, "none");
    await mustFail(
      makeClient(server(), { certificateFile }).status(),
      "UNTRUSTED_CERTIFICATE",
      /no certificate in PEM/,
    );
  });

  it("the client finds a replaced server again", async () => {
    const first = await startTestServer();
    const client = makeClient(first);
    await client.status();
    await first.stop();
    await mustFail(client.status(), "UNREACHABLE", /strongroom up/);
    for (const file of ["cert.pem", "key.pem"]) cpSync(join(server().home, "tls", file), join(first.home, "tls", file));
    await startTestServer({ home: first.home, port: first.port });
    expect((await client.status()).initialized).to.equal(false);
  });
});

describe("connections of the client", () => {
  const server = shareTestServer({}, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "a", "v");
  });

  it("fifty sequential requests use one connection", async () => {
    const { proxy, client } = await proxiedClient(server());
    for (let i = 0; i < 50; i++) await client.get("a");
    expect(proxy.connections()).to.equal(1);
  });

  it("a hundred concurrent requests use at most 32 connections", async () => {
    const { proxy, client } = await proxiedClient(server());
    await Promise.all(Array.from({ length: 100 }, () => client.get("a")));
    expect(proxy.connections()).to.be.within(1, 32);
  });

  it("a read is retried once when a kept connection has closed", async () => {
    const { proxy, client } = await proxiedClient(server());
    await client.get("a");
    proxy.breakKept();
    expect((await client.get("a")).reveal()).to.equal("v");
    expect(proxy.connections()).to.equal(2);
    proxy.breakKept();
    expect((await client.getMany(["a"])).map((secret) => secret?.reveal())).to.deep.equal(["v"]);
    expect(proxy.connections()).to.equal(3);
  });

  it("a write whose connection closed is reported and not sent again", async () => {
    const { proxy, client } = await proxiedClient(server());
    await client.get("a");
    proxy.breakKept();
    await mustFail(client.put("new", "v", { replaceMetadata: true }), "UNREACHABLE", /check before you repeat/);
    expect(proxy.connections()).to.equal(1);
    await mustFail(client.get("new"), "NOT_FOUND", /new/);
  });

  it("an idle connection closes before the server closes it, and never during a request", async () => {
    expect(idleMs).to.be.below(defaultLimits.keepAliveTimeout);
    const closed: Promise<unknown>[] = [];
    const slow = createHttpServer((_request, response) => void setTimeout(() => response.end("{}"), 200));
    slow.on("connection", (socket) => closed.push(once(socket, "close")));
    slow.keepAliveTimeout = 0; // never
    const socket = join(temporaryDirectory(), "socket");
    slow.listen(socket);
    await once(slow, "listening");
    later(() => void slow.close());
    const transport = await Transport.to({ address: null, socket, token: null, tokenSource: "" }, 1000, 50);
    const request = { method: "PUT", path: "/" } as const;
    const lifetime = new Lifetime(request, {});
    expect((await transport.send(request, null, lifetime)).status).to.equal(200);
    lifetime.release();
    expect(closed).to.have.length(1);
    await Promise.all(closed);
  });

  it("a connection stays open when another request has a wrong token or passphrase", async () => {
    const client = makeClient(server());
    const slow = Array.from({ length: 4 }, () => client.unlock(passphrase));
    await mustFail(client.unlock("wrong"), "UNAUTHORIZED", /passphrase/);
    for (const { ok } of await Promise.all(slow)) expect(ok).to.equal(true);
    await mustLock(server());
    await client.unlock(passphrase);
    expect(await mustStatus(server())).to.include({ locked: false });
  });
});
