/** Values in the server's memory after checks of all of them, searched for from outside before and after a lock. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { expect } from "chai";
import { type ServerProcess, startProcess } from "../../tools/rig/process.js";
import { scanProcess } from "../../tools/rig/scanner.js";
import { closeConnections, mustInit, mustLock, mustSucceed, mustUnlock, send } from "../../tools/rig/test-client.js";

const canary = "canary-that-the-scanner-must-find";

/** Sizes on both sides of a hash's block, of the part that is judged, and of what is encoded. */
const values = new Map(
  [16, 32, 40, 63, 64, 65, 100, 1_000, 50_000, 100_000].flatMap((length) =>
    Array.from({ length: 4 }, (_, i) => [`${length}/${i}`, randomBytes(length).toString("base64url").slice(0, length)]),
  ) as [string, string][],
);

/** Further ones, of 24 to 63 characters. None in the normal suite; 10,000 in the long form. */
const further = Number(process.env["STRONGROOM_CHECKED_SECRETS"] ?? 0);
for (let i = 0; i < further; i++) values.set(`more/${i}`, randomBytes(18 + (i % 30)).toString("base64url"));

describe("the server's memory, after checks of values", function () {
  this.timeout(0);
  before(function () {
    if (!existsSync("/proc/self/mem")) this.skip(); // only Linux lets a process be read from outside
  });

  it("holds none of them, neither while the vault is unlocked nor once it is locked", async () => {
    const settings = { STRONGROOM_SERVER_NAMES: canary, STRONGROOM_IDLE_TIMEOUT_MS: "0" };
    const first = await startProcess([], settings);
    await mustInit(first);
    await putAll(first);
    await first.stop();
    const server = await startProcess([], { ...settings, STRONGROOM_HOME: first.home });
    await mustUnlock(server);
    for (let n = 0; n < 5; n++) expect(await checkAll(server)).to.equal(values.size);
    expect(await copiesIn(server), "unlocked").to.deep.equal([]);
    await mustLock(server);
    expect(await copiesIn(server), "locked").to.deep.equal([]);
  });
});

async function putAll(server: ServerProcess): Promise<void> {
  const puts = [...values].map(([put, value]) => ({ put, value }));
  for (let from = 0; from < puts.length; from += 1_000) {
    const operations = puts.slice(from, from + 1_000);
    mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body: { operations } }));
  }
}

/** Returns how many secrets were checked. */
async function checkAll(server: ServerProcess): Promise<number> {
  const body = { key: randomBytes(32).toString("base64"), parts: ["strength", "reuse", "search", "breach"] };
  let checked = 0;
  for (let after: unknown = ""; after !== undefined; ) {
    const page = mustSucceed(await send(server, { method: "POST", path: "/v1/check", body: { ...body, after } }));
    checked += (page["entries"] as unknown[]).length;
    after = page["next"];
  }
  return checked;
}

/** Most values to search for: each makes the scan longer. */
const mostSought = 1000;

/** Returns the paths of values of which there is a copy, or a half of one; of many values, some at even distances are sought. */
async function copiesIn(server: ServerProcess): Promise<readonly string[]> {
  const step = Math.ceil(values.size / mostSought);
  const samples = [...values]
    .filter((_, i) => i % step === 0)
    .map(([path, value]) => [path, Buffer.from(value.slice(0, 40))] as const);
  const found = scanProcess(server.child.pid ?? 0, new Map([...samples, ["canary", Buffer.from(canary)]]));
  closeConnections(server); // the server, which the scan stopped, closes those that were idle for too long
  expect(found.get("canary")?.full, "the scanner's canary").to.be.above(0);
  return [...found].flatMap(([name, { full, half }]) => (name !== "canary" && full + half > 0 ? [name] : []));
}
