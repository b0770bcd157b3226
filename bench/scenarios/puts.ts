/** Scenarios of writing: puts against a bare loop of durable replaces, and puts among gets. */
import { alternate, contender } from "../measure.js";
import { againstEach, compare, type Outcome, type Target, throughput } from "../outcome.js";
import type { Bench, Scenario } from "../scenario.js";
import { startDurableLoop, startDurableServer } from "../subjects.js";
import { mixed, put, putLarge, type Workload } from "../workloads.js";
import { againstBare } from "./gets.js";

export const small: Scenario = {
  name: "put",
  about: "puts of 1 KiB on 16 connections, against a bare loop of durable replaces",
  vaults: () => [put.secrets],
  run: (bench) => againstLoop(bench, put, 1024, "put, 1 KiB, 16 connections", { atLeast: 0.7 }),
};

export const large: Scenario = {
  name: "put-large",
  about: "puts of 1 MiB on 4 connections, against the same loop",
  vaults: () => [putLarge.secrets],
  run: (bench) => againstLoop(bench, putLarge, 2 ** 20, "put, 1 MiB, 4 connections"),
};

export const amongGets: Scenario = {
  name: "mixed",
  about: "90 gets to 10 puts of 200 bytes on 64 connections",
  vaults: () => [mixed.secrets],
  async run(bench) {
    const strongroom = await bench.strongroom(mixed.secrets);
    return [await againstBare(bench, strongroom, mixed, "mixed, 90 gets to 10 puts, 64 connections")];
  },
};

/** A third server only stores each body: it shows how much HTTPS alone takes from the disk's throughput. */
async function againstLoop(
  bench: Bench,
  workload: Workload,
  bytes: number,
  scenario: string,
  target?: Target,
): Promise<Outcome[]> {
  const strongroom = await bench.strongroom(workload.secrets);
  const loop = await startDurableLoop(bytes);
  const server = await startDurableServer(strongroom);
  const series = await alternate(
    [
      contender(bench, strongroom, workload),
      contender({ loader: loop.child, pacer: bench.pacer }, loop, { connections: workload.connections, requests: [] }),
      contender(bench, server, workload),
    ],
    bench.options,
  );
  const [, loops, stores] = series;
  const floor = compare("throughput of the server that only stores, of the loop's", stores, loops, throughput);
  return [{ scenario, series, findings: [...againstEach(series, [target]), floor] }];
}
