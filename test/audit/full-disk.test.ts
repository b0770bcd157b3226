/** A disk that is full under load: no request fails because of the audit log, and it says how many records are missing. */

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { verifyLog } from "../../src/audit/verify.js";
import { maxWaiting } from "../../src/audit/writer.js";
import { startTestServer, type TestServer } from "../../tools/rig/server.js";
import { type Json, mustInit, mustPut, mustSucceed, send } from "../../tools/rig/test-client.js";
import { failingFiles } from "../support/failing-files.js";

/** 60,000 in the long form. Batches fill the queue within the short one. */
const fullMs = Number(process.env["STRONGROOM_AUDIT_FULL_MS"] ?? 1_000);
const clients = 4;
const batchSize = 1_000;

type Load = { readonly gets: () => number; readonly stop: () => Promise<unknown> };

/** Sends batches of gets until it is stopped. */
function startLoad(server: TestServer): Load {
  let isOver = false;
  let gets = 0;
  const body = { operations: Array.from({ length: batchSize }, () => ({ get: "a" })) };
  const client = async () => {
    while (!isOver) {
      mustSucceed(await send(server, { method: "POST", path: "/v1/batch", body }));
      mustSucceed(await send(server, { path: "/v1/secrets/a" }));
      gets += batchSize + 1;
    }
  };
  const all = Promise.all(Array.from({ length: clients }, client));
  const stop = () => {
    isOver = true;
    return all;
  };
  return { gets: () => gets, stop };
}

async function allRecords(server: TestServer): Promise<readonly Json[]> {
  const all: Json[] = [];
  for (;;) {
    const after = Number(all.at(-1)?.["seq"] ?? 0);
    const { records } = mustSucceed(await send(server, { path: `/v1/audit?after=${after}&limit=1000` }));
    all.push(...(records as Json[]));
    if ((records as Json[]).length < 1_000) return all;
  }
}

describe(`the audit log on a disk that is full for ${fullMs} ms under load`, function () {
  this.timeout(0);

  it("a full disk fails no request, and leaves one gap record with the number of lost records", async () => {
    const { files, fail, repair } = failingFiles();
    const server = await startTestServer({ files, audit: "all" });
    await mustInit(server);
    await mustPut(server, "a", "v");
    await allRecords(server);
    fail("writeFile", "ENOSPC");
    const load = startLoad(server);
    await sleep(fullMs);
    while (load.gets() < maxWaiting + 5_000) await sleep(20);
    await load.stop();
    expect(server.logged()).to.include('"audit-failing"');
    repair();
    await allRecords(server); // writes what waits, and then the gap
    mustSucceed(await send(server, { path: "/v1/secrets/a" }));
    const records = await allRecords(server);
    const gaps = records.filter(({ event }) => event === "gap");
    expect(gaps).to.have.lengthOf(1);
    const read = records.filter(({ event }) => event === "get").length - 1;
    expect(Number(gaps[0]?.["count"]))
      .to.be.above(0)
      .and.to.equal(load.gets() - read);
    expect(records.at(-1)).to.include({ event: "get", status: 200 });
    expect((await verifyLog(join(server.home, "audit"))).problems).to.deep.equal([]);
  });
});
