/** Certificate of a session's authority: DER that strict readers accept (X.690, section 10), whatever hosts it names. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { duplexPair } from "node:stream";
import { connect, TLSSocket } from "node:tls";
import { expect } from "chai";
import { SessionAuthority } from "../../src/broker/authority.js";
import { bind, brokerRig, openTunnel, sendRaw, startAgent, startTls } from "../../tools/rig/broker-rig.js";
import { shared } from "../../tools/rig/clean-up.js";
import { mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";

/** Name constraints as an OBJECT IDENTIFIER, the critical flag, and the tag of the OCTET STRING that holds them. */
const extensionStart = Buffer.from("0603551d1e0101ff04", "hex");

/** Reads tag, length and value at a place, as Go and Rust do. @throws Error for a length that is not the shortest form */
function element(der: Buffer, at: number): { readonly tag: number; readonly value: Buffer; readonly end: number } {
  const first = der.readUInt8(at + 1);
  const more = first < 0x80 ? 0 : first - 0x80;
  const length = more === 0 ? first : der.readUIntBE(at + 2, more);
  if (more > 0 && length < Math.max(0x80, 256 ** (more - 1))) throw new Error(`${more} bytes for the length ${length}`);
  const start = at + 2 + more;
  if (start + length > der.length) throw new Error("an element is longer than what it is in");
  return { tag: der.readUInt8(at), value: der.subarray(start, start + length), end: start + length };
}

function elements(der: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at < der.length; ) {
    const { value, end } = element(der, at);
    found.push(value);
    at = end;
  }
  return found;
}

/** Returns the names that a certificate permits and excludes. */
function constraints(certificate: string): readonly (readonly string[])[] {
  const { raw } = new X509Certificate(certificate);
  const { value: extension } = element(raw, raw.indexOf(extensionStart) + extensionStart.length - 1);
  const [subtrees = Buffer.alloc(0)] = elements(extension);
  return elements(subtrees).map((names) => elements(names).map((name) => element(name, 0).value.toString("latin1")));
}

describe("the certificate authority of a session", function () {
  this.timeout(60_000);
  for (const count of [0, 1, 2, 3, 5, 9, 10, 20, 1_000]) {
    it(`the authority names ${count} hosts with the shortest lengths`, async () => {
      const hosts = Array.from({ length: count }, (_, i) => `api-${i}.example.com`);
      const { certificate } = await SessionAuthority.make(hosts, Date.now());
      const [permitted = [], excluded = []] = constraints(certificate);
      expect(permitted.slice(1, -2)).to.deep.equal(hosts);
      expect(excluded.slice(1)).to.deep.equal(hosts.map((host) => `.${host}`));
    });
  }

  /** Returns the names of the certificate that a client accepts for this host. @throws Error for one that it refuses */
  async function acceptedFor(authority: SessionAuthority, host: string): Promise<string | undefined> {
    const [near, far] = duplexPair();
    new TLSSocket(near, { isServer: true, secureContext: await authority.secureContext(host) }).on("error", () => {});
    const client = connect({ socket: far, servername: host, ca: authority.certificate });
    try {
      await once(client, "secureConnect");
      return client.getPeerX509Certificate()?.subjectAltName;
    } finally {
      client.destroy();
    }
  }

  it("the authority stays out of the handshake, where OpenSSL does not accept 1,000 long names", async () => {
    const hosts = Array.from({ length: 1_000 }, (_, i) => `api-${i}.${"x".repeat(60)}.example.com`);
    const authority = await SessionAuthority.make(hosts, Date.now());
    expect(await acceptedFor(authority, hosts[0] ?? "")).to.equal(`DNS:${hosts[0]}`);
  });

  const nested = ["github.com", "api.github.com", "v3.api.github.com", "a.b.github.com", "notgithub.com"];

  it("the authority signs for its hosts and those below them, and for no others", async () => {
    const authority = await SessionAuthority.make(nested, Date.now());
    for (const host of nested) expect(await acceptedFor(authority, host)).to.equal(`DNS:${host}`);
    const other = await acceptedFor(authority, "b.github.com").catch((error: Error) => error.message);
    expect(other).to.match(/subtree violation/);
    const pems = authority.certificate.match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
    const permitted = pems.map((pem) => constraints(pem)[0]?.slice(1, -2));
    expect(permitted).to.deep.equal([
      ["github.com", "notgithub.com"],
      ["api.github.com", "a.b.github.com"],
      ["v3.api.github.com"],
    ]);
  });

  describe("certificates of a server", () => {
    const rig = brokerRig();
    const agent = shared(async () => {
      const { server, upstream } = rig();
      for (const host of ["api.github.com", "api.openai.com"]) {
        await mustPut(server, `more/${host}`, { value: "x" });
        await bind(server, `more/${host}`, { host, port: upstream.port });
      }
      return startAgent(server);
    });

    it("the certificate names the hosts of several bindings with the shortest lengths", () => {
      const [permitted] = constraints(agent().certificate);
      expect(permitted).to.include.members(["localhost", "api.github.com", "api.openai.com"]);
    });

    it("clients accept a session's certificate for a host and for one below it", async () => {
      const { server, upstream } = rig();
      await mustPut(server, "below/key", { value: "x" });
      for (const host of ["localhost", "api.localhost"])
        await bind(server, "below/key", { host, port: upstream.port, private: true });
      const session = await startAgent(server, { paths: ["below/"] });
      for (const host of ["localhost", "api.localhost"]) {
        const tunnel = await openTunnel(session, `${host}:${upstream.port}`);
        if (typeof tunnel === "string") throw new Error(tunnel);
        expect((await startTls(session, tunnel, host, host)).authorized).to.equal(true);
      }
    });

    it("a session's certificate expires with the session, after 24 hours at least and 30 days at most", async () => {
      const { server, upstream } = rig();
      const day = 86_400;
      for (const [ttlSeconds, seconds] of [
        [60, day],
        [3 * day, 3 * day],
        [0, 30 * day],
      ] as const) {
        const began = Date.now();
        const session = await startAgent(server, { paths: ["app/"], ttlSeconds });
        const end = Date.parse(new X509Certificate(session.certificate).validTo);
        // Certificates have whole seconds.
        expect(end).to.be.within(began + (seconds - 1) * 1_000, Date.now() + seconds * 1_000);
        const tunnel = await openTunnel(session, `localhost:${upstream.port}`);
        if (typeof tunnel === "string") throw new Error(tunnel);
        const tls = await startTls(session, tunnel, "localhost", "localhost");
        expect(Date.parse(tls.getPeerX509Certificate()?.validTo ?? "")).to.equal(end);
      }
    });

    it("a session with more than 1,000 hosts is refused and leaves no token", async () => {
      const { server, upstream } = rig();
      for (let at = 0; at < 1_001; at++) {
        const path = `many/${at >> 6}`;
        if (at % 64 === 0) await mustPut(server, path, { value: "x" });
        await bind(server, path, { host: `api-${at}.example.com`, port: upstream.port });
      }
      const before = mustSucceed(await send(server, { path: "/v1/tokens" }))["tokens"];
      const refused = await send(server, { method: "POST", path: "/v1/agents", body: { paths: ["many/"] } });
      expect(refused.status).to.equal(400);
      expect(refused.json["error"]).to.contain("1001 hosts");
      expect(mustSucceed(await send(server, { path: "/v1/tokens" }))["tokens"]).to.deep.equal(before);
      const body = { name: "many", can: ["use"], paths: ["many/"] };
      const { token } = mustSucceed(await send(server, { method: "POST", path: "/v1/tokens", body }));
      const head = `CONNECT api-0.example.com:443 HTTP/1.1\r\nHost: api-0.example.com:443\r\n`;
      const credential = `Proxy-Authorization: Bearer ${token}`;
      expect(await sendRaw(agent(), `${head}${credential}\r\n\r\n`)).to.match(/^HTTP\/1.1 400 /);
      expect((await startAgent(server, { paths: ["more/"] })).port).to.equal(agent().port);
    });
  });
});
