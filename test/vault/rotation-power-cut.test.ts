/** Rotation of the master key on a disk that loses names: the old key goes only once no blob under it can come back. */
import { dirname, join } from "node:path";
import { expect } from "chai";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { mustGet, mustInit, mustPut, mustUnlock, type Send, send } from "../../tools/rig/test-client.js";
import { blobFile } from "../support/damage.js";
import { formatOutcome, mustRotate, untilRotated } from "../support/key-requests.js";
import { FakeClock } from "../support/manual-clock.js";
import { WeakDisk } from "../support/weak-disk.js";

const paths = ["a/x", "b/x"];

async function startOn(disk: WeakDisk, clock: FakeClock): Promise<TestServer> {
  const server = await startTestServer({ files: disk.files, clock, idleTimeoutMs: 0 });
  await mustInit(server);
  for (const path of paths) await mustPut(server, path, path);
  return server;
}

async function cutPower(disk: WeakDisk, server: TestServer): Promise<void> {
  const restorePower = disk.cutPower();
  await server.stop();
  restorePower();
}

/** Rotates beside a change whose fsync fails, and cuts the power; returns the home. */
async function refusedBesideRotation(directory: string, change: Send): Promise<string> {
  const [disk, clock] = [new WeakDisk(), new FakeClock()];
  const server = await startOn(disk, clock);
  await mustRotate(server);
  disk.failNextSync(join(server.home, "vault", "gen-1", directory), "lost");
  expect((await send(server, change)).status).to.equal(503);
  await untilRotated(server, () => clock.advance(60_000));
  await cutPower(disk, server);
  return server.home;
}

async function mustHoldAll(home: string): Promise<void> {
  const server = await startTestServer({ home });
  await mustUnlock(server);
  for (const path of paths) expect((await mustGet(server, path))["value"]).to.equal(path);
}

/** Each secret is there as it was, or is not there. */
async function mustHoldAllOrNone(home: string): Promise<void> {
  const server = await startTestServer({ home });
  await mustUnlock(server);
  for (const path of paths)
    expect(formatOutcome(await send(server, { path: `/v1/secrets/${path}` })), path).to.be.oneOf([
      "200",
      "404 NOT_FOUND",
    ]);
}

describe("a power cut after a rotation of the master key", () => {
  // The sweep pauses after its first secret, a/x, until the clock advances.
  const put = { method: "PUT", path: "/v1/secrets/b/x", body: { value: "b/x" } };
  const operations = paths.map((path) => ({ put: path, value: path }));
  const rows = [
    ["put", "secrets/b", put],
    ["batch", ".", { method: "POST", path: "/v1/batch", body: { operations } }],
  ] as const;
  for (const [what, directory, change] of rows) {
    it(`loses no secret after a failed fsync of a ${what} during it`, async () => {
      await mustHoldAll(await refusedBesideRotation(directory, change));
    });
  }

  const deletes = paths.map((path) => ({ delete: path }));
  const refused = [
    ["delete", "secrets/b", { method: "DELETE", path: "/v1/secrets/b/x" }],
    ["batch of deletes", ".", { method: "POST", path: "/v1/batch", body: { operations: deletes } }],
  ] as const;
  for (const [what, directory, change] of refused) {
    it(`brings back no secret that does not open after a failed fsync of a ${what} during it`, async () => {
      await mustHoldAllOrNone(await refusedBesideRotation(directory, change));
    });
  }

  it("loses no secret after a failed fsync of its own", async () => {
    const [disk, clock] = [new WeakDisk(), new FakeClock()];
    const server = await startOn(disk, clock);
    disk.failNextSync(dirname(blobFile(server, "a/x")), "lost");
    await mustRotate(server);
    await untilRotated(server, () => clock.advance(60_000));
    expect(disk.hasFailed).to.equal(true);
    await cutPower(disk, server);
    await mustHoldAll(server.home);
  });

  it("loses no secret that a killed server had not synced", async () => {
    const [disk, clock] = [new WeakDisk(), new FakeClock()];
    const server = await startOn(disk, clock);
    disk.failNextSync(dirname(blobFile(server, "a/x")), "late");
    await mustRotate(server);
    while (!disk.hasFailed) await new Promise((resolve) => setTimeout(resolve, 5));
    await server.stop();
    const again = await startTestServer({ home: server.home, files: disk.files, clock, idleTimeoutMs: 0 });
    await mustUnlock(again);
    await untilRotated(again, () => clock.advance(60_000));
    await cutPower(disk, again);
    await mustHoldAll(server.home);
  });
});
