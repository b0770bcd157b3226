/** Owns the scenarios of writing: puts against a bare loop of durable replaces, and puts among gets. */
import { mustPut } from "../../support/client.js";
import { alternate, contender } from "../measure.js";
import { againstEach } from "../outcome.js";
import type { Request } from "../programs/load.js";
import type { Scenario } from "../scenario.js";
import { type StrongroomSubject, startDurableLoop, startFixed } from "../subjects.js";
import { replyTo } from "./replies.js";
import { gets, puts } from "./requests.js";

const lanes = 16;
const filesPerLane = 16;
const putBytes = 1024;

export const put: Scenario = {
  name: "put",
  about: "puts of 1 KiB on 16 connections, against a bare loop of durable replaces",
  vaults: () => [0],
  async run(bench) {
    const strongroom = await bench.strongroom(0);
    const loop = await startDurableLoop(putBytes);
    const requests = puts(lanes * filesPerLane, putBytes);
    const series = await alternate(
      [contender(bench.loader, strongroom, lanes, requests), contender(loop.child, loop, lanes, [])],
      bench.options,
    );
    return [{ scenario: "put, 1 KiB, 16 connections", series, findings: againstEach(series, [{ atLeast: 0.7 }]) }];
  },
};

export const mixed: Scenario = {
  name: "mixed",
  about: "90 gets to 10 puts of 200 bytes on 64 connections",
  vaults: () => [100],
  async run(bench) {
    const strongroom = await bench.strongroom(100);
    const bare = await startFixed("bare", await replyTo(strongroom, gets(1)), strongroom);
    const series = await alternate(
      [strongroom, bare].map((subject) => contender(bench.loader, subject, 64, ninetyTen())),
      bench.options,
    );
    return [{ scenario: "mixed, 90 gets to 10 puts, 64 connections", series, findings: againstEach(series, []) }];
  },
};

/** Ten requests for each connection, one of them a put; connection i has every 64th. */
function ninetyTen(): Request[] {
  const reads = gets(100);
  const writes = puts(64, 200);
  return Array.from({ length: 640 }, (_, i) => {
    const [connection, turn] = [i % 64, Math.floor(i / 64)];
    const request = turn === connection % 10 ? writes[connection] : reads[i % 100];
    if (request === undefined) throw new RangeError("out of requests");
    return request;
  });
}

/** Values of 1 MiB, in and out. */
export const large: Scenario = {
  name: "large",
  about: "gets and puts of values of 1 MiB on 4 connections",
  vaults: () => [0],
  async run(bench) {
    const strongroom = await bench.strongroom(0);
    const requests = puts(16, 2 ** 20, "large");
    await storeLarge(strongroom, requests);
    const reads = requests.map(({ path }) => ({ method: "GET" as const, path }));
    const bare = await startFixed("bare", await replyTo(strongroom, reads), strongroom);
    const loop = await startDurableLoop(2 ** 20);
    const got = await alternate(
      [strongroom, bare].map((subject) => contender(bench.loader, subject, 4, reads)),
      bench.options,
    );
    const stored = await alternate(
      [contender(bench.loader, strongroom, 4, requests), contender(loop.child, loop, 4, [])],
      bench.options,
    );
    return [
      { scenario: "get, 1 MiB, 4 connections", series: got, findings: againstEach(got, []) },
      { scenario: "put, 1 MiB, 4 connections", series: stored, findings: againstEach(stored, []) },
    ];
  },
};

async function storeLarge({ server }: StrongroomSubject, requests: readonly Request[]): Promise<void> {
  for (const { path, valueBytes = 0 } of requests) {
    const secret = decodeURIComponent(path.slice("/v1/secrets/".length));
    await mustPut(server, secret, { value: "v".repeat(valueBytes), type: "api-key" });
  }
}
