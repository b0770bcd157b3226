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
  it("locks by a timer when the deadline has passed", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.advance(idleTimeoutMs - 1);
    expect(await isLocked(server)).to.equal(false);
    clock.advance(1);
    expect(server.logged()).to.contain('"event":"idle-locked"');
    expect(await isLocked(server)).to.equal(true);
  });

  it("holds across sleep, when timers stand still: the first request finds the vault locked", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.jump(idleTimeoutMs);
    expect((await send(server, { path: "/v1/secrets/a" })).status).to.equal(403);
    expect(await isLocked(server)).to.equal(true);
  });

  it("is checked by status, which is no activity itself", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.jump(idleTimeoutMs);
    expect(await isLocked(server)).to.equal(true);
  });

  it("is off when the timeout is 0", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock, 0);
    clock.advance(365 * 24 * 3600 * 1000);
    expect(await isLocked(server)).to.equal(false);
  });

  it("is not delayed when the clock is set back", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.jump(-3_600_000);
    await mustStatus(server);
    clock.advance(idleTimeoutMs);
    expect(await isLocked(server)).to.equal(true);
  });

  it("restarts with each unlock", async () => {
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

  it("does not count a path that the token may not reach as activity", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    const { token } = await mustCreateToken(server, { name: "ci", can: ["get"], paths: ["app/"] });
    clock.advance(idleTimeoutMs - 1000);
    await send(server, { path: "/v1/secrets/other", token });
    clock.advance(1000);
    expect(await isLocked(server)).to.equal(true);
  });

  it("counts a get refused by a locked vault as activity", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    await mustLock(server);
    clock.advance(1000);
    expect((await send(server, { path: "/v1/secrets/a" })).status).to.equal(403);
    expect((await mustStatus(server))["lastActivity"]).to.equal(new Date(clock.now()).toISOString());
  });

  it("holds across sleep when the first request is an unlock with a wrong passphrase", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    clock.jump(idleTimeoutMs);
    await send(server, { ...unlock, body: { passphrase: "wrong" } });
    expect(server.logged()).to.contain('"event":"idle-locked"');
    expect(await isLocked(server)).to.equal(true);
  });

  it("does not count lock as activity", async () => {
    const clock = new FakeClock();
    const server = await startUnlocked(clock);
    const { lastActivity } = await mustStatus(server);
    clock.advance(1000);
    await mustLock(server);
    expect((await mustStatus(server))["lastActivity"]).to.equal(lastActivity);
  });

  it("reports the server's start as lastActivity before any activity", async () => {
    const clock = new FakeClock();
    const server = await startTestServer({ clock });
    clock.jump(5000);
    expect((await mustStatus(server))["lastActivity"]).to.equal(new Date(clock.now() - 5000).toISOString());
  });
});
