/**
 * Host names that resolve to other addresses, also at the second look-up (DNS rebinding). The tests run again inside a network
 * and a table of hosts of their own, where public addresses are this machine: Linux, with unshare and ip.
 */
import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import {
  type Agent,
  bind,
  openTunnel,
  proxyAuthorization,
  sendRaw,
  sendThrough,
  startAgent,
  startUpstream,
  startWithBroker,
  type Upstream,
  value,
} from "../../tools/rig/broker-rig.js";
import { later, shared } from "../../tools/rig/clean-up.js";
import { isRoot, needs } from "../../tools/rig/needs.js";
import type { TestServer } from "../../tools/rig/server.js";
import { mustPut } from "../../tools/rig/test-client.js";

/** The table of hosts inside; null outside. */
const hosts = process.env["STRONGROOM_TEST_HOSTS"] ?? null;

const [publicAddress, otherPublic, privateAddress] = ["93.184.216.34", "93.184.216.35", "10.1.2.3"];

const inside = `mount --bind "$STRONGROOM_TEST_HOSTS" /etc/hosts && ip link set lo up &&
for address in ${publicAddress} ${otherPublic} ${privateAddress}; do ip addr add $address/32 dev lo || exit; done
exec "$0" "$@"`;

const canIsolate = () =>
  spawnSync("unshare", ["-rnm", "sh", "-c", "mount --bind /etc/hosts /etc/hosts && ip link set lo up"]).status === 0;

if (hosts === null) {
  describe("DNS rebinding", () => {
    it("names that resolve to other addresses get no credential", function () {
      needs(this, isRoot && canIsolate(), "root, and namespaces"); // else / would belong to an unknown user inside
      this.timeout(0);
      return runInside();
    });
  });
} else describe("addresses of a host name", () => namesInside(hosts));

async function runInside(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "strongroom-hosts-"));
  const table = join(directory, "hosts");
  writeFileSync(table, "127.0.0.1 localhost\n");
  const mocha = fileURLToPath(new URL("../../../node_modules/mocha/bin/mocha.js", import.meta.url));
  const hooks = fileURLToPath(new URL("../support/hooks.js", import.meta.url));
  const tests = [mocha, "--no-config", "--timeout", "0", "--exit", "--require", hooks, fileURLToPath(import.meta.url)];
  const args = ["-rnm", "sh", "-c", inside, process.execPath, ...tests];
  try {
    const report = await new Promise<string>((resolve) =>
      execFile(
        "unshare",
        args,
        { env: { ...process.env, STRONGROOM_TEST_HOSTS: table, RES_OPTIONS: "attempts:1 timeout:1" } },
        (error, out, problems) => resolve(error === null ? out : `failed: ${out}${problems}`),
      ),
    );
    expect(report)
      .to.match(/ [1-9]\d* passing/)
      .and.not.contain("failed");
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function namesInside(table: string): void {
  type Rig = { readonly server: TestServer; readonly upstream: Upstream; readonly agent: Agent };
  const rig = shared(async (): Promise<Rig> => {
    const upstream = await startUpstream(["api.test", "own.test"], null, "0.0.0.0");
    const server = await startWithBroker([upstream]);
    for (const [path, more] of [
      ["app/key", { host: "api.test" }],
      ["own/key", { host: "own.test", private: true }],
    ] as const) {
      await mustPut(server, path, { value });
      await bind(server, path, { port: upstream.port, ...more });
    }
    const agent = await startAgent(server, { egress: "any" });
    return { server, upstream, agent };
  });
  const resolveTo = (name: string, ...addresses: readonly string[]) =>
    writeFileSync(table, ["127.0.0.1 localhost", ...addresses.map((address) => `${address} ${name}`), ""].join("\n"));
  const ask = (name: string) => {
    const { agent, upstream } = rig();
    const at = `${name}:${upstream.port}`;
    return sendThrough(agent, at, `GET /ok HTTP/1.1\r\nHost: ${at}\r\nConnection: close\r\n\r\n`);
  };
  beforeEach(() => {
    rig().upstream.seen.length = 0;
    rig().upstream.places.length = 0;
  });

  it("a name that resolves to a public address gets the credential", async () => {
    resolveTo("api.test", publicAddress);
    expect(await ask("api.test")).to.match(/^HTTP\/1.1 200 /);
    expect(rig().upstream.seen[0]?.headers).to.include({ authorization: `Bearer ${value}` });
  });

  for (const addresses of [
    [privateAddress],
    ["127.0.0.1"],
    ["169.254.169.254"],
    [publicAddress, privateAddress],
    [privateAddress, publicAddress],
    ["::1"],
    ["::ffff:10.1.2.3"],
    [],
  ]) {
    it(`a name that resolves to ${addresses.join(" and ") || "nothing"} gets no credential`, async () => {
      resolveTo("api.test", ...addresses);
      expect(await ask("api.test")).to.match(/^HTTP\/1.1 403 /);
      expect(await openTunnel(rig().agent, "api.test:22")).to.match(/^HTTP\/1.1 403 /);
      expect(rig().upstream.seen).to.have.length(0);
    });
  }

  it("a name that resolves to a private address at the next request gets no credential there", async () => {
    resolveTo("api.test", publicAddress);
    expect(await ask("api.test")).to.match(/^HTTP\/1.1 200 /);
    resolveTo("api.test", privateAddress);
    expect(await ask("api.test")).to.match(/^HTTP\/1.1 403 /);
    expect(rig().upstream.seen).to.have.length(1);
  });

  it("a name that changes its address at every lookup is never connected at a private one", async () => {
    const { upstream } = rig();
    let turn = 0;
    const timer = setInterval(() => resolveTo("api.test", turn++ % 2 === 0 ? publicAddress : privateAddress), 1);
    try {
      for (let n = 0; n < 60; n++) await ask("api.test");
    } finally {
      clearInterval(timer);
    }
    expect(upstream.places.filter((address) => address !== publicAddress)).to.deep.equal([]);
    expect(upstream.seen).to.have.length.above(0).and.below(60);
  });

  it("a client that sends before its tunnel is open gets no tunnel to a public address", async () => {
    const { agent, upstream } = rig();
    const at = `${publicAddress}:${upstream.port}`;
    const head = `CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n${proxyAuthorization(agent)}\r\n\r\n`;
    const closed = once(upstream.server, "connection").then(([socket]) => once(socket as Socket, "close"));
    expect(await sendRaw(agent, `${head}early`)).to.match(/^HTTP\/1.1 400 /);
    await closed;
  });

  it("a public name is reached by http:// without a credential, where the session allows it", async () => {
    const { server, agent: free } = rig();
    const seen: string[] = [];
    const plain = createServer((req, res) => {
      seen.push(`${req.method} ${req.url} ${req.headers.host} ${req.headers["proxy-authorization"]}`);
      req.resume().on("end", () => res.end("plain"));
    });
    await new Promise<void>((resolve) => plain.listen(0, "0.0.0.0", resolve));
    later(() => void plain.close());
    const at = `deb.test:${(plain.address() as AddressInfo).port}`;
    const ask = async (agent: Agent, target: string, host = at) => {
      const head = `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${proxyAuthorization(agent)}\r\nConnection: close\r\n\r\n`;
      return (await sendRaw(agent, head)).replace(/\r\n.*\r\n\r\n/s, " ");
    };
    resolveTo("deb.test", publicAddress);
    const listed = await startAgent(server, { allowHosts: ["deb.test"] });
    for (const agent of [free, listed])
      expect(await ask(agent, `http://${at}/a?b=c`)).to.equal("HTTP/1.1 200 OK plain");
    expect(await ask(listed, `http://${at}?b=c`)).to.equal("HTTP/1.1 200 OK plain");
    expect(await ask(await startAgent(server), `http://${at}/none`)).to.match(/^HTTP\/1.1 403 .*--allow-host deb.test/);
    expect(await ask(listed, `http://${at}/host`, "evil.test")).to.match(/^HTTP\/1.1 400 /);
    expect(await ask(listed, `http://x@${at}/user`)).to.match(/^HTTP\/1.1 400 /);
    expect(await ask({ ...listed, token: "wrong" }, `http://${at}/token`)).to.match(/^HTTP\/1.1 407 /);
    resolveTo("deb.test", privateAddress);
    expect(await ask(free, `http://${at}/private`)).to.match(/^HTTP\/1.1 403 .*private/);
    expect(seen).to.deep.equal([...Array(2).fill(`GET /a?b=c ${at} undefined`), `GET /?b=c ${at} undefined`]);
  });

  it("a name that resolves to a private address gets the credential where the binding says private", async () => {
    resolveTo("own.test", privateAddress);
    expect(await ask("own.test")).to.match(/^HTTP\/1.1 200 /);
    expect(rig().upstream.seen).to.have.length(1);
  });
}
