/** Scenario of many keep-alive connections: throughput, latency and memory beside the bare server. */
import { cleanUpMark, cleanUpTo } from "../../test/support/clean-up.js";
import { mustUnlock } from "../../test/support/test-client.js";
import { pacedStream, sendLoad, sendPaced, settle, stream } from "../measure.js";
import type { Finding, Outcome } from "../outcome.js";
import type { Bench, Scenario } from "../scenario.js";
import { ratios, spreadOf } from "../statistics.js";
import { type Subject, startFixed, startWide } from "../subjects.js";
import { memoryOf } from "../usage.js";
import { get, getOn } from "../workloads.js";
import { replyTo } from "./replies.js";

const counts = [256, 1_000, 5_000] as const;

/** A TLS handshake takes the server about 2 ms. */
const handshakeMs = 4;

/** Time in milliseconds, memory in KiB. */
type Sample = {
  readonly perSecond: number;
  readonly p99: number;
  readonly memory: number;
  readonly failed: number;
};

export const manyConnections: Scenario = {
  name: "many-connections",
  about: "gets on 256, 1,000 and 5,000 keep-alive connections, against the bare server",
  vaults: () => [get.secrets],
  async run(bench) {
    const outcomes: Outcome[] = [];
    for (const count of counts) outcomes.push(await onMany(bench, count));
    return outcomes;
  },
};

async function onMany(bench: Bench, count: number): Promise<Outcome> {
  const ours: Sample[] = [];
  const bare: Sample[] = [];
  for (let round = 0; round < bench.options.rounds; round++) {
    const mark = cleanUpMark();
    const strongroom = await startWide(bench.home(get.secrets), 2 * count);
    await mustUnlock(strongroom.server);
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
  const full = { streams: [stream(subject, requests)], warmMs: 500 + count * handshakeMs, seconds: options.seconds };
  const { streams } = await sendLoad(loader, subject, full);
  await settle(subject);
  const failed = (paced[0]?.failed ?? 0) + (streams[0]?.failed ?? 0);
  const memory = ((open - before) * 1024) / count;
  return { perSecond: streams[0]?.perSecond ?? Number.NaN, p99: paced[0]?.p99 ?? Number.NaN, memory, failed };
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
