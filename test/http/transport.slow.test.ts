/** docs/reference/http-api.md, Limits; TLS, Host and Origin, headers, malformed HTTP, timeouts. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as plainRequest } from "node:http";
import { connect as connectPlain, isIPv6, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { connect, getCiphers, type TLSSocket } from "node:tls";
import { expect } from "chai";
import { generate } from "selfsigned";
import { defaultLimits } from "../../src/http/listener.js";
import { later, shared, temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { emptyHome } from "../../tools/rig/prepared-home.js";
import { passphrase, shareTestServer, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  connectRaw,
  mustInit,
  mustLock,
  mustPut,
  mustRefuse,
  mustStatus,
  mustSucceed,
  parseRaw,
  send,
  sendRaw,
} from "../../tools/rig/test-client.js";
import { turns } from "../support/latch.js";
import { FakeClock } from "../support/manual-clock.js";

const day = 24 * 3600 * 1000;

describe("TLS", () => {
  const server = shareTestServer();

  for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
    it(`accepts ${version}`, async () => {
      expect(await handshake(server(), version)).to.equal(version);
    });
  }
  it("refuses a renegotiation", async () => {
    const { port, certificate } = server();
    const socket = connect({
      host: "127.0.0.1",
      port,
      servername: "localhost",
      ca: certificate,
      maxVersion: "TLSv1.2",
    });
    later(() => void socket.destroy());
    await once(socket, "secureConnect");
    const outcome = await new Promise((resolve) => {
      socket.once("error", () => resolve("refused"));
      socket.renegotiate({}, (error) => resolve(error === null ? "renegotiated" : "refused"));
    });
    expect(outcome).to.equal("refused");
  });

  for (const version of ["TLSv1", "TLSv1.1"] as const) {
    it(`refuses ${version}`, async () => {
      expect(await handshake(server(), version)).to.match(/ERR|alert|protocol/i);
    });
  }

  const withRsa = shared(async () => startTestServer(await rsaCertificate()));
  for (const cipher of getCiphers().filter((name) => !/^tls_|psk|srp|^adh|^aecdh/.test(name))) {
    const allowed = /^ecdhe-(?:ecdsa|rsa)-(?:aes(?:128|256)-gcm-sha\d+|chacha20-poly1305)$/.test(cipher);
    const needsRsa = !cipher.includes("-ecdsa-");
    it(`${allowed ? "accepts" : "refuses"} ${cipher.toUpperCase()}${needsRsa ? " with an RSA certificate" : ""}`, async () => {
      const place = needsRsa ? withRsa() : server();
      const outcome = await handshake(place, "TLSv1.2", `${cipher.toUpperCase()}:@SECLEVEL=0`);
      expect(outcome === "TLSv1.2", outcome).to.equal(allowed);
    });
  }

  for (const [curve, allowed] of [
    ["X25519", true],
    ["P-256", true],
    ["P-384", true],
    ["P-521", false],
    ["X448", false],
  ] as const) {
    it(`${allowed ? "accepts" : "refuses"} a key exchange on ${curve}`, async () => {
      const outcome = await handshake(server(), "TLSv1.3", undefined, curve); // with TLS 1.2 the certificate's curve also counts
      expect(outcome === "TLSv1.3", outcome).to.equal(allowed);
    });
  }

  it("a new certificate is valid for 366 days", async () => {
    const { validFrom, validTo } = new X509Certificate((await startTestServer({ home: emptyHome() })).certificate);
    expect((Date.parse(validTo) - Date.parse(validFrom)) / day).to.equal(366);
  });

  it("refuses plain HTTP", async () => {
    const outcome = await new Promise((resolve) => {
      const request = plainRequest({ host: "127.0.0.1", port: server().port, path: "/v1/status" }, () =>
        resolve("answered"),
      );
      request.on("error", () => resolve("refused")).end();
    });
    expect(outcome).to.equal("refused");
  });

  it("the certificate is self-signed, of an EC key, for localhost, 127.0.0.1 and ::1", () => {
    const certificate = new X509Certificate(server().certificate);
    expect(certificate.publicKey.asymmetricKeyType).to.equal("ec");
    expect(certificate.issuer).to.equal(certificate.subject);
    expect(certificate.checkHost("localhost")).to.equal("localhost");
    expect(certificate.checkIP("127.0.0.1")).to.equal("127.0.0.1");
    expect(certificate.checkIP("::1")).to.equal("::1");
  });
});

async function rsaCertificate(): Promise<{ readonly tlsCert: string; readonly tlsKey: string }> {
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "rsa",
    keySize: 2048,
    algorithm: "sha256",
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
  });
  const directory = temporaryDirectory();
  const [tlsCert, tlsKey] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  writeFileSync(tlsCert, cert, { mode: 0o600 });
  writeFileSync(tlsKey, key, { mode: 0o600 });
  return { tlsCert, tlsKey };
}

function handshake(
  server: TestServer,
  version: "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3",
  ciphers = "DEFAULT@SECLEVEL=0", // the client must not be the one that refuses
  ecdhCurve = "auto",
): Promise<string> {
  return new Promise((resolve) => {
    const { port, certificate: ca } = server;
    const socket = connect({
      host: "127.0.0.1",
      port,
      servername: "localhost",
      ca,
      minVersion: version,
      maxVersion: version,
      ciphers,
      ecdhCurve,
    });
    socket.once("secureConnect", () => {
      resolve(String(socket.getProtocol()));
      socket.destroy();
    });
    socket.once("error", (error) => resolve(error.message));
  });
}

describe("TLS sessions", () => {
  const server = shareTestServer({ vaultPort: 0 }, mustInit);
  const ports = { native: () => server().port, "for Vault's clients": () => server().vaultPort ?? 0 };

  for (const [name, port] of Object.entries(ports)) {
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      it(`resumes a ${version} session until the vault is locked, then makes a new one (port ${name})`, async () => {
        mustSucceed(await send(server(), { method: "POST", path: "/v1/unlock", body: { passphrase } }));
        const connectWith = (session?: Buffer) => oneRequest(server(), port(), version, session);
        const first = await connectWith();
        expect(first.isResumed).to.equal(false);
        expect((await connectWith(first.session)).isResumed).to.equal(true);
        await mustLock(server());
        const next = await connectWith(first.session);
        expect(next.isResumed).to.equal(false);
        expect((await connectWith(next.session)).isResumed).to.equal(true);
      });
    }
  }
});

/** Sends a request over a connection of its own; returns the session that the server offers for the next one. */
async function oneRequest({ certificate }: TestServer, port: number, version: "TLSv1.2" | "TLSv1.3", session?: Buffer) {
  const pinned = { ca: certificate, minVersion: version, maxVersion: version, ...(session && { session }) };
  const socket = connect({ host: "127.0.0.1", port, servername: "localhost", ...pinned });
  later(() => void socket.destroy());
  let offered = session;
  socket.on("session", (one: Buffer) => {
    offered = one;
  });
  await once(socket, "secureConnect");
  const isResumed = socket.isSessionReused();
  socket.resume().write("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  await once(socket, "close");
  return { isResumed, session: offered };
}

describe("the certificate at start", () => {
  const restart = async (options: Parameters<typeof startTestServer>[0], change: (home: string) => void = () => {}) => {
    const first = await startTestServer({ home: emptyHome(), clock: new FakeClock() });
    await first.stop();
    change(first.home);
    const second = await startTestServer({ home: first.home, clock: new FakeClock(), ...options });
    return second.certificate === first.certificate ? "kept" : "renewed";
  };
  const later1 = (ms: number) => new FakeClock(new FakeClock().now() + ms);
  const rules: readonly (readonly [string, string, Parameters<typeof restart>])[] = [
    ["with 31 days left is kept", "kept", [{ clock: later1((365 - 31) * day) }]],
    ["with less than 30 days left is renewed", "renewed", [{ clock: later1((365 - 29) * day) }]],
    ["made while the clock was two days ahead is renewed", "renewed", [{ clock: later1(-2 * day) }]],
    ["without a configured name is renewed", "renewed", [{ serverNames: ["vault.test"] }]],
    ["without the listening address is renewed", "renewed", [{ host: "127.0.0.5" }]],
    ["with a mismatched key, after a crash between two writes, is renewed", "renewed", [{}, swapKey]],
  ];
  for (const [name, want, args] of rules) {
    it(`a certificate ${name}`, async () => {
      expect(await restart(...args)).to.equal(want);
    });
  }

  it("a configured certificate is used as it is", async () => {
    const first = await startTestServer({ home: emptyHome() });
    const [tlsCert, tlsKey] = ["cert.pem", "key.pem"].map((name) => join(first.home, "tls", name));
    const second = await startTestServer({ tlsCert: String(tlsCert), tlsKey: String(tlsKey) });
    expect(second.certificate).to.equal(first.certificate);
    mustSucceed(await send(second, { path: "/v1/status" }));
  });

  it("a configured certificate is used with a warning when others may read its key", async () => {
    const { home } = await startTestServer();
    const [tlsCert, tlsKey] = [join(home, "tls", "cert.pem"), join(home, "tls", "key.pem")];
    expect((await startTestServer({ tlsCert, tlsKey })).logged()).not.to.contain("not-hardened");
    chmodSync(tlsKey, 0o644);
    expect((await startTestServer({ tlsCert, tlsKey })).logged()).to.match(
      /not-hardened.*other users can access .*key\.pem/,
    );
  });

  it("a missing token file that is not in use gives no warning", async () => {
    const { home } = await startTestServer();
    const tokenFile = join(home, "elsewhere");
    const { logged } = await startTestServer({ token: "t".repeat(32), tokenFile });
    expect(logged()).not.to.contain("not-hardened");
  });

  it("a configured certificate that does not match its key is refused", async () => {
    const [first, second] = [await startTestServer(), await startTestServer({ home: emptyHome() })];
    const settings = { tlsCert: join(first.home, "tls", "cert.pem"), tlsKey: join(second.home, "tls", "key.pem") };
    expect(String(await startTestServer(settings).catch((error: Error) => error.message))).to.match(
      /not the private key/,
    );
  });

  const foreign: readonly (readonly [string, RegExp, "cert.pem" | "key.pem" | null, boolean])[] = [
    ["of someone else in the home", /was not made by strongroom.*lacks a name/, null, true],
    [
      "of someone else in the home, with a mismatched key,",
      /was not made by strongroom.*belongs to another/,
      null,
      false,
    ],
    ["of someone else in the home, without its key,", /was not made by strongroom.*missing/, "key.pem", true],
    ["missing beside someone else's key in the home", /no certificate beside it/, "cert.pem", true],
  ];
  for (const [name, says, missing, fitting] of foreign) {
    it(`a certificate ${name} is refused and nothing is overwritten`, async () => {
      const { home, stop } = await startTestServer();
      await stop();
      const [certificate, key] = await foreignPair();
      writeFileSync(join(home, "tls", "cert.pem"), certificate);
      writeFileSync(join(home, "tls", "key.pem"), fitting ? key : (await foreignPair())[1]);
      if (missing !== null) rmSync(join(home, "tls", missing));
      const before = filesIn(join(home, "tls"));
      expect(String(await startTestServer({ home }).catch((error: Error) => error.message))).to.match(says);
      expect(filesIn(join(home, "tls"))).to.deep.equal(before);
    });
  }

  it("a certificate with invalid content stops the start and is not overwritten", async () => {
    const first = await startTestServer();
    await first.stop();
    const file = join(first.home, "tls", "cert.pem");
    writeFileSync(file, "my precious");
    expect(String(await startTestServer({ home: first.home }).catch((error: Error) => error.message))).to.contain(file);
    expect(readFileSync(file, "utf8")).to.equal("my precious");
  });
});

function filesIn(directory: string): Record<string, string> {
  return Object.fromEntries(readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), "utf8")]));
}

/** Valid, but not made by strongroom and without this server's names. */
async function foreignPair(): Promise<[string, string]> {
  const { cert, private: key } = await generate([{ name: "commonName", value: "my own" }], {
    keyType: "ec",
    algorithm: "sha256",
  });
  return [cert, key];
}

const otherKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvqZCZwj1bLjRLInr
xpb7rXlF1CH4YRjDBlfuMPfudBmhRANCAAQ20rnQWEGWs2N1dPE2EYPX+G2EFVRG
6ZPKDftTwf3rGKBNz07u/Kl73GI1AywZ8hq2kfUKnKcp33xEgKHKYIqh
-----END PRIVATE KEY-----
`;

function swapKey(home: string): void {
  writeFileSync(join(home, "tls", "key.pem"), otherKey);
}

describe("Host and Origin", () => {
  const server = shareTestServer({ serverNames: ["vault.test"] });
  const hosts: readonly (readonly [string, boolean])[] = [
    ["localhost", true],
    ["localhost:13100", true],
    ["LOCALHOST", true],
    ["127.0.0.1", true],
    ["[::1]:13100", true],
    ["vault.test", true],
    ["evil.test", false],
    ["localhost.evil.test", false],
    ["evil.test:13100", false],
    ["127.0.0.2", false],
    ["localhost evil.test", false],
  ];
  for (const [host, good] of hosts) {
    it(`Host: ${host} is ${good ? "accepted" : "refused with 400"}`, async () => {
      const answer = await send(server(), { path: "/v1/status", headers: { host } });
      if (good) mustSucceed(answer);
      else mustRefuse(answer, 400, "BAD_REQUEST");
    });
  }

  it("a missing, empty or repeated Host is refused with 400", async () => {
    for (const lines of ["", "Host:\r\n", "Host: localhost\r\nHost: localhost\r\n"]) {
      const { status, json } = parseRaw(await sendRaw(server(), `GET /v1/status HTTP/1.1\r\n${lines}\r\n`));
      expect(status).to.equal(400);
      expect(json["code"]).to.equal("BAD_REQUEST");
    }
  });

  it("the authority of an absolute target replaces Host", async () => {
    const ask = async (target: string) =>
      parseRaw(await sendRaw(server(), `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`)).status;
    expect(await ask("https://localhost/v1/status")).to.equal(200);
    expect(await ask("https://evil.test/v1/status")).to.equal(400);
  });

  for (const target of [
    "http://[",
    "http://?",
    "x://",
    "a://?x",
    "https://localhost:1a/v1/secrets/path-canary",
    "http://a:b@[::/",
  ]) {
    it(`a malformed absolute target (${target}) gets a JSON error and is not logged`, async () => {
      const answer = await sendRaw(server(), `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      expect(parseRaw(answer).json["code"]).to.be.oneOf(["BAD_REQUEST", "UNAUTHORIZED"]);
      expect(server().logged()).not.to.contain("path-canary");
    });
  }

  const origins: readonly (readonly [string, boolean])[] = [
    ["https://localhost", true],
    ["HTTPS://LOCALHOST", true],
    ["https://evil.test", false],
    ["http://localhost", false],
    ["https://localhost:3000", false],
    ["null", false],
    ["", false],
  ];
  for (const [origin, good] of origins) {
    it(`Origin: ${origin || "(empty)"} is ${good ? "accepted" : "refused with 400"}`, async () => {
      const answer = await send(server(), { path: "/v1/status", headers: { host: "localhost", origin } });
      if (good) mustSucceed(answer);
      else mustRefuse(answer, 400, "BAD_REQUEST");
    });
  }

  const sites: readonly (readonly [string, boolean])[] = [
    ["none", true],
    ["same-origin", true],
    ["same-site", false],
    ["cross-site", false],
    ["", false],
    ["none, cross-site", false],
  ];
  for (const [site, good] of sites) {
    it(`Sec-Fetch-Site: ${site || "(empty)"} is ${good ? "accepted" : "refused with 400"}`, async () => {
      const answer = await send(server(), { path: "/v1/status", headers: { "sec-fetch-site": site } });
      if (good) mustSucceed(answer);
      else mustRefuse(answer, 400, "BAD_REQUEST");
    });
  }

  it("a cross-site request is refused before authentication and does not count as a failure", async () => {
    const fresh = await startTestServer();
    for (let i = 0; i < 15; i++) {
      const headers = { "sec-fetch-site": "cross-site" };
      mustRefuse(await send(fresh, { method: "POST", path: "/v1/lock", token: "wrong", headers }), 400, "BAD_REQUEST");
    }
    mustSucceed(await send(fresh, { method: "POST", path: "/v1/lock" }));
  });

  it("a foreign Host is refused before authentication and does not count as a failure", async () => {
    const fresh = await startTestServer();
    for (let i = 0; i < 15; i++) {
      const headers = { host: "evil.test" };
      mustRefuse(await send(fresh, { method: "POST", path: "/v1/lock", token: "wrong", headers }), 400, "BAD_REQUEST");
    }
    mustSucceed(await send(fresh, { method: "POST", path: "/v1/lock" }));
  });
});

const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === "::1"));

describe("the listening address", () => {
  const addresses: readonly (readonly [string, string, number])[] = [
    ["127.0.0.1", "https://localhost:", 400],
    ["localhost", "https://", 400],
    ["127.0.0.5", "https://127.0.0.5:", 400],
    ["::1", "https://[::1]:", 400],
    ["0:0:0:0:0:0:0:1", "https://[::1]:", 400],
    ["0.0.0.0", "https://localhost:", 200],
  ];
  for (const [host, url, foreign] of addresses) {
    it(`a server at ${host} has a URL of ${url} and gives a foreign Host ${foreign}`, async function () {
      needs(this, hasIpv6 || !isIPv6(host), "::1");
      const server = await startTestServer({ host });
      expect(server.url.startsWith(url), server.url).to.equal(true);
      const { status } = await send(server, { path: "/v1/status", headers: { host: "evil.test" } });
      expect(status).to.equal(foreign);
    });
  }
});

describe("responses", () => {
  const server = shareTestServer({}, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "a", "v");
  });
  for (const path of ["/v1/status", "/v1/secrets", "/v1/secrets/a", "/v1/secrets/missing", "/nowhere"]) {
    it(`a response of ${path} is JSON, never stored, framed or embedded, without headers for pages`, async () => {
      const { headers } = await send(server(), { path });
      const { date, connection, "content-length": length, "keep-alive": keepAlive, etag, ...others } = headers;
      expect(others).to.deep.equal({
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none';frame-ancestors 'none'",
        "content-type": "application/json; charset=utf-8",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
      });
    });
  }

  it("ranges and conditions on times are ignored", async () => {
    const headers = { range: "bytes=0-1", "if-modified-since": new Date().toUTCString() };
    expect(mustSucceed(await send(server(), { path: "/v1/secrets/a", headers }))["value"]).to.equal("v");
  });
});

describe("malformed HTTP", () => {
  const server = shareTestServer();
  const authorization = () => `Host: localhost\r\nAuthorization: Bearer ${server().token}\r\n`;
  const malformed: readonly (readonly [string, () => string])[] = [
    ["text that is not HTTP", () => "hello\r\n\r\n"],
    ["an invalid version", () => "GET /v1/status HTTP/7.0\r\nHost: localhost\r\n\r\n"],
    ["a header without a colon", () => "GET /v1/status HTTP/1.1\r\nHost localhost\r\n\r\n"],
    ["a space in the target", () => "GET /v1/ status HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    ["raw bytes above ASCII in the target", () => `GET /v1/secrets/\u00e9 HTTP/1.1\r\n${authorization()}\r\n`],
    [
      "two Content-Lengths",
      () => `PUT /v1/secrets/a HTTP/1.1\r\n${authorization()}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
    ],
    [
      "both Content-Length and chunked",
      () => `PUT /v1/secrets/a HTTP/1.1\r\n${authorization()}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    ],
    [
      "an invalid chunk size",
      () => `POST /v1/init HTTP/1.1\r\n${authorization()}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    ],
    [
      "another transfer encoding",
      () => `POST /v1/init HTTP/1.1\r\n${authorization()}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    ],
    ["headers over 8 KiB", () => `GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(9000)}\r\n\r\n`],
    ["CONNECT", () => "CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n"],
  ];
  for (const [name, text] of malformed) {
    it(`returns 400 BAD_REQUEST as JSON for ${name}`, async () => {
      const { status, head, json } = parseRaw(await sendRaw(server(), text()));
      expect(status).to.equal(400);
      expect(json["code"]).to.equal("BAD_REQUEST");
      expect(json["error"]).to.be.a("string");
      expect(head)
        .to.match(/content-type: application\/json/i)
        .and.to.match(/cache-control: no-store/i);
    });
  }

  it("a malformed request gets its response after that of the valid request before it", async () => {
    const both = `GET /v1/secrets HTTP/1.1\r\n${authorization()}\r\nbroken\r\n\r\n`;
    expect(statusesIn(await sendRaw(server(), both))).to.deep.equal(["403", "400"]);
  });

  it("a malformed request gets its response after that of the running request before it", async () => {
    const own = await startTestServer();
    await mustInit(own);
    const headers = `Host: localhost\r\nAuthorization: Bearer ${own.token}\r\n`;
    const body = JSON.stringify({ passphrase });
    const unlock = `POST /v1/unlock HTTP/1.1\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
    const broken = `PUT /v1/secrets/a HTTP/1.1\r\n${headers}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`;
    expect(statusesIn(await sendRaw(own, unlock + broken))).to.deep.equal(["200", "400"]);
  });

  it("HTTP/1.0 with Transfer-Encoding gets 400: a proxy in between may read another end of the body", async () => {
    const head = `PUT /v1/secrets/a HTTP/1.0\r\n${authorization()}Transfer-Encoding: chunked\r\n\r\n`;
    const { status, json } = parseRaw(await sendRaw(server(), `${head}d\r\n{"value":"v"}\r\n0\r\n\r\n`));
    expect([status, json["code"]]).to.deep.equal([400, "BAD_REQUEST"]);
  });

  it("a request after a response with Connection: close is not carried out", async () => {
    const own = await startTestServer();
    await mustInit(own);
    const refused = "PUT /v1/secrets/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
    const late = `PUT /v1/secrets/b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${own.token}\r\nContent-Length: 13\r\n\r\n{"value":"v"}`;
    expect(statusesIn(await sendRaw(own, refused + late))).to.deep.equal(["401"]);
    await mustLock(own); // which waits for all that is under way
    expect((await mustStatus(own))["secretCount"]).to.equal(0);
  });

  it("pipelined requests get their responses in order", async () => {
    const one = `GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nowhere HTTP/1.1\r\n${authorization()}\r\n`;
    expect(statusesIn(await sendRaw(server(), one))).to.deep.equal(["200", "404"]);
  });
});

function statusesIn(received: string): (string | undefined)[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
}

describe("limits", () => {
  it("accepts no more connections without a token than a quarter of the limit", async () => {
    const server = await startTestServer({ maxConnections: 40 });
    const sockets = await Promise.all(Array.from({ length: 30 }, () => opened(server)));
    later(() => {
      for (const socket of sockets) socket?.destroy();
    });
    const open = () => sockets.filter((socket) => socket !== null && !socket.destroyed).length;
    while (open() > 10) await new Promise((resolve) => setTimeout(resolve, 5));
    await turns();
    expect(open()).to.equal(10);
  });

  it("closes a silent handshake", async () => {
    const { port } = await startTestServer({ limits: { handshakeTimeout: 200 } });
    await closing(connectPlain({ host: "127.0.0.1", port }));
  });

  it("refuses slow headers, and later a slow request, with a JSON 400", async () => {
    const short = { headersTimeout: 1_000, requestTimeout: 3_000, connectionsCheckingInterval: 50 };
    const server = await startTestServer({ limits: short });
    const order: string[] = [];
    const head = `POST /v1/init HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n`;
    const answers = await Promise.all([
      answerTo(server, "GET /v1/status HTTP/1.1\r\nHost: local").finally(() => order.push("headers")),
      answerTo(server, `${head}Content-Length: 10\r\n\r\n{`).finally(() => order.push("request")),
    ]);
    expect(order).to.deep.equal(["headers", "request"]);
    for (const text of answers) expect(parseRaw(text).json["code"], text).to.equal("BAD_REQUEST");
    mustSucceed(await send(server, { path: "/v1/status" }));
  });
});

function opened(server: TestServer): Promise<TLSSocket | null> {
  return new Promise((resolve) => {
    const socket = connectRaw(server);
    socket.once("secureConnect", () => resolve(socket));
    socket.once("error", () => resolve(null));
    socket.once("close", () => resolve(null));
  });
}

async function closing(socket: Socket): Promise<void> {
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("close", () => resolve()));
}

async function answerTo(server: TestServer, text: string): Promise<string> {
  const socket = connectRaw(server);
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  socket.once("secureConnect", () => socket.write(text));
  await closing(socket);
  return received;
}

describe("stop", () => {
  it("a stop waits for a running request, and not for unused connections", async () => {
    const server = await startTestServer();
    const sockets = [connectRaw(server), connectRaw(server), connectPlain(server.port, "127.0.0.1")] as const;
    const closings = sockets.map(
      (socket) => new Promise((resolve) => socket.on("error", () => {}).once("close", resolve)),
    );
    for (const socket of sockets.slice(0, 2)) await new Promise((resolve) => socket.once("secureConnect", resolve));
    const [busy] = sockets;
    busy.write("GET /v1/status HTTP/1.1\r\nHost: localhost\r\n");
    await mustStatus(server); // it has all three connections
    await new Promise((resolve) => setTimeout(resolve, 100));
    let answer = "";
    busy.on("data", (chunk: Buffer) => {
      answer += chunk.toString("latin1");
    });
    const stopped = server.stop();
    await Promise.all(closings.slice(1));
    busy.write("\r\n");
    await stopped;
    await closings[0];
    expect(parseRaw(answer).status).to.equal(200);
  });
});

describe("the default limits", () => {
  it("default limits: 5 s a handshake, 10 s headers, 30 s a request, idleness or a stall, 8 KiB of headers", () => {
    expect(defaultLimits).to.include({ handshakeTimeout: 5_000, headersTimeout: 10_000, requestTimeout: 30_000 });
    expect(defaultLimits).to.include({ maxHeaderSize: 8_192, keepAliveTimeout: 30_000, sendTimeout: 30_000 });
  });
});
