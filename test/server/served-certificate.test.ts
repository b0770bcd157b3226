/** The certificate of a running server: read again when its files change, renewed in time, and announced before its end. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { connect, type PeerCertificate } from "node:tls";
import { expect } from "chai";
import { generate } from "selfsigned";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { emptyHome } from "../../tools/rig/prepared-home.js";
import { startProcess } from "../../tools/rig/process.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { closeConnections, mustInit, mustStatus, openRaw } from "../../tools/rig/test-client.js";
import { run } from "../support/command-here.js";
import { makeClient } from "../support/library.js";
import { FakeClock } from "../support/manual-clock.js";

const day = 24 * 3600 * 1000;

/** More than the server waits between two checks of the files, and less than the 10 seconds that it has. */
const aCheck = 4_500;

type Made = { readonly cert: string; readonly key: string };

async function make(name: string, days = 365, key: object = { keyType: "ec" }): Promise<Made> {
  const { cert, private: made } = await generate([{ name: "commonName", value: name }], {
    ...{ algorithm: "sha256", notBeforeDate: new Date(Date.now() - day) },
    notAfterDate: new Date(Math.trunc(Date.now() / 1000) * 1000 + days * day),
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
    ...key,
  });
  return { cert, key: made };
}

class Files {
  readonly #directory = temporaryDirectory();
  readonly tlsCert = join(this.#directory, "c.pem");
  readonly tlsKey = join(this.#directory, "k.pem");

  write({ cert, key }: Partial<Made>): this {
    if (cert !== undefined) writeFileSync(this.tlsCert, cert, { mode: 0o600 });
    if (key !== undefined) writeFileSync(this.tlsKey, key, { mode: 0o600 });
    return this;
  }

  get settings() {
    return { tlsCert: this.tlsCert, tlsKey: this.tlsKey };
  }
}

/** Returns the common name and the end of what a port serves. */
function servedAt(port: number | null): Promise<Pick<PeerCertificate, "subject" | "valid_to">> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port: port ?? 0, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    }).on("error", reject);
  });
}

async function names({ port, vaultPort }: Pick<TestServer, "port" | "vaultPort">): Promise<string[]> {
  const ports = vaultPort === null ? [port] : [port, vaultPort];
  return (await Promise.all(ports.map(servedAt))).map(({ subject }) => String(subject.CN));
}

/** Lets the server check until it has logged the event. */
async function checksUntil({ logged }: Pick<TestServer, "logged">, clock: FakeClock, event: string): Promise<void> {
  while (!logged().includes(`"event":"${event}"`)) {
    clock.advance(aCheck);
    await nextTurn();
  }
}

describe("certificates of a running server", () => {
  it("a changed certificate is read again, for the connections of every port that follow", async () => {
    const files = new Files().write(await make("old"));
    const clock = new FakeClock(Date.now());
    const server = await startTestServer({ ...files.settings, clock, vaultPort: 0, idleTimeoutMs: 0 });
    await mustInit(server);
    const kept = await openRaw(server);
    const { cert, key } = await make("new", 100);
    files.write({ cert });
    clock.advance(aCheck);
    expect(await names(server)).to.deep.equal(["old", "old"]);
    files.write({ key });
    await checksUntil(server, clock, "certificate-replaced");
    expect(server.logged(), "files are replaced one after the other").not.to.contain("certificate-refused");
    expect(await names(server)).to.deep.equal(["new", "new"]);
    closeConnections(server);
    const endsAt = new Date((await servedAt(server.port)).valid_to).toISOString();
    expect(await mustStatus({ ...server, certificate: cert })).to.deep.include({
      locked: false,
      certificate: { endsAt },
    });
    expect(kept.destroyed, "open connections stay").to.equal(false);
    kept.destroy();
  });

  const unfit: readonly (readonly [string, () => Promise<Partial<Made>>])[] = [
    ["of another key", async () => ({ cert: (await make("other")).cert })],
    ["cut in two", async () => ({ cert: (await make("cut")).cert.slice(0, 300) })],
    ["expired", () => make("expired", -0.5)],
    ["too weak for TLS", () => make("weak", 365, { keyType: "rsa", keySize: 512 })],
    ["empty", async () => ({ cert: "", key: "" })],
  ];
  it("the old certificate stays when the new pair cannot be used, which is logged once", async () => {
    const files = new Files().write(await make("old"));
    const clock = new FakeClock(Date.now());
    const server = await startTestServer({ ...files.settings, clock, vaultPort: 0 });
    for (const [name, pair] of unfit) {
      files.write(await pair());
      const before = server.logged().length;
      const logged = () => server.logged().slice(before);
      await checksUntil({ logged }, clock, "certificate-refused");
      await server.reloadCertificate();
      await server.reloadCertificate();
      expect(logged().split('"certificate-refused"'), name).to.have.lengthOf(4); // a request to read is always answered
      expect(await names(server), name).to.deep.equal(["old", "old"]);
    }
    rmSync(files.tlsKey);
    await server.reloadCertificate();
    expect(server.logged()).to.contain(`${files.tlsKey} is missing`);
    files.write(await make("new"));
    await server.reloadCertificate();
    expect(await names(server)).to.deep.equal(["new", "new"]);
  });

  it("a generated certificate is renewed 30 days before its end, and clients that trust the file keep working", async () => {
    const clock = new FakeClock(Date.now() - 336 * day);
    const server = await startTestServer({ home: emptyHome(), clock, vaultPort: 0, idleTimeoutMs: 0 });
    await mustInit(server);
    const client = makeClient(server);
    await client.put("a", "v");
    const first = await servedAt(server.port);
    clock.advance(334 * day);
    await server.reloadCertificate(); // after the check
    expect(await servedAt(server.port)).to.deep.include({ valid_to: first.valid_to });
    clock.advance(2 * day);
    await checksUntil(server, clock, "certificate-replaced");
    const renewed = { ...server, certificate: readFileSync(server.certificateFile, "utf8") };
    expect(renewed.certificate).not.to.equal(server.certificate);
    for (const port of [server.port, server.vaultPort])
      expect(Date.parse((await servedAt(port)).valid_to)).to.be.above(Date.now() + 300 * day);
    await server.reloadCertificate();
    expect(server.logged()).not.to.contain("certificate-refused");
    expect(await mustStatus(renewed)).to.include({ locked: false });
    expect((await client.get("a")).reveal()).to.equal("v");
  });

  it("a certificate's end is logged from 14 days before it, once a day", async () => {
    const files = new Files().write(await make("short", 20));
    const clock = new FakeClock(Date.now());
    const server = await startTestServer({ ...files.settings, clock });
    const warnings = () => server.logged().split('"certificate-ends"').length - 1;
    const afterChecks = async (ms: number) => {
      clock.advance(ms);
      await server.reloadCertificate();
      return warnings();
    };
    expect(await afterChecks(5 * day)).to.equal(0);
    expect(await afterChecks(day)).to.equal(1);
    expect(await afterChecks(day / 2)).to.equal(1);
    expect(await afterChecks(day / 2)).to.equal(2);
    expect(await afterChecks(14 * day)).to.equal(3);
    expect(server.logged()).to.contain(files.tlsCert).and.to.contain("clients refuse it");
    files.write(await make("long"));
    await server.reloadCertificate();
    expect(await afterChecks(day)).to.equal(3);
  });
});

describe("SIGHUP", () => {
  it("SIGHUP reads the certificate again without a stop or a lock, and commands say when it ends", async () => {
    const files = new Files().write(await make("old", 2));
    const server = await startProcess(["--tls-cert", files.tlsCert, "--tls-key", files.tlsKey]);
    expect(server.logged()).to.contain('"certificate-ends"').and.to.contain(files.tlsCert);
    await mustInit(server);
    const commands = { STRONGROOM_HOME: server.home };
    expect((await run(["status"], commands)).stdout).to.match(/certificate +ends .*: replace it and its key/);
    const { code, stdout } = await run(["doctor"], commands);
    expect([code, stdout]).to.satisfy(() => code === 12 && stdout.includes("its certificate ends"));
    files.write(await make("new"));
    server.child.kill("SIGHUP");
    while (!server.logged().includes("certificate-replaced")) await nextTurn();
    expect(await names(server)).to.deep.equal(["new"]);
    server.child.kill("SIGHUP");
    while (!server.logged().includes("certificate-unchanged")) await nextTurn();
    const status = await run(["status", "--json"], commands);
    expect(JSON.parse(status.stdout)).to.include({ locked: false, serverRunning: true });
    expect((await run(["doctor"], commands)).code).to.equal(0);
  });
});
