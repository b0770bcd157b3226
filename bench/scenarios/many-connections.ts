/** Scenarios of many keep-alive connections: throughput, latency and memory beside the bare server. */
import { cleanUpMark, cleanUpTo } from "../../test/support/clean-up.js";
import { pacedStream, sendLoad, sendPaced, settle, stream } from "../measure.js";
import type { Finding, Outcome } from "../outcome.js";
import type { Bench, Scenario } from "../scenario.js";
import { ratios, spreadOf } from "../statistics.js";
import { type Subject, startFixed } from "../subjects.js";
import { memoryOf } from "../usage.js";
import { get, getOn } from "../workloads.js";
import { replyTo } from "./replies.js";

/** Connections are opened in groups: 250 TLS handshakes take a server half a second. */
const groupSize = 250;
const rampMs = 1_000;

/** Time in milliseconds, memory in KiB. */
type Sample = {
  readonly perSecond: number;
  readonly p99: number;
  readonly memory: number;
  readonly failed: number;
};

export const manyConnections: readonly Scenario[] = [256, 1_000, 5_000].map((count) => ({
  name: `many-${count}`,
  about: `gets on ${count.toLocaleString("en")} keep-alive connections, against the bare server`,
  vaults: () => [get.secrets],
  run: async (bench) => [await onMany(bench, count)],
}));

async function onMany(bench: Bench, count: number): Promise<Outcome> {
  const ours: Sample[] = [];
  const bare: Sample[] = [];
  for (let round = 0; round < bench.options.rounds; round++) {
    const mark = cleanUpMark();
    const environment = { STRONGROOM_MAX_CONNECTIONS: String(8 * count) }; // a quarter is for connections without a token yet
    const strongroom = await bench.strongroom(get.secrets, { environment });
    const base = await startFixed("bare", await replyTo(strongroom, get), strongroom);
    ours.push(await sampleOf(bench, strongroom, count));
    bare.push(await sampleOf(bench, base, count));
    await cleanUpTo(mark);
  }
  return { scenario: `get, ${count.toLocaleString("en")} connections`, series: [], findings: findings(ours, bare) };
}

/** In a fresh process, which has served no more than a few connections: freed memory stays resident. */
async function sampleOf({ loader, pacer, options }: Bench, subject: Subject, count: number): Promise<Sample> {
  const requests = getOn(count);
  const before = memoryOf(subject.pid).now;
  let open = before;
  const load = { paced: [pacedStream(subject, requests, get.perSecond)], seconds: options.seconds };
  const { paced } = await sendPaced(pacer, subject, load, () => {
    open = memoryOf(subject.pid).now;
  });
  await settle(subject);
  const streams = groupsOf(count).map((connections) => stream(subject, getOn(connections)));
  const full = await sendLoad(loader, subject, { streams, rampMs, warmMs: 500, seconds: options.seconds });
  await settle(subject);
  const sum = (figure: "perSecond" | "failed") => full.streams.reduce((all, report) => all + report[figure], 0);
  const memory = ((open - before) * 1024) / count;
  const { p99, failed } = paced[0] ?? { p99: Number.NaN, failed: 1 };
  return { perSecond: sum("perSecond"), p99, memory, failed: failed + sum("failed") };
}

function groupsOf(count: number): number[] {
  const whole = Array.from({ length: Math.floor(count / groupSize) }, () => groupSize);
  return count % groupSize === 0 ? whole : [...whole, count % groupSize];
}

function findings(ours: readonly Sample[], bare: readonly Sample[]): Finding[] {
  const each = (what: string, figure: keyof Sample, unit: Finding["unit"], target: Finding["target"]): Finding[] => {
    const [mine, base] = [ours.map((one) => one[figure]), bare.map((one) => one[figure])];
    return [
      { what, value: spreadOf(mine), unit },
      { what: `${what}, bare server`, value: spreadOf(base), unit },
      {
        what: `${what}, of the bare server's`,
        value: spreadOf(ratios(mine, base)),
        unit: "×",
        ...(target && { target }),
      },
    ];
  };
  const failures = spreadOf(ours.map(({ failed }) => failed));
  return [
    ...each("requests a second", "perSecond", "", undefined),
    ...each(`p99 at ${get.perSecond} requests a second`, "p99", "ms", { atMost: 2 }),
    ...each("memory a connection", "memory", "KiB", { atMost: 2 }),
    { what: "failed requests in a round", value: failures, unit: "", target: { atMost: 0 } },
  ];
}
