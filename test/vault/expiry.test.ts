/** Counts of secrets that expire: what status, metrics and doctor say of them, and when they say nothing. */
import { expect } from "chai";
import { type FileOperations, systemFiles } from "../../src/files/durable.js";
import { temporaryDirectory } from "../support/clean-up.js";
import { FakeClock } from "../support/manual-clock.js";
import { mustScrape } from "../support/scrape.js";
import { startTestServer, type TestServer } from "../support/server.js";
import { mustInit, mustLock, mustPut, mustStatus, mustSucceed, mustUnlock, send } from "../support/test-client.js";

const day = 86_400_000;

/** Lets the background work run whose delays pass on the fake clock. */
async function mustCount(server: TestServer, clock: FakeClock, counts: object | undefined): Promise<void> {
  const wanted = JSON.stringify(counts);
  while (JSON.stringify((await mustStatus(server))["expiry"]) !== wanted) clock.advance(1_000);
}

describe("counts of secrets that expire", () => {
  const start = async () => {
    const clock = new FakeClock();
    const server = await startTestServer({ clock, idleTimeoutMs: 0 });
    await mustInit(server);
    const at = (days: number) => new Date(clock.now() + days * day).toISOString();
    const put = (path: string, days: number) => mustPut(server, path, { value: "v", expiresAt: at(days) });
    return { clock, server, put };
  };

  it("follow puts, deletes and time, in status and metrics", async () => {
    const { clock, server, put } = await start();
    await put("over", -1);
    for (let i = 0; i < 70; i++) await put(`soon/${i}`, 5); // more than a slice
    await put("month", 20);
    await put("later", 40);
    await mustPut(server, "never", "v");
    await mustCount(server, clock, { expired: 1, within30Days: 71 });
    const scrape = await mustScrape(server);
    expect(scrape.value("strongroom_secrets_expired")).to.equal(1);
    expect(scrape.value('strongroom_secrets_expiring{within="7d"}')).to.equal(70);
    expect(scrape.value('strongroom_secrets_expiring{within="30d"}')).to.equal(71);
    await send(server, { method: "DELETE", path: "/v1/secrets/over" });
    await put("soon/0", 90);
    await mustCount(server, clock, { expired: 0, within30Days: 70 });
    clock.advance(11 * day);
    await mustCount(server, clock, { expired: 69, within30Days: 2 });
    expect((await send(server, { path: "/v1/secrets/soon/1" })).status).to.equal(200);
  });

  it("cost no reading of the secrets after an unlock where none expires, and are right again once one does", async () => {
    const home = temporaryDirectory();
    const clock = new FakeClock();
    const first = await startTestServer({ clock, home, idleTimeoutMs: 0 });
    await mustInit(first);
    await mustPut(first, "never", "v");
    await mustCount(first, clock, { expired: 0, within30Days: 0 });
    await first.stop();
    const opened: string[] = [];
    const open: FileOperations["open"] = (...args) => {
      opened.push(args[0]);
      return systemFiles.open(...args);
    };
    const second = await startTestServer({ clock, home, idleTimeoutMs: 0, files: { ...systemFiles, open } });
    await mustUnlock(second);
    await mustCount(second, clock, { expired: 0, within30Days: 0 });
    expect(opened.filter((path) => path.includes("never"))).to.deep.equal([]);
    const expiresAt = new Date(clock.now() - day).toISOString();
    await mustPut(second, "over", { value: "v", expiresAt });
    await mustCount(second, clock, { expired: 1, within30Days: 0 });
    await second.stop();
    const third = await startTestServer({ clock, home, idleTimeoutMs: 0 });
    await mustUnlock(third);
    await mustCount(third, clock, { expired: 1, within30Days: 0 });
  });

  it("include a secret that comes back from the trash", async () => {
    const { clock, server, put } = await start();
    await put("over", -1);
    mustSucceed(await send(server, { method: "POST", path: "/v1/trash/over" }));
    await mustCount(server, clock, { expired: 0, within30Days: 0 });
    mustSucceed(await send(server, { method: "POST", path: "/v1/untrash/over" }));
    await mustCount(server, clock, { expired: 1, within30Days: 0 });
  });

  it("are unknown while locked, and known again after an unlock", async () => {
    const { clock, server, put } = await start();
    await put("over", -1);
    await mustCount(server, clock, { expired: 1, within30Days: 0 });
    await mustLock(server);
    await mustCount(server, clock, undefined);
    expect((await mustScrape(server)).value("strongroom_secrets_expired")).to.equal(undefined);
    await mustUnlock(server);
    await mustCount(server, clock, { expired: 1, within30Days: 0 });
  });
});
