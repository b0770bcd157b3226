/** `strongroom top`: its figures, one snapshot through a pipe, and the live screen on a terminal. */
import { expect } from "chai";
import { histogramQuantile, Interval, parseSamples, serverLoad } from "../../src/cli/kit/connection/server-load.js";
import { needs } from "../../tools/rig/needs.js";
import { mainArguments, node } from "../../tools/rig/process.js";
import { shareLocalServer } from "../../tools/rig/server.js";
import { mustCreateToken, mustInit, mustPut, send } from "../../tools/rig/test-client.js";
import { hasPython, runProgramOnTerminal } from "../support/pseudo-terminal.js";
import { must, strongroom } from "./command-rows.js";

const buckets = [
  { bound: 0.1, count: 10 },
  { bound: 0.2, count: 30 },
  { bound: Number.POSITIVE_INFINITY, count: 40 },
];

const scrapeAt = (requests: number, failed: number, start = 100) =>
  [
    `process_start_time_seconds ${start}`,
    `strongroom_http_requests_total{route="/v1/secrets/:path",method="GET",status="200"} ${requests}`,
    `strongroom_http_requests_total{route="/v1/secrets/:path",method="GET",status="404"} ${failed}`,
    `strongroom_http_request_duration_seconds_bucket{route="/v1/secrets/:path",method="GET",le="0.001"} ${requests}`,
    `strongroom_http_request_duration_seconds_bucket{route="/v1/secrets/:path",method="GET",le="0.01"} ${requests + failed}`,
    `strongroom_http_request_duration_seconds_bucket{route="/v1/secrets/:path",method="GET",le="+Inf"} ${requests + failed}`,
    `strongroom_http_request_duration_seconds_count{route="/v1/secrets/:path",method="GET"} ${requests + failed}`,
  ].join("\n");

describe("the figures of strongroom top", () => {
  for (const [q, expected] of [
    [0.25, 0.1],
    [0.5, 0.15],
    [0.99, 0.2],
  ] as const)
    it(`the quantile ${q} of a histogram is ${expected}, as in Prometheus`, () => {
      expect(histogramQuantile(q, buckets)).to.be.closeTo(expected, 1e-9);
    });

  it("a histogram without observations has no quantile", () => {
    expect(histogramQuantile(0.5, [{ bound: 1, count: 0 }])).to.be.NaN;
  });

  it("the load is that between two scrapes, and of the whole time after a restart", () => {
    const first = parseSamples(scrapeAt(100, 10), 1_000);
    const second = parseSamples(scrapeAt(300, 20), 3_000);
    const [operation] = serverLoad(new Interval(first, second)).operations;
    expect(operation).to.deep.include({ operation: "GET /v1/secrets/:path", perSecond: 105, failedPerSecond: 5 });
    expect(operation?.p50).to.be.within(0, 0.001);
    expect(operation?.p99).to.be.within(0.001, 0.01);
    const restarted = new Interval(first, parseSamples(scrapeAt(5, 0, 200), 3_000));
    expect(restarted.grown("strongroom_http_requests_total")).to.equal(5);
  });
});

describe("strongroom top", () => {
  const server = shareLocalServer({}, async (fresh) => {
    await mustInit(fresh);
    await mustPut(fresh, "a", "v");
    for (let n = 0; n < 5; n++) await send(fresh, { path: "/v1/secrets/a" });
    await send(fresh, { path: "/v1/secrets/a", token: "wrong" });
  });
  const here = () => ({ STRONGROOM_HOME: server().home });

  it("top prints one snapshot through a pipe", async () => {
    const text = await must(here(), ["top"]);
    expect(text).to.match(/^strongroom \d+\.\d+\.\d+ {3}unlocked {3}up .* 1 secret {3}since the server started\n/);
    expect(text).to.match(/^GET \/v1\/secrets\/:path +[\d.]+ +[\d.]+ +[\d.]+ ms +[\d.]+ ms$/m);
    expect(text).to.contain("1 wrong token or passphrase\n").and.contain("derivations 0 running, 0 waiting");
    expect(text).not.to.contain("\u001b");
  });

  it("top --json prints one JSON object, with a token that may only read metrics", async () => {
    const { token } = await mustCreateToken(server(), { name: "top", can: ["metrics"] });
    const found = JSON.parse(await must({ ...here(), STRONGROOM_TOKEN: token }, ["top", "--json"]));
    expect(found).to.deep.include({ unlocked: true, secrets: 1, wrongCredentials: 1, storageErrors: 0 });
    expect(found.operations.map(({ operation }: { operation: string }) => operation)).to.include(
      "GET /v1/secrets/:path",
    );
  });

  it("top is refused to a token without the right to metrics", async () => {
    const { token } = await mustCreateToken(server(), { name: "other", can: ["get"] });
    const { code } = await strongroom({ ...here(), STRONGROOM_TOKEN: token }, ["top"]);
    expect(code).to.equal(14);
  });

  it("top redraws the screen on a terminal until Ctrl-C, and shows the cursor again", async function () {
    needs(this, hasPython(), "Python");
    const step = { question: "the last ", keys: "\u0003" }; // a signal to the terminal's own process
    const command = [node, ...mainArguments, "top", "--interval", "1s"];
    const { code, shown } = await runProgramOnTerminal(command, [step], here());
    expect(code).to.equal(0);
    expect(shown.split("\u001b[H").length).to.be.above(2);
    expect(shown).to.match(/last second: \d+ requests?, get p50 .*, event loop delay p99 [\d.]+ ms/);
    expect(shown.endsWith("\u001b[?25h")).to.equal(true);
  });
});
