/**
 * Orders that tests give inside a server process: crash its key worker, take heap snapshots, count its handles and bytes.
 * Loaded before the program with --require, which costs less than --import; orders come over the IPC channel.
 */
import type { Worker } from "node:worker_threads";

export type Order =
  | { readonly do: "crash" }
  | { readonly do: "measure" }
  | { readonly do: "snapshot"; readonly main: string; readonly worker: string };

/** The response to every order. */
export type Obeyed = { readonly failed: string | null; readonly holdings: Holdings | null };

/** Resources of the front end: handles that keep its event loop alive, and bytes in its heap and outside it. */
export type Holdings = { readonly handles: number; readonly heapBytes: number; readonly externalBytes: number };

const workers = new Set<Worker>();

process.on("worker", (worker: Worker) => {
  workers.add(worker);
  worker.once("exit", () => workers.delete(worker));
});

process.on("message", (order: Order) => {
  obey(order).then(
    (holdings) => process.send?.({ failed: null, holdings } satisfies Obeyed),
    (error: unknown) => process.send?.({ failed: String(error), holdings: null } satisfies Obeyed),
  );
});

process.channel?.unref(); // a stopped server must not wait for orders

async function obey(order: Order): Promise<Holdings | null> {
  switch (order.do) {
    case "crash":
      await Promise.all([...workers].map((worker) => worker.terminate()));
      return null;
    case "measure":
      return measure();
    case "snapshot": {
      const { createWriteStream } = await import("node:fs");
      const { pipeline } = await import("node:stream/promises");
      const { getHeapSnapshot } = await import("node:v8");
      await pipeline(getHeapSnapshot(), createWriteStream(order.main));
      for (const worker of workers) await pipeline(await worker.getHeapSnapshot(), createWriteStream(order.worker));
      return null;
    }
  }
}

function measure(): Holdings {
  const { heapUsed, external } = process.memoryUsage();
  return { handles: process.getActiveResourcesInfo().length, heapBytes: heapUsed, externalBytes: external };
}
