/** A database that becomes unfit while a server runs: requests, status and log say why, until it is fit again. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { systemClock } from "../../../src/clock.js";
import { shared } from "../../support/clean-up.js";
import { needsPostgres, startPostgres, urlOf } from "../../support/postgres.js";
import { startTestServer, type TestServer } from "../../support/server.js";
import { type Json, mustGet, mustInit, mustPut, mustRefuse, mustStatus, send } from "../../support/test-client.js";

async function untilStatus(server: TestServer, isAsWanted: (status: Json) => boolean): Promise<Json> {
  for (;;) {
    const status = await mustStatus(server);
    if (isAsWanted(status)) return status;
    await sleep(50);
  }
}

describe("a database that becomes unfit while a server runs", () => {
  before(function () {
    needsPostgres(this);
  });
  const cluster = shared(startPostgres);
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };

  const rows = [
    {
      what: "that loses secrets in a crash",
      begin: () => cluster().start(["fsync=off"]),
      end: () => cluster().start(),
      reason: "the database runs with fsync=off and may lose secrets: set fsync=on",
    },
    {
      what: "whose clock differs by more than an hour",
      begin: () => {
        aheadMs = 2 * 3_600_000;
        return cluster().start();
      },
      end: () => {
        aheadMs = 0;
        return cluster().start();
      },
      reason: "clock skew with the database exceeds one hour: synchronize the clocks",
    },
  ] as const;

  for (const { what, begin, end, reason } of rows) {
    it(`${what}: every request is refused with the reason, which status and log show once`, async () => {
      const store = urlOf(cluster().port, await cluster().database());
      const server = await startTestServer({ store, clock, idleTimeoutMs: 0 });
      await mustInit(server);
      await mustPut(server, "a", "v");
      await cluster().kill();
      await begin();
      const status = await untilStatus(server, (each) => String(each["storageProblem"]).includes(reason));
      expect(status).to.include({ storageAvailable: false, storageProblem: reason });
      const get = await send(server, { path: "/v1/secrets/a" });
      mustRefuse(get, 503, "UNAVAILABLE");
      expect(get.json["error"]).to.equal(reason);
      const logged = server.logged().split('"event":"database-unusable"');
      expect(logged).to.have.length(2);
      expect(logged[1]).to.contain(reason);
      await cluster().kill();
      await end();
      const after = await untilStatus(server, (each) => each["storageAvailable"] !== false);
      expect(after).not.to.have.property("storageProblem");
      expect((await mustGet(server, "a"))["value"]).to.equal("v");
      await server.stop();
    });
  }
});
