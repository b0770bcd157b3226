/** The keyring on a session bus of dbus-daemon: what its clients get, and who has the name. */
import { expect } from "chai";
import { needs } from "../../../tools/rig/needs.js";
import { shareLocalServer } from "../../../tools/rig/server.js";
import { mustInit } from "../../../tools/rig/test-client.js";
import { hasProgram, startSessionBus } from "../../support/session-bus.js";
import { BusClient, startOnSessionBus, TestSession } from "./bus-client.js";

describe("the keyring on a session bus", function () {
  this.timeout(120_000);
  const server = shareLocalServer({}, mustInit);
  before(function () {
    needs(this, hasProgram("dbus-daemon"), "dbus-daemon");
  });

  it("clients of the session bus get their secrets byte for byte", async () => {
    const { path, address } = await startSessionBus();
    const { io, stop } = await startOnSessionBus(server(), address);
    expect(io.printed().stderr).to.equal("strongroom: serving org.freedesktop.secrets on the session bus\n");
    const value = Buffer.alloc(100_000, "0123456789");
    for (const kind of ["plain", "encrypted"] as const) {
      const session = await TestSession.open(await BusClient.to(path), kind);
      const item = await session.create({ kind }, value);
      expect(await session.search({ kind })).to.deep.equal([[item], []]);
      expect((await session.get(item)).equals(value)).to.equal(true);
    }
    await stop();
    expect(io.exitCode).to.equal(0);
  });

  it("keyring exits with 7 and the pid where another program has the name, and takes it with --replace", async () => {
    const { address } = await startSessionBus();
    const first = await startOnSessionBus(server(), address);
    const refused = await startOnSessionBus(server(), address);
    await refused.ended;
    expect(refused.io.exitCode).to.equal(7);
    expect(refused.io.printed().stderr).to.equal(
      `strongroom: another program serves org.freedesktop.secrets (pid ${process.pid}): end it, or use --replace\n`,
    );
    const { io } = await startOnSessionBus(server(), address, "--replace");
    await first.ended;
    expect(first.io.exitCode).to.equal(7);
    expect(first.io.printed().stderr).to.contain("another program has taken the name");
    expect(io.exitCode).to.equal(0);
  });

  it("keyring exits with the reason where there is no session bus", async () => {
    const { io, ended } = await startOnSessionBus(server(), "unix:path=/nonexistent/bus");
    await ended;
    expect(io.printed().stderr).to.contain("there is no session bus: /nonexistent/bus cannot be used (ENOENT)");
    expect(io.exitCode).not.to.equal(0);
  });
});
