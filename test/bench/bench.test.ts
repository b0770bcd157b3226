/** The benchmark itself: its figures, its options, its load at a fixed rate, one short round, and its clean-up. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { markdownTable, median, plainTable, ratios, spreadAcross } from "../../bench/figures.js";
import { alternate, compareSeries, pacedStream, sendPaced, startLoaders } from "../../bench/measure.js";
import { readOptions, UsageError } from "../../bench/options.js";
import { canMeasure } from "../../bench/process-usage.js";
import { startBare, startStrongroom } from "../../bench/subjects.js";
import { temporaryDirectory } from "../../tools/rig/clean-up.js";
import { needs } from "../../tools/rig/needs.js";
import { environment, node } from "../../tools/rig/process.js";
import { startTestServer } from "../../tools/rig/server.js";

/** It starts several processes and waits until each is idle, which takes long on a busy machine. */
const longMs = 240_000;

const status = { connections: 4, requests: [{ method: "GET" as const, path: "/v1/status" }] };

describe("figures of the benchmark", () => {
  it("the spread of figures has their median, in any order", () => {
    expect(spreadAcross([3, 1, 2])).to.deep.equal({ median: 2, min: 1, max: 3 });
    expect(median([4, 1, 3, 2])).to.equal(2.5);
    expect(() => median([])).to.throw(RangeError);
  });

  it("ratios compare figures round by round, and refuse rounds that lack one", () => {
    expect(ratios([2, 9], [1, 3])).to.deep.equal([2, 3]);
    expect(() => ratios([1], [1, 2])).to.throw(RangeError);
  });

  it("the tables show each figure with its spread", () => {
    const outcome = {
      title: "a title",
      findings: [{ what: "speed", value: spreadAcross([0.25, 0.5, 1]), unit: "×" as const }],
    };
    expect(plainTable(outcome)).to.match(/a title\n {2}speed {2}0\.50 × {2}0\.25 to 1\.00\n/);
    expect(markdownTable(outcome)).to.contain("| speed | 0.50 × | 0.25 to 1.00 |");
  });

  it("valid options select parts and rounds, and others are refused", () => {
    expect(readOptions(["--only", "put", "--rounds", "3"], ["get", "put"])).to.include({ rounds: 3 });
    expect(readOptions([], ["get", "put"], ["put"])?.only).to.deep.equal(["get"]);
    expect(readOptions(["--only", "put"], ["get", "put"], ["put"])?.only).to.deep.equal(["put"]);
    for (const args of [["--rounds", "0"], ["--seconds", "x"], ["--no-such"], ["--only", "no-such"]]) {
      expect(() => readOptions(args, ["get", "put"]), args.join(" ")).to.throw(UsageError);
    }
  });
});

describe("the benchmark", () => {
  before(function () {
    needs(this, canMeasure(), "/proc");
  });

  it("the paced load sends its whole schedule through a stall, and counts the wait of every request", async () => {
    const server = await startTestServer();
    const subject = await startBare(Buffer.from("{}"), { server, headers: {} });
    const { pacer } = await startLoaders();
    const stall = async () => {
      await sleep(300);
      subject.child.kill("SIGSTOP");
      await sleep(400);
      subject.child.kill("SIGCONT");
    };
    const load = { url: subject.url, paced: [pacedStream(subject, status, 100)], seconds: 2 };
    const [report] = await sendPaced(pacer, load, () => void stall());
    expect(report).to.include({ count: 200, failed: 0 });
    expect(report?.max).to.be.above(300);
    // Connections that wait for their response before they send again would meet the stall once each: 4 of 200.
    expect(report?.p99).to.be.above(200);
    const refused = { ...status, headers: {}, requests: [{ method: "GET" as const, path: "/v1/secrets" }] };
    const denied = { url: server.url, paced: [{ ...refused, perSecond: 20 }], seconds: 0.5 };
    expect((await sendPaced(pacer, denied))[0]).to.include({ count: 10, failed: 10 });
  }).timeout(longMs);

  it("the benchmark measures real processes under a real load, thread by thread", async () => {
    const loaders = await startLoaders();
    const strongroom = await startStrongroom(temporaryDirectory());
    const bare = await startBare(Buffer.from("{}"), strongroom);
    const series = await alternate(
      loaders,
      [strongroom, bare],
      { ...status, perSecond: 50 },
      { rounds: 1, seconds: 0.2 },
    );
    for (const { samples } of series) {
      expect(samples).to.have.lengthOf(1);
      expect(samples[0]).to.include({ failed: 0 });
      expect(samples[0]?.perSecond).to.be.above(0);
      expect(samples[0]?.cpu.main).to.be.above(0);
    }
    const found = compareSeries(series).map(({ what }) => what);
    expect(found).to.include.members(["CPU a request, main thread, strongroom", "p99, of bare node:https's"]);
  }).timeout(longMs);

  it("an interrupted benchmark leaves no process and no file", async () => {
    const directory = temporaryDirectory();
    const main = fileURLToPath(new URL("../../bench/bench.js", import.meta.url));
    const child = spawn(node, [main, "--only", "put", "--rounds", "1000"], {
      env: { ...environment({}), TMPDIR: directory },
      stdio: ["ignore", "ignore", "inherit"],
    });
    const ended = once(child, "exit");
    while (processesIn(directory).length < 3) {
      if (child.exitCode !== null) throw new Error("the benchmark ended before its servers were up");
      await sleep(50);
    }
    child.kill("SIGINT");
    expect((await ended)[0]).to.equal(130);
    expect(readdirSync(directory)).to.deep.equal([]);
    expect(processesIn(directory)).to.deep.equal([]);
  }).timeout(longMs);
});

/** Processes whose own temporary directory is inside this one. */
function processesIn(directory: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "utf8").includes(`\0TMPDIR=${directory}/`);
    } catch {
      return false; // it has just ended, or is another user's
    }
  });
}
