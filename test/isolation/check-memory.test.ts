/** Values in the server's memory after checks of all of them, searched for from outside while the vault is unlocked. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { expect } from "chai";
import { startProcess } from "../support/process.js";
import { scanProcess } from "../support/scanner.js";
import { mustInit, mustPut, mustSucceed, mustUnlock, send } from "../support/test-client.js";

const canary = "canary-that-the-scanner-must-find";

/** Sizes on both sides of a hash's block, of the part that is judged, and of what is encoded. */
const values = new Map(
  [16, 32, 40, 63, 64, 65, 100, 1_000, 50_000, 100_000].flatMap((length) =>
    Array.from({ length: 4 }, (_, i) => [`${length}/${i}`, randomBytes(length).toString("base64url").slice(0, length)]),
  ) as [string, string][],
);

describe("the server's memory, after checks of values", function () {
  this.timeout(0);
  before(function () {
    if (!existsSync("/proc/self/mem")) this.skip(); // only Linux lets a process be read from outside
  });

  it("holds none of them, although the vault is unlocked", async () => {
    const settings = { STRONGROOM_SERVER_NAMES: canary, STRONGROOM_IDLE_TIMEOUT_MS: "0" };
    const first = await startProcess([], settings);
    await mustInit(first);
    for (const [path, value] of values) await mustPut(first, path, value);
    await first.stop();
    const server = await startProcess([], { ...settings, STRONGROOM_HOME: first.home });
    await mustUnlock(server);
    const body = { key: randomBytes(32).toString("base64"), parts: ["strength", "reuse", "search", "breach"] };
    for (let n = 0; n < 5; n++) {
      const { entries } = mustSucceed(await send(server, { method: "POST", path: "/v1/check", body }));
      expect(entries).to.have.lengthOf(values.size);
    }
    const samples = [...values].map(([path, value]) => [path, Buffer.from(value.slice(0, 40))] as const);
    const found = scanProcess(server.child.pid ?? 0, new Map([...samples, ["canary", Buffer.from(canary)]]));
    expect(found.get("canary")?.full, "the scanner's canary").to.be.above(0);
    const left = [...found].filter(([name, { full, half }]) => name !== "canary" && full + half > 0);
    expect(left).to.deep.equal([]);
  });
});
