/**
 * Owns what tests do inside a server process, which the program itself has no door for: ending its key worker as a fatal
 * error would, and taking heap snapshots. Loaded before the program with --import, spoken to over the parent's channel.
 */
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { getHeapSnapshot } from "node:v8";
import type { Worker } from "node:worker_threads";

export type Order =
  | { readonly do: "crash" }
  | { readonly do: "snapshot"; readonly main: string; readonly worker: string };

const workers = new Set<Worker>();

process.on("worker", (worker: Worker) => {
  workers.add(worker);
  worker.once("exit", () => workers.delete(worker));
});

process.on("message", (order: Order) => {
  obey(order).then(
    () => process.send?.("done"),
    (error: unknown) => process.send?.(String(error)),
  );
});

process.channel?.unref(); // a server that has ended must not wait for orders

async function obey(order: Order): Promise<void> {
  if (order.do === "crash") {
    await Promise.all([...workers].map((worker) => worker.terminate()));
    return;
  }
  await pipeline(getHeapSnapshot(), createWriteStream(order.main));
  for (const worker of workers) await pipeline(await worker.getHeapSnapshot(), createWriteStream(order.worker));
}
