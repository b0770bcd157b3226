/** Crash of the key worker from outside, as by a fatal error in its thread. */
import { MessagePort, type Worker } from "node:worker_threads";

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

/** Ends every thread of this process instead of sending the next message to a key worker, unless the returned function is called. */
export function crashWhenAsked(): () => void {
  const { postMessage } = MessagePort.prototype;
  const restore = () => {
    MessagePort.prototype.postMessage = postMessage;
  };
  MessagePort.prototype.postMessage = () => {
    restore();
    crashKeyWorkers().catch(() => {});
  };
  return restore;
}
