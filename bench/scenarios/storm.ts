/**
 * Owns the scenario of the unlock storm: 16 clients unlock an unlocked vault without a pause, while one connection asks
 * for status and one for a secret. Without the storm, the same two beside a process that keeps one CPU busy: that much
 * any derivation must cost.
 */
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { later } from "../../test/support/clean-up.js";
import { passphrase } from "../../test/support/server.js";
import { mustInit, mustPut } from "../../test/support/test-client.js";
import { pathOf, valueBytes } from "../filled-vaults.js";
import { type Loader, measure, sendLoad, settle, startLoader, stream } from "../measure.js";
import type { Finding, Outcome } from "../outcome.js";
import type { LoadReport, Stream } from "../programs/load.js";
import type { Bench, Scenario } from "../scenario.js";
import { ratios, spreadOf } from "../statistics.js";
import { ask, type StrongroomSubject, startProgram } from "../subjects.js";
import { memoryOf } from "../usage.js";
import { beyondTheQueue } from "./overflow.js";
import { drawStorm, type Timelines } from "./storm-chart.js";

const unlocking = {
  connections: 16,
  requests: [{ method: "POST" as const, path: "/v1/unlock", body: JSON.stringify({ passphrase }) }],
};

/** Times in milliseconds, memory in MiB. */
type Round = {
  readonly status: number | undefined;
  readonly get: number | undefined;
  readonly busyStatus: number | undefined;
  readonly busyGet: number | undefined;
  readonly loopDelay: number;
  readonly memory: number;
  readonly unlocks: number | undefined;
  readonly failed: number;
};

export const storm: Scenario = {
  name: "storm",
  about: "16 clients unlocking without a pause, beside status and get",
  vaults: () => [],
  async run(bench) {
    const subject = await startCostly(bench);
    const scene = { subject, probes: probesOf(subject), stormer: await startLoader(), hog: await startHog(), bench };
    await sleep(500);
    const idle = memoryOf(subject.pid).now;
    const rounds: Round[] = [];
    for (let round = -1; round < bench.options.rounds; round++) {
      const one = await stormRound(scene, idle);
      if (round >= 0) rounds.push(one);
    }
    if (bench.options.chart !== null) writeFileSync(bench.options.chart, drawStorm(await quietThenStorm(scene)));
    return [outcome(rounds), await beyondTheQueue(subject)];
  },
};

type Scene = {
  readonly bench: Bench;
  readonly subject: StrongroomSubject;
  readonly probes: readonly Stream[];
  readonly stormer: Loader;
  readonly hog: Hog;
};

/** A vault whose derivations cost what they cost by default. */
async function startCostly(bench: Bench): Promise<StrongroomSubject> {
  const subject = await bench.freshStrongroom({ environment: { STRONGROOM_SCRYPT_LOG_N: "17" } });
  await mustInit(subject.server);
  await mustPut(subject.server, pathOf(0), "v".repeat(valueBytes));
  return subject;
}

function probesOf(subject: StrongroomSubject): Stream[] {
  const one = (path: string) => stream(subject, { connections: 1, requests: [{ method: "GET", path }] });
  return [one("/v1/status"), one(`/v1/secrets/${pathOf(0)}`)];
}

async function stormRound({ bench, subject, probes, stormer, hog }: Scene, idle: number): Promise<Round> {
  const { seconds } = bench.options;
  hog.go();
  const busy = await measure(bench.loader, subject, probes, seconds);
  hog.halt();
  const unlocks = sendStorm(stormer, subject, seconds + 2); // longer than the probes
  await sleep(500); // the queue is full
  await ask(subject.child, "watch-delay");
  const stormy = await measure(bench.loader, subject, probes, seconds);
  const { p99: loopDelay } = (await ask(subject.child, "delay")) as { p99: number };
  const { streams } = await unlocks;
  await settle(subject); // what still waits in the queue is derived, though nobody waits for it
  const failed = [...busy.streams, ...stormy.streams, ...streams].reduce((sum, report) => sum + report.failed, 0);
  const [busyStatus, busyGet] = busy.streams.map(({ p99 }) => p99);
  const [status, get] = stormy.streams.map(({ p99 }) => p99);
  const memory = stormy.usage.peak - idle;
  return { status, get, busyStatus, busyGet, loopDelay, memory, unlocks: streams[0]?.perSecond, failed };
}

function sendStorm(stormer: Loader, subject: StrongroomSubject, seconds: number): Promise<LoadReport> {
  return sendLoad(stormer, subject, { streams: [stream(subject, unlocking)], warmMs: 0, seconds });
}

type Hog = { go(): void; halt(): void };

async function startHog(): Promise<Hog> {
  const { child } = await startProgram("hog.js");
  child.kill("SIGSTOP");
  later(() => void child.kill("SIGCONT"));
  return { go: () => void child.kill("SIGCONT"), halt: () => void child.kill("SIGSTOP") };
}

function outcome(rounds: readonly Round[]): Outcome {
  const all = (figure: keyof Round) => rounds.map((round) => round[figure] ?? Number.NaN);
  const found = (what: string, figure: keyof Round, unit: Finding["unit"], most?: number): Finding => {
    return { what, value: spreadOf(all(figure)), unit, ...(most !== undefined && { target: { atMost: most } }) };
  };
  const against = (what: string, figure: keyof Round, busy: keyof Round): Finding => {
    return { what, value: spreadOf(ratios(all(figure), all(busy))), unit: "×", target: { atMost: 2 } };
  };
  const findings = [
    found("status p99 in the storm", "status", "ms"),
    found("status p99 beside a busy process", "busyStatus", "ms"),
    against("status p99, of that beside a busy process", "status", "busyStatus"),
    found("get p99 in the storm", "get", "ms"),
    found("get p99 beside a busy process", "busyGet", "ms"),
    against("get p99, of that beside a busy process", "get", "busyGet"),
    found("requests that failed in a round", "failed", "", 0),
    found("event loop's delay, p99", "loopDelay", "ms", 20),
    found("peak memory above idle", "memory", "MiB", 200),
    found("unlocks a second", "unlocks", ""),
  ];
  return { scenario: "unlock storm, 16 clients", series: [], findings };
}

const quietSeconds = 4;
const stormSeconds = 8;

/** The same probes through a quiet time and then the storm; and, to compare, a busy process in its stead. */
async function quietThenStorm({ bench, subject, probes, stormer, hog }: Scene): Promise<Timelines> {
  const load = { streams: probes, warmMs: 500, seconds: quietSeconds + stormSeconds };
  const run = async (disturb: () => Promise<unknown>): Promise<readonly (readonly number[])[]> => {
    const probing = sendLoad(bench.loader, subject, load);
    await sleep(500 + quietSeconds * 1000);
    const disturbance = disturb();
    const { streams } = await probing;
    await disturbance;
    return streams.map(({ timeline }) => timeline);
  };
  const busy = await run(async () => hog.go());
  hog.halt();
  const stormy = await run(() => sendStorm(stormer, subject, stormSeconds));
  await settle(subject);
  return {
    status: stormy[0] ?? [],
    get: stormy[1] ?? [],
    busyStatus: busy[0] ?? [],
    busyGet: busy[1] ?? [],
    quietSeconds,
  };
}
