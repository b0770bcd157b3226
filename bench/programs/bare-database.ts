/** The database's client alone, in several lanes, with the statement of a get or a put: what every server on it must pay. */
import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import { statements } from "../../src/storage/postgres/statements.js";
import { watch } from "../usage.js";
import { mustHave } from "./listen.js";
import type { Load, LoadReport } from "./load.js";

const pool = new Pool({ connectionString: mustHave("BENCH_DATABASE"), max: Number(mustHave("BENCH_POOL")) });
const isPut = mustHave("BENCH_STATEMENT") === "put";
const paths = mustHave("BENCH_PATHS").split(",");
const blob = randomBytes(1200);
let epoch = "";

process.on("message", async (order: Load) => {
  if (!("streams" in order)) return;
  process.send?.(await loop(order));
});
process.send?.({ ready: true });

async function loop({ watched, streams: [stream], warmMs, seconds }: Load): Promise<LoadReport> {
  epoch = String((await pool.query(statements.epoch.text)).rows[0]?.epoch ?? randomUUID());
  const state = { count: 0, running: true, counting: false };
  const lane = async (number: number) => {
    for (let i = number; state.running; i += 7) {
      await ask(paths[i % paths.length] ?? "");
      if (state.counting) state.count++;
    }
  };
  const lanes = Array.from({ length: stream?.connections ?? 0 }, (_, i) => lane(i));
  await sleep(warmMs);
  state.counting = true;
  const used = watch(watched);
  await sleep(seconds * 1000);
  const usage = used();
  state.counting = false;
  state.running = false;
  await Promise.all(lanes);
  return { streams: [{ count: state.count, perSecond: state.count / usage.seconds, failed: 0 }], usage };
}

async function ask(path: string): Promise<void> {
  const { rows } = isPut
    ? await pool.query({ ...statements.commitOne, values: [epoch, `bare/${path}`, blob, null], rowMode: "array" })
    : await pool.query({ ...statements.read, values: [path], rowMode: "array" });
  if (rows.length !== 1) throw new Error("the statement has no row");
}
