/** A bare loop of durable replaces in several lanes: the minimum cost of an acknowledged write on this disk. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { createHistogram } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { watch } from "../usage.js";
import { replaceDurably } from "./durable-replace.js";
import { mustHave } from "./listen.js";
import type { Load, LoadReport } from "./load.js";

const directory = mustHave("BENCH_DIRECTORY");
const content = randomBytes(Number(mustHave("BENCH_BYTES")));
const filesPerLane = 16;

process.on("message", async (order: Load) => {
  if (!("streams" in order)) return;
  process.send?.(await loop(order));
});
process.send?.({ ready: true });

async function loop({ watched, streams: [stream], warmMs, seconds }: Load): Promise<LoadReport> {
  const latencies = createHistogram();
  let running = true;
  let counting = false;
  const lane = async (number: number) => {
    for (let i = 0; running; i++) {
      const began = performance.now();
      await replaceDurably(join(directory, `${number}-${i % filesPerLane}`), content);
      if (counting) latencies.record(Math.max(1, Math.round((performance.now() - began) * 1000)));
    }
  };
  const lanes = Array.from({ length: stream?.connections ?? 0 }, (_, i) => lane(i));
  await sleep(warmMs);
  counting = true;
  const used = watch(watched);
  await sleep(seconds * 1000);
  const usage = used();
  counting = false;
  running = false;
  await Promise.all(lanes);
  const at = (percent: number) => latencies.percentile(percent) / 1000;
  const { count } = latencies;
  const perSecond = count / usage.seconds;
  return { streams: [{ count, perSecond, p50: at(50), p99: at(99), p999: at(99.9), failed: 0, timeline: [] }], usage };
}
