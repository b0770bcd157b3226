/** A bare loop of durable replaces in several lanes: the minimum cost of an acknowledged write on this disk. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
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
  let count = 0;
  let running = true;
  let counting = false;
  const lane = async (number: number) => {
    for (let i = 0; running; i++) {
      await replaceDurably(join(directory, `${number}-${i % filesPerLane}`), content);
      if (counting) count++;
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
  return { streams: [{ count, perSecond: count / usage.seconds, failed: 0 }], usage };
}
