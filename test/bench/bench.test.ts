/** The benchmark itself: statistics, tables, chart, options, load generator, one short round, clean-up. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { pacedStream, sendPaced, startLoaders } from "../../bench/measure.js";
import { type Options, readOptions, UsageError } from "../../bench/options.js";
import { type Finding, isReached, type Outcome } from "../../bench/outcome.js";
import { chosen, run } from "../../bench/run-scenarios.js";
import { scenarios } from "../../bench/scenarios/all.js";
import { drawStorm } from "../../bench/scenarios/storm-chart.js";
import { median, ratios, spreadOf } from "../../bench/statistics.js";
import { startFixed } from "../../bench/subjects.js";
import { markdownOutcome, showOutcome, showPromises } from "../../bench/tables.js";
import { canMeasure, perRequest } from "../../bench/usage.js";
import { temporaryDirectory } from "../support/clean-up.js";
import { environment, node } from "../support/process.js";
import { startTestServer } from "../support/server.js";

const finding: Finding = {
  what: "speed",
  value: { median: 0.5, min: 0.25, max: 1 },
  unit: "×",
  target: { atLeast: 0.4 },
};
const cpu = { main: 10, worker: 20, pool: 30, engine: 40 };
const latency = { p50: 1, p99: 2, p999: 3, max: 5 };
const sample = { count: 8, perSecond: 4, failed: 1, latency, cpu, peak: 100, loadBusy: 0.5 };
const outcome: Outcome = {
  scenario: "a scenario",
  series: [{ subject: "a subject", samples: [sample, sample] }],
  findings: [finding],
};

/** It starts several processes and waits until each is idle, which takes long on a busy machine. */
const longMs = 240_000;

describe("the benchmark's parts", () => {
  it("take the median of an odd and of an even number of figures, in any order", () => {
    expect(median([3, 1, 2])).to.equal(2);
    expect(median([4, 1, 3, 2])).to.equal(2.5);
    expect(() => median([])).to.throw(RangeError);
  });

  it("give a spread from the least to the greatest", () => {
    expect(spreadOf([5, 1, 9])).to.deep.equal({ median: 5, min: 1, max: 9 });
  });

  it("take ratios round by round, without rounds that lack a figure", () => {
    expect(ratios([2, 9], [1, 3])).to.deep.equal([2, 3]);
    expect(() => ratios([1], [1, 2])).to.throw(RangeError);
  });

  it("divide CPU time by requests, thread by thread", () => {
    expect(perRequest(cpu, 10)).to.deep.equal({ main: 1, worker: 2, pool: 3, engine: 4 });
  });

  for (const [target, reached] of [
    [{ atLeast: 0.5 }, true],
    [{ atLeast: 0.51 }, false],
    [{ atMost: 0.5 }, true],
    [{ atMost: 0.49 }, false],
  ] as const) {
    it(`hold 0.5 against ${JSON.stringify(target)}: ${reached ? "reached" : "missed"}`, () => {
      expect(isReached({ ...finding, target })).to.equal(reached);
    });
  }

  it("show every figure, its spread and its target in a table", () => {
    const shown = showOutcome(outcome);
    expect(shown)
      .to.contain("a scenario")
      .and.to.match(/a subject +4\.00 +1\.00 +2\.00 +3\.00 +5\.00 +10\.0 +20\.0 +30\.0 +40\.0/);
    expect(shown).to.match(/speed +0\.50 × +0\.25 … 1\.00 +≥ 0\.4 +reached/);
    expect(showPromises([outcome], false)).to.contain("a scenario: speed");
  });

  it("show the same as a Markdown table whose rows have as many cells as its head", () => {
    const rows = markdownOutcome(outcome)
      .split("\n")
      .filter((line) => line.startsWith("| speed") || /^\| +\| median/.test(line));
    expect(rows).to.have.lengthOf(2);
    expect(rows[0]?.split("|").length).to.equal(rows[1]?.split("|").length);
  });

  it("draw the storm as SVG with a point for each tenth of a second that has a response", () => {
    const svg = drawStorm({ status: [1, 0, 10, 1], get: [2, 2, 2], busyStatus: [1], busyGet: [1], quietSeconds: 1 });
    expect(svg)
      .to.match(/^<svg /)
      .and.to.match(/<\/svg>\n$/);
    expect(svg.match(/class="storm" d="M[\d. ]+L[\d. ]+L[\d. ]+"/g)).to.have.lengthOf(2);
    expect(svg).not.to.contain("NaN");
  });

  it("reject invalid options and unknown scenarios", () => {
    for (const args of [["--rounds", "0"], ["--seconds", "x"], ["--no-such"]]) {
      expect(() => readOptions(args), args.join(" ")).to.throw(UsageError);
    }
    expect(() => chosen(mustRead(["--only", "get,no-such"]))).to.throw(UsageError, "no-such");
    expect(chosen(mustRead([]))).to.deep.equal(scenarios);
    expect(chosen(mustRead(["--only", "status"])).map(({ name }) => name)).to.deep.equal(["status"]);
  });
});

describe("the fixed-rate load", () => {
  const requests = [{ method: "GET" as const, path: "/v1/status" }];

  before(function () {
    if (!canMeasure()) this.skip(); // it reads CPU and memory from /proc, which only Linux has
  });

  it("sends its whole schedule through a stall, and counts the wait of every request that was due in it", async () => {
    const server = await startTestServer();
    const subject = await startFixed("bare", Buffer.from("{}"), { server, headers: {} });
    const { pacer } = await startLoaders();
    const load = { paced: [pacedStream(subject, { connections: 4, requests }, 100)], seconds: 2 };
    const stall = async () => {
      await sleep(300);
      subject.child.kill("SIGSTOP");
      await sleep(400);
      subject.child.kill("SIGCONT");
    };
    const [report] = (await sendPaced(pacer, subject, load, () => void stall())).paced;
    expect(report).to.include({ count: 200, failed: 0 });
    expect(report?.max).to.be.above(300);
    // A connection that waits for its response before it sends again would meet the stall once.
    expect(report?.timeline.filter((ms) => ms > 100)).to.have.length.of.at.least(3);
  }).timeout(longMs);

  it("counts responses other than 2xx as failed", async () => {
    const { url } = await startTestServer();
    const { pacer } = await startLoaders();
    const subject = { url, pid: process.pid, threads: { engine: [], pool: [] } };
    const stream = { connections: 2, headers: {}, requests: [{ method: "GET" as const, path: "/v1/secrets" }] };
    const load = { paced: [{ ...stream, perSecond: 20 }], seconds: 0.5 };
    expect((await sendPaced(pacer, subject, load)).paced[0]).to.include({ count: 10, failed: 10 });
  }).timeout(longMs);
});

describe("the benchmark", () => {
  before(function () {
    if (!canMeasure()) this.skip(); // it reads CPU and memory from /proc, which only Linux has
  });

  it("measures real processes under a real load, in one short round", async () => {
    const outcomes: Outcome[] = [];
    for await (const one of run(mustRead(["--only", "status", "--rounds", "1", "--seconds", "1"]))) outcomes.push(one);
    const series = outcomes.flatMap((one) => one.series);
    expect(series.map(({ subject }) => subject)).to.deep.equal(["strongroom", "bare node:https"]);
    for (const { samples } of series) {
      expect(samples).to.have.lengthOf(1);
      expect(samples[0]).to.include({ failed: 0 });
      expect(samples[0]?.count).to.be.above(0);
      expect(samples[0]?.cpu.main).to.be.above(0);
    }
  }).timeout(longMs);

  it("leaves no process and no file behind when it is interrupted", async () => {
    const directory = temporaryDirectory();
    const main = fileURLToPath(new URL("../../bench/bench.js", import.meta.url));
    const child = spawn(node, [main, "--only", "status", "--rounds", "1000"], {
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

function mustRead(args: readonly string[]): Options {
  const options = readOptions(args);
  if (options === null) throw new Error("the options ask for help");
  return options;
}

/** Processes whose own temporary directory is inside this one. */
function processesIn(directory: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "utf8").includes(`\0TMPDIR=${directory}/`);
    } catch {
      return false; // ended meanwhile, or another user's
    }
  });
}
