/** Crash of the key worker from outside, as by a fatal error in its thread. */
import type { Worker } from "node:worker_threads";

const alive = new Set<Worker>();

process.on("worker", (worker: Worker) => {
  alive.add(worker);
  worker.once("exit", () => alive.delete(worker));
});

/** How many threads of this process have not ended. */
export function threadsAlive(): number {
  return alive.size;
}

/** The thread that was started last; of a server with a broker, the broker's. */
export function lastThread(): Worker {
  const last = [...alive].at(-1);
  if (last === undefined) throw new Error("this process has no other thread");
  return last;
}

/** Ends every thread of this process. */
export async function crashKeyWorkers(): Promise<void> {
  await Promise.all([...alive].map((worker) => worker.terminate()));
}
