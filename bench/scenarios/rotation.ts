/** Scenario of a rotation of the master key: gets at a fixed rate before it and during it, and how fast it goes on. */
import { setTimeout as sleep } from "node:timers/promises";
import { mustRotate } from "../../test/support/key-requests.js";
import { mustStatus } from "../../test/support/test-client.js";
import { pacedStream, sendPaced } from "../measure.js";
import type { Finding } from "../outcome.js";
import type { Scenario } from "../scenario.js";
import { ratios, spreadOf } from "../statistics.js";
import type { StrongroomSubject } from "../subjects.js";
import { getOn, manySecrets } from "../workloads.js";

const getsPerSecond = 200;

/** A p99 needs a thousand requests. */
const leastSeconds = 5;

type Round = {
  readonly alone: number;
  readonly during: number;
  readonly failed: number;
  /** Milliseconds for each secret, beside the gets and without them. */
  readonly besideGets: number;
  readonly idle: number;
};

export const rotation: Scenario = {
  name: "rotation",
  about: "a rotation of the master key of 100,000 secrets, beside gets at a fixed rate",
  vaults: () => [manySecrets],
  async run(bench) {
    const subject = await bench.strongroom(manySecrets);
    const load = {
      paced: [pacedStream(subject, getOn(4), getsPerSecond)],
      seconds: Math.max(leastSeconds, bench.options.seconds),
    };
    const gets = async () => (await sendPaced(bench.pacer, subject, load)).paced[0];
    await gets(); // warms the caches
    const alone = [];
    for (let round = 0; round < bench.options.rounds; round++) alone.push(await gets());
    await mustRotate(subject.server);
    const rounds: Round[] = [];
    for (const before of alone) {
      const paced = await pace(subject, gets);
      const idle = await pace(subject, () => sleep(1_000));
      const { p99 = Number.NaN, failed = Number.NaN } = paced.value ?? {};
      rounds.push({ alone: before?.p99 ?? Number.NaN, during: p99, failed, besideGets: paced.ms, idle: idle.ms });
    }
    const scenario = `rotation of 100,000 secrets; get ${getsPerSecond} a second`;
    return [{ scenario, series: [], findings: findingsOf(rounds) }];
  },
};

/** Milliseconds of the work's time for each secret that the rotation has sealed anew meanwhile. */
async function pace<T>(subject: StrongroomSubject, work: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const [before, began] = [await doneOf(subject), performance.now()];
  const value = await work();
  const [after, ended] = [await doneOf(subject), performance.now()];
  return { value, ms: (ended - began) / (after - before) };
}

async function doneOf({ server }: StrongroomSubject): Promise<number> {
  const { rotation: progress } = (await mustStatus(server)) as { rotation?: { done: number } };
  if (progress === undefined) throw new Error("the rotation ended before the measurement: use fewer rounds");
  return progress.done;
}

function findingsOf(rounds: readonly Round[]): Finding[] {
  const [alone, during] = [rounds.map((round) => round.alone), rounds.map((round) => round.during)];
  return [
    { what: "get p99 alone", value: spreadOf(alone), unit: "ms" },
    { what: "get p99 during the rotation", value: spreadOf(during), unit: "ms" },
    { what: "get p99, of that alone", value: spreadOf(ratios(during, alone)), unit: "×", target: { atMost: 2 } },
    {
      what: "failed requests in a round",
      value: spreadOf(rounds.map(({ failed }) => failed)),
      unit: "",
      target: { atMost: 0 },
    },
    { what: "time for a secret beside the gets", value: spreadOf(rounds.map((round) => round.besideGets)), unit: "ms" },
    { what: "time for a secret without requests", value: spreadOf(rounds.map((round) => round.idle)), unit: "ms" },
  ];
}
