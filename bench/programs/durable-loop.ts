/** A bare loop of durable replaces in several lanes: the minimum cost of an acknowledged write on this disk. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { watch } from "../process-usage.js";
import { replaceDurably } from "./durable-replace.js";
import { mustHave } from "./listen.js";
import type { Load, LoadReport } from "./load.js";

const directory = mustHave("BENCH_DIRECTORY");
const content = randomBytes(Number(mustHave("BENCH_BYTES")));
const filesPerLane = 16;

process.on("message", async (order: Load | { ask: string }) => {
  if ("seconds" in order) process.send?.(await loop(order));
});
process.send?.({ ready: true });

async function loop({ watched, connections, seconds }: Load): Promise<LoadReport> {
  let count = 0;
  let running = true;
  const lane = async (number: number) => {
    for (let i = 0; running; i++, count++) {
      await replaceDurably(join(directory, `${number}-${i % filesPerLane}`), content);
    }
  };
  const lanes = Array.from({ length: connections }, (_, i) => lane(i));
  await sleep(500);
  const before = count;
  const used = watch(watched);
  await sleep(seconds * 1000);
  const usage = used();
  const after = count;
  running = false;
  await Promise.all(lanes);
  return { count: after - before, perSecond: (after - before) / usage.seconds, failed: 0, usage };
}
