/** Idle lock, and what counts as activity. */
import { expect } from "chai";
import { passphrase, startTestServer, type TestServer } from "../../tools/rig/server.js";
import {
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { FakeClock } from "../support/manual-clock.js";

const idleTimeoutMs = 60_000;

async function startUnlocked(clock: FakeClock, timeout = idleTimeoutMs): Promise<TestServer> {
  const server = await startTestServer({ clock, idleTimeoutMs: timeout });
  await mustInit(server);
  await mustPut(server, "a", "v");
  return server;
}

const isLocked = async (server: TestServer) => (await mustStatus(server))["locked"];

describe("idle lock", () => {
  it("the vault locks by a timer when the deadline has passed", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.advance(idleTimeoutMs - 1);
    expect(await isLocked(server)).to.equal(false);
    clock.advance(1);
    expect(server.logged()).to.contain('"event":"idle-locked"');
    expect(await isLocked(server)).to.equal(true);
  });

  it("the first request after a sleep finds the vault locked, although timers stood still", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.jump(idleTimeoutMs);
    expect((await send(server, { path: "/v1/secrets/a" })).status).to.equal(403);
    expect(await isLocked(server)).to.equal(true);
  });

  it("status reports the vault as locked after the deadline, and is no activity itself", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.jump(idleTimeoutMs);
    expect(await isLocked(server)).to.equal(true);
  });

  it("a timeout of 0 turns the idle lock off", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock, 0);
    clock.advance(365 * 24 * 3600 * 1000);
    expect(await isLocked(server)).to.equal(false);
  });

  it("a clock that is set back does not delay the idle lock", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.jump(-3_600_000);
    await mustStatus(server);
    clock.advance(idleTimeoutMs);
    expect(await isLocked(server)).to.equal(true);
  });

  it("each unlock restarts the idle timeout", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.advance(idleTimeoutMs);
    await mustUnlock(server);
    clock.advance(idleTimeoutMs - 1);
    expect(await isLocked(server)).to.equal(false);
    clock.advance(1);
    expect(await isLocked(server)).to.equal(true);
  });

  const unlock = { method: "POST", path: "/v1/unlock", body: { passphrase } };
  const activities: readonly (readonly [string, Send, boolean])[] = [
    ["a get", { path: "/v1/secrets/a" }, true],
    ["a list", { path: "/v1/secrets" }, true],
    ["a put", { method: "PUT", path: "/v1/secrets/b", body: { value: "v" } }, true],
    ["a delete", { method: "DELETE", path: "/v1/secrets/a" }, true],
    ["a batch", { method: "POST", path: "/v1/batch", body: { operations: [{ get: "a" }] } }, true],
    ["a get of a missing secret", { path: "/v1/secrets/missing" }, true],
    ["a secret operation that is refused with 400", { path: "/v1/secrets/a//b" }, true],
    ["a successful unlock", unlock, true],
    ["a successful forced init", { ...unlock, path: "/v1/init", body: { passphrase, force: true } }, true],
    ["status", { path: "/v1/status" }, false],
    ["a failed unlock", { ...unlock, body: { passphrase: "wrong" } }, false],
    ["a refused init", { ...unlock, path: "/v1/init" }, false],
    ["failed authentication", { path: "/v1/secrets/a", token: "wrong" }, false],
    ["an unknown route", { path: "/nowhere" }, false],
  ];
  for (const [name, request, counts] of activities) {
    it(`${name} is ${counts ? "" : "no "}activity`, async () => {
      const clock = new FakeClock();
      const server = await startUnlocked(clock);
      const { lastActivity: before } = await mustStatus(server);
      clock.advance(idleTimeoutMs - 1000);
      await send(server, request);
      const { lastActivity: after } = await mustStatus(server);
      expect(after).to.equal(counts ? new Date(clock.now()).toISOString() : before);
      clock.advance(1000);
      expect(await isLocked(server)).to.equal(!counts);
    });
  }

  it("a path that the token may not reach is no activity", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    const { token } = await mustCreateToken(server, { name: "ci", can: ["get"], paths: ["app/"] });
    clock.advance(idleTimeoutMs - 1000);
    await send(server, { path: "/v1/secrets/other", token });
    clock.advance(1000);
    expect(await isLocked(server)).to.equal(true);
  });

  it("a get refused by a locked vault is activity", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    await mustLock(server);
    clock.advance(1000);
    expect((await send(server, { path: "/v1/secrets/a" })).status).to.equal(403);
    expect((await mustStatus(server))["lastActivity"]).to.equal(new Date(clock.now()).toISOString());
  });

  it("the idle lock holds across sleep when the first request is an unlock with a wrong passphrase", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.jump(idleTimeoutMs);
    await send(server, { ...unlock, body: { passphrase: "wrong" } });
    expect(server.logged()).to.contain('"event":"idle-locked"');
    expect(await isLocked(server)).to.equal(true);
  });

  it("a lock is no activity", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    const { lastActivity } = await mustStatus(server);
    clock.advance(1000);
    await mustLock(server);
    expect((await mustStatus(server))["lastActivity"]).to.equal(lastActivity);
  });

  it("lastActivity is the server's start before any activity", async () => {
    const clock = new FakeClock();
    const server = await startTestServer({ clock });
    clock.jump(5000);
    expect((await mustStatus(server))["lastActivity"]).to.equal(new Date(clock.now() - 5000).toISOString());
  });
});
