/**
 * Scenario of the unlock storm: 16 clients unlock an unlocked vault without a pause, while status and get are asked for
 * at a fixed rate. The baseline is the same beside a process that keeps one CPU busy, which any derivation does.
 */
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { later } from "../../test/support/clean-up.js";
import { passphrase } from "../../test/support/server.js";
import { mustInit, mustPut } from "../../test/support/test-client.js";
import { pathOf, valueBytes } from "../filled-vaults.js";
import { pacedStream, sendLoad, sendPaced, settle, stream } from "../measure.js";
import type { Finding, Outcome } from "../outcome.js";
import type { LoadReport } from "../programs/load.js";
import type { Latencies, PacedReport, PacedStream } from "../programs/paced-load.js";
import type { Bench, Scenario } from "../scenario.js";
import { ratios, spreadOf } from "../statistics.js";
import { ask, delayProbe, type StrongroomSubject, startProgram } from "../subjects.js";
import { memoryOf } from "../usage.js";
import { beyondTheQueue } from "./overflow.js";
import { drawStorm, type Timelines } from "./storm-chart.js";

const unlocking = {
  connections: 16,
  requests: [{ method: "POST" as const, path: "/v1/unlock", body: JSON.stringify({ passphrase }) }],
};

/** Of status and of get, each: one every 5 ms. */
const perSecond = 200;
const probeConnections = 8;

/** A p99.9 needs a thousand requests. */
const leastSeconds = 5;

/** Milliseconds, in one thread of the server. */
type Delays = { readonly p99: number; readonly p999: number; readonly max: number };

/** Times in milliseconds, memory in MiB. */
type Round = {
  readonly busy: readonly PacedReport[];
  readonly stormy: readonly PacedReport[];
  readonly delay: { readonly main: Delays; readonly worker: Delays };
  readonly memory: number;
  readonly unlocks: number;
  readonly failed: number;
};

export const storm: Scenario = {
  name: "storm",
  about: "16 clients unlocking without a pause, beside status and get at a fixed rate",
  vaults: () => [],
  async run(bench) {
    const subject = await startCostly(bench);
    const stage = { subject, probes: probesOf(subject), hog: await startHog(), bench };
    await watchDelay(subject, () => sleep(500)); // starts the delay probe's thread before memory is read
    const idle = memoryOf(subject.pid).now;
    const rounds: Round[] = [];
    for (let round = -1; round < bench.options.rounds; round++) {
      const one = await stormRound(stage, idle);
      if (round >= 0) rounds.push(one);
    }
    if (bench.options.chart !== null) writeFileSync(bench.options.chart, drawStorm(await quietThenStorm(stage)));
    return [outcome(rounds), await beyondTheQueue(subject)];
  },
};

type Stage = {
  readonly bench: Bench;
  readonly subject: StrongroomSubject;
  readonly probes: readonly PacedStream[];
  readonly hog: Hog;
};

/** A vault whose derivations cost what they cost by default. */
async function startCostly(bench: Bench): Promise<StrongroomSubject> {
  const environment = { STRONGROOM_SCRYPT_LOG_N: "17" };
  const subject = await bench.freshStrongroom({ environment, nodeFlags: delayProbe });
  await mustInit(subject.server);
  await mustPut(subject.server, pathOf(0), "v".repeat(valueBytes));
  return subject;
}

function probesOf(subject: StrongroomSubject): PacedStream[] {
  const of = (path: string) =>
    pacedStream(subject, { connections: probeConnections, requests: [{ method: "GET", path }] }, perSecond);
  return [of("/v1/status"), of(`/v1/secrets/${pathOf(0)}`)];
}

async function stormRound({ bench, subject, probes, hog }: Stage, idle: number): Promise<Round> {
  const load = { paced: probes, seconds: Math.max(leastSeconds, bench.options.seconds) };
  hog.go();
  const { paced: busy } = await sendPaced(bench.pacer, subject, load);
  hog.halt();
  const unlocks = sendStorm(bench, subject, load.seconds + 2); // longer than the probes
  await sleep(500); // the queue is full
  const { value, delay } = await watchDelay(subject, () => sendPaced(bench.pacer, subject, load));
  const { streams } = await unlocks;
  await settle(subject); // derivations still in the queue are done although their clients have gone
  const { paced: stormy, usage } = value;
  const failed = [...busy, ...stormy, ...streams].reduce((sum, report) => sum + report.failed, 0);
  return { busy, stormy, delay, memory: usage.peak - idle, unlocks: streams[0]?.perSecond ?? Number.NaN, failed };
}

async function watchDelay<T>(
  { child }: StrongroomSubject,
  work: () => Promise<T>,
): Promise<{ value: T; delay: Round["delay"] }> {
  await ask(child, "watch-delay");
  const value = await work();
  return { value, delay: (await ask(child, "delay")) as Round["delay"] };
}

function sendStorm({ loader }: Bench, subject: StrongroomSubject, seconds: number): Promise<LoadReport> {
  return sendLoad(loader, subject, { streams: [stream(subject, unlocking)], warmMs: 0, seconds });
}

type Hog = { go(): void; halt(): void };

async function startHog(): Promise<Hog> {
  const { child } = await startProgram("hog.js");
  child.kill("SIGSTOP");
  later(() => void child.kill("SIGCONT"));
  return { go: () => void child.kill("SIGCONT"), halt: () => void child.kill("SIGSTOP") };
}

const figures = { p50: "p50", p99: "p99", p999: "p99.9", max: "max" } as const;
const targets: { readonly [F in keyof Latencies]?: number } = { p99: 2, max: 3 };

function outcome(rounds: readonly Round[]): Outcome {
  const found = (what: string, unit: Finding["unit"], figure: (round: Round) => number, most?: number): Finding => {
    const value = spreadOf(rounds.map(figure));
    return { what, value, unit, ...(most !== undefined && { target: { atMost: most } }) };
  };
  const findings = [
    ...latencies(rounds, "status", 0),
    ...latencies(rounds, "get", 1),
    found("failed requests in a round", "", ({ failed }) => failed, 0),
    found("event-loop delay of the main thread, p99.9", "ms", ({ delay }) => delay.main.p999, 10),
    found("event-loop delay of the main thread, max", "ms", ({ delay }) => delay.main.max),
    found("event-loop delay of the key worker, p99.9", "ms", ({ delay }) => delay.worker.p999, 10),
    found("event-loop delay of the key worker, max", "ms", ({ delay }) => delay.worker.max),
    found("peak memory above idle", "MiB", ({ memory }) => memory, 200),
    found("unlocks a second", "", ({ unlocks }) => unlocks),
    found("lateness of the load itself, p99", "ms", ({ stormy }) => stormy[0]?.lateness ?? Number.NaN),
  ];
  return { scenario: `unlock storm, 16 clients; status and get ${perSecond} a second each`, series: [], findings };
}

function latencies(rounds: readonly Round[], name: string, stream: number): Finding[] {
  const all = (part: "busy" | "stormy", figure: keyof Latencies) =>
    rounds.map((round) => round[part][stream]?.[figure] ?? Number.NaN);
  return (Object.keys(figures) as (keyof Latencies)[]).flatMap((figure): Finding[] => {
    const what = `${name} ${figures[figure]}`;
    const [stormy, busy] = [all("stormy", figure), all("busy", figure)];
    const most = targets[figure];
    return [
      { what: `${what} in the storm`, value: spreadOf(stormy), unit: "ms" },
      { what: `${what} beside a busy process`, value: spreadOf(busy), unit: "ms" },
      {
        ...{ what: `${what}, of that beside a busy process`, value: spreadOf(ratios(stormy, busy)), unit: "×" },
        ...(most !== undefined && { target: { atMost: most } }),
      },
    ];
  });
}

const quietSeconds = 4;
const stormSeconds = 8;

/** The same probes through a quiet time and then the storm; and once more with a busy process instead. */
async function quietThenStorm({ bench, subject, probes, hog }: Stage): Promise<Timelines> {
  const load = { paced: probes, seconds: quietSeconds + stormSeconds };
  const run = async (disturb: () => Promise<unknown>): Promise<readonly (readonly number[])[]> => {
    let disturbance: Promise<unknown> = Promise.resolve();
    const { paced } = await sendPaced(bench.pacer, subject, load, () => {
      disturbance = sleep(quietSeconds * 1000).then(disturb);
    });
    await disturbance;
    return paced.map(({ timeline }) => timeline);
  };
  const busy = await run(async () => hog.go());
  hog.halt();
  const stormy = await run(() => sendStorm(bench, subject, stormSeconds));
  await settle(subject);
  const [[status = [], get = []], [busyStatus = [], busyGet = []]] = [stormy, busy];
  return { status, get, busyStatus, busyGet, quietSeconds };
}
