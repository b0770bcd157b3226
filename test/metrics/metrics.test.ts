/** docs/operations.md, Metrics and alerts: what `GET /v1/metrics` counts, and what it never shows. */
import { spawnSync } from "node:child_process";
import { expect } from "chai";
import { endpointTable } from "../../src/http/endpoints.js";
import { storageCalls } from "../../src/observer.js";
import { needs } from "../../tools/rig/needs.js";
import { shareTestServer, startTestServer } from "../../tools/rig/server.js";
import {
  mustCreateToken,
  mustInit,
  mustLock,
  mustPut,
  mustStatus,
  mustSucceed,
  mustUnlock,
  type Send,
  send,
} from "../../tools/rig/test-client.js";
import { crashKeyWorkers } from "../support/crash-key-worker.js";
import { failingFiles } from "../support/failing-files.js";
import { makeClient } from "../support/library.js";
import { FakeClock } from "../support/manual-clock.js";
import { mustScrape, type Scrape } from "../support/scrape.js";

const requests = (route: string, method: string, status: number | string) =>
  `strongroom_http_requests_total{route="${route}",method="${method}",status="${status}"}`;
const secret = "/v1/secrets/:path";

/** A request, how often it is sent, and the series that it belongs to. */
const load: readonly (readonly [times: number, Send, series: string])[] = [
  [200, { path: "/v1/secrets/load/a" }, requests(secret, "GET", 200)],
  [70, { path: "/v1/secrets/load/missing" }, requests(secret, "GET", 404)],
  [50, { path: "/v1/secrets?prefix=load" }, requests("/v1/secrets", "GET", 200)],
  [40, { path: "/v1/status", token: null }, requests("/v1/status", "GET", 200)],
  [30, { method: "PUT", path: "/v1/secrets/load/b", body: { value: "v" } }, requests(secret, "PUT", 200)],
  [20, { method: "PUT", path: "/v1/secrets/load/b", body: "{" }, requests(secret, "PUT", 400)],
  [
    10,
    { method: "POST", path: "/v1/batch", body: { operations: [{ get: "load/a" }] } },
    requests("/v1/batch", "POST", 200),
  ],
  [7, { method: "POST", path: "/v1/secrets/load/a" }, requests(secret, "POST", 404)],
  [6, { method: "PATCH", path: "/v1/secrets/load/a" }, requests(secret, "other", 404)],
  [5, { path: "/v2/unknown" }, requests("unknown", "GET", 404)],
  [3, { path: "/v1/secrets/load/a", token: "wrong" }, requests(secret, "GET", 401)],
];

describe("GET /v1/metrics", () => {
  const server = shareTestServer({}, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "load/a", "v");
  });

  it("a scrape counts a load exactly, and each request once in the histogram", async () => {
    const before = await mustScrape(server());
    const all = load.flatMap(([times, request]) => Array.from({ length: times }, () => request));
    await Promise.all(all.map((request) => send(server(), request)));
    const after = await mustScrape(server());
    const grown = (series: string) => (after.value(series) ?? 0) - (before.value(series) ?? 0);
    for (const [times, , series] of load) expect(grown(series), series).to.equal(times);
    const labels = `route="${secret}",method="GET"`;
    const count = `strongroom_http_request_duration_seconds_count{${labels}}`;
    expect(grown(count)).to.equal(200 + 70 + 3);
    expect(grown(`strongroom_http_request_duration_seconds_bucket{${labels},le="+Inf"}`)).to.equal(grown(count));
    expect(grown('strongroom_authentication_failures_total{credential="token"}')).to.equal(3);
    expect(grown('strongroom_cache_lookups_total{result="hit"}')).to.be.above(150);
    expect(grown('strongroom_storage_duration_seconds_count{operation="commit"}')).to.equal(30);
  });

  it("the client library scrapes, and names a refusal as for every method", async () => {
    expect(await makeClient(server()).metrics()).to.match(/^# HELP strongroom_/);
    const { token } = await mustCreateToken(server(), { name: "reader", can: ["get"] });
    const refused = await makeClient(server(), { token })
      .metrics()
      .catch((error: unknown) => error);
    expect(refused).to.include({ name: "StrongroomError", code: "FORBIDDEN" });
  });

  it("a scrape counts the vault's events", async () => {
    const clock = new FakeClock();
    const fresh = await startTestServer({ clock, idleTimeoutMs: 60_000 });
    expect(seriesValues(await mustScrape(fresh))).to.include({ vault_initialized: 0, vault_unlocked: 0, secrets: 0 });
    await mustInit(fresh);
    await mustPut(fresh, "a", "v");
    for (const path of ["gone/1", "gone/2"]) {
      await mustPut(fresh, path, "v");
      mustSucceed(await send(fresh, { method: "POST", path: `/v1/trash/${path}` }));
    }
    await mustLock(fresh);
    for (let n = 0; n < 10; n++)
      await send(fresh, { method: "POST", path: "/v1/unlock", body: { passphrase: "wrong" } });
    clock.advance(300_000);
    await mustUnlock(fresh);
    clock.advance(60_000);
    await mustUnlock(fresh);
    await mustCreateToken(fresh, { name: "one" });
    clock.jump(30_000);
    const unlocked = await mustScrape(fresh);
    expect(seriesValues(unlocked)).to.include({
      ...{ vault_initialized: 1, vault_unlocked: 1, secrets: 1, secrets_trashed: 2, client_tokens: 1 },
      ...{ idle_seconds: 30, idle_timeout_seconds: 60, derivations_running: 0, derivations_waiting: 0 },
      ...{ 'locks_total{reason="request"}': 1, 'locks_total{reason="idle"}': 1, 'locks_total{reason="crash"}': 0 },
      ...{ 'unlocks_total{result="ok"}': 2, 'unlocks_total{result="wrong"}': 10 },
      ...{ 'lockouts_total{credential="passphrase"}': 1, 'lockouts_total{credential="token"}': 0 },
      ...{ derivation_duration_seconds_count: 13, key_worker_restarts_total: 0 },
      ...{ audit_gaps_total: 0, audit_lost_records_total: 0 },
    });
    await crashKeyWorkers();
    await mustStatus(fresh);
    const crashed = {
      'locks_total{reason="crash"}': 1,
      vault_unlocked: 0,
      secrets_trashed: 2,
      key_worker_restarts_total: 1,
    };
    expect(seriesValues(await mustScrape(fresh))).to.include(crashed);
  });

  it("a scrape counts calls of the storage that fail", async () => {
    const { files, fail } = failingFiles();
    const fresh = await startTestServer({ files });
    await mustInit(fresh);
    fail("sync", "EIO");
    expect((await send(fresh, { method: "PUT", path: "/v1/secrets/a", body: { value: "v" } })).status).to.equal(503);
    expect(seriesValues(await mustScrape(fresh))).to.include({ 'storage_errors_total{operation="commit"}': 1 });
  });

  it("labels come from closed sets: no path, no name of a token, no address, no text of a client", async () => {
    const fresh = await startTestServer();
    await mustInit(fresh);
    await mustPut(fresh, "canary/canary", "canary");
    const { token } = await mustCreateToken(fresh, { name: "canary", can: ["metrics"] });
    const paths = [
      "/canary",
      "/v1/canary",
      "/v1/secrets/canary/canary",
      "/v1/tokens/canaries",
      "/v1/secrets?prefix=canary",
    ];
    for (const path of paths) for (const method of ["GET", "CANARY", "DELETE"]) await send(fresh, { method, path });
    const scrape = await mustScrape(fresh, token);
    expect(scrape.text).not.to.match(/canary|127\.0\.0\.1|src_|srt_/i);
    const allowed: Readonly<Record<string, readonly string[]>> = {
      route: [...endpointTable.patterns, "unknown"],
      method: ["GET", "PUT", "POST", "DELETE", "other"],
      operation: storageCalls,
    };
    for (const [, label = "", value = ""] of scrape.text.matchAll(/(\w+)="([^"]*)"/g)) {
      if (label === "status") expect(value).to.match(/^(?:\d{3}|none|other)$/);
      else expect(allowed[label] ?? [value], label).to.include(value);
    }
  });

  it("promtool, which is in Debian's package prometheus, accepts a scrape", async function () {
    const text = (await mustScrape(server())).text;
    const { error, status, stderr, stdout } = spawnSync("promtool", ["check", "metrics"], {
      input: text,
      encoding: "utf8",
    });
    needs(this, error === undefined, "promtool");
    expect(`${stdout}${stderr}`).to.equal("");
    expect(status).to.equal(0);
  });
});

/** The values of a scrape by series, without the common prefix. */
function seriesValues(scrape: Scrape): Readonly<Record<string, number | undefined>> {
  const known = scrape.series.map((series) => [series.replace(/^strongroom_/, ""), scrape.value(series)] as const);
  return Object.fromEntries(known);
}
