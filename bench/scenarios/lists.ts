/** Scenarios of listing: a hundred of many, all of many, and gets while all are listed. */
import { alternate, contender, pacedStream, sendLoad, sendPaced, settle, stream } from "../measure.js";
import { compare, cpu, type Finding, type Outcome, p50 } from "../outcome.js";
import type { Bench, Scenario } from "../scenario.js";
import { spreadOf } from "../statistics.js";
import { type StrongroomSubject, startFixed } from "../subjects.js";
import { getOn, listOfAll, listOfHundred, manySecrets } from "../workloads.js";
import { replyTo } from "./replies.js";

const fewerSecrets = manySecrets / 10;

export const hundred: Scenario = {
  name: "list-100",
  about: "a list of 100 among 10,000 and among 100,000",
  vaults: () => [fewerSecrets, manySecrets],
  async run(bench) {
    const many = await bench.strongroom(manySecrets, { name: "strongroom, 100,000" });
    const fewer = await bench.strongroom(fewerSecrets, { name: "strongroom, 10,000" });
    const workload = listOfHundred(manySecrets);
    const bare = await startFixed("bare", await replyTo(many, workload), many);
    const series = await alternate(
      [many, fewer, bare].map((subject) => contender(bench, subject, workload)),
      bench.options,
    );
    const [ofMany, ofFewer, base] = series;
    const findings = [
      compare("p50, of that among 10,000", ofMany, ofFewer, p50, { atMost: 1.5 }),
      compare("CPU a request, of that among 10,000", ofMany, ofFewer, cpu),
      compare("p50, of the bare server's", ofMany, base, p50),
    ];
    return [{ scenario: "list, 100 among 100,000, 1 connection", series, findings }];
  },
};

export const all: Scenario = {
  name: "list-all",
  about: "a list of all 100,000, against JSON.stringify of the same; and gets beside it",
  vaults: () => [manySecrets],
  async run(bench) {
    const strongroom = await bench.strongroom(manySecrets);
    const stringify = await startFixed("stringify", await replyTo(strongroom, listOfAll), strongroom);
    const series = await alternate(
      [strongroom, stringify].map((subject) => contender(bench, subject, listOfAll)),
      bench.options,
    );
    const [ours, base] = series;
    const findings = [
      compare("p50, of JSON.stringify's", ours, base, p50, { atMost: 10 }),
      compare("CPU a list, of JSON.stringify's", ours, base, cpu),
    ];
    const whole = { scenario: "list, all 100,000, 1 connection", series, findings };
    return [whole, await getsBeside(bench, strongroom)];
  },
};

const getsPerSecond = 200;

/** Another process receives the list, so that its bytes do not delay the timing of the gets. */
async function getsBeside(bench: Bench, strongroom: StrongroomSubject): Promise<Outcome> {
  const { rounds, seconds } = bench.options;
  const load = { paced: [pacedStream(strongroom, getOn(4), getsPerSecond)], seconds };
  const lists = [stream(strongroom, listOfAll)];
  const slowest = { alone: [] as number[], beside: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    const alone = await sendPaced(bench.pacer, strongroom, load);
    const listing = sendLoad(bench.loader, strongroom, { streams: lists, warmMs: 0, seconds: seconds + 1 });
    const beside = await sendPaced(bench.pacer, strongroom, load);
    await listing;
    await settle(strongroom);
    slowest.alone.push(alone.paced[0]?.p99 ?? Number.NaN);
    slowest.beside.push(beside.paced[0]?.p99 ?? Number.NaN);
  }
  const delay = slowest.beside.map((ms, i) => ms - (slowest.alone[i] ?? Number.NaN));
  const findings: Finding[] = [
    { what: "p99 alone", value: spreadOf(slowest.alone), unit: "ms" },
    { what: "p99 while all 100,000 are listed", value: spreadOf(slowest.beside), unit: "ms" },
    { what: "delay at p99 by the list", value: spreadOf(delay), unit: "ms", target: { atMost: 10 } },
  ];
  return { scenario: `get beside a list of all 100,000, ${getsPerSecond} a second`, series: [], findings };
}
