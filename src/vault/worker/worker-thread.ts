/**
 * One thread of the key worker. piscina starts, watches and ends it. Messages use a port of their own: as piscina tasks
 * they took the main thread 13 to 35 µs more for each get.
 */
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { Piscina } from "piscina";
import type {
  Answer,
  Call,
  Reply,
  Request,
  SentLocks,
  WorkerSettings,
  WorkerStart,
} from "../../../workers/protocol.js";
import { keyWorkerFile } from "../../program-files.js";

type Waiting = {
  readonly resolve: (replies: readonly Reply[]) => void;
  readonly reject: (error: unknown) => void;
};

export class WorkerThread {
  readonly #pool: Piscina;
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, Waiting>();
  readonly #sentLocks: SentLocks = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  #calls = 0;
  #answered = false;
  #ended = false;

  /** `ended` is called when the thread has crashed. */
  constructor(settings: WorkerSettings, ended: (thread: WorkerThread) => void) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1.on("message", (answer: Answer) => this.#take(answer));
    this.#pool = startPool();
    this.#pool.on("error", () => {}); // workerDestroy follows in any case
    this.#pool.on("workerDestroy", () => {
      if (this.#ended) return;
      void this.end(new Error("the key worker's thread has crashed"));
      ended(this);
    });
    const start: WorkerStart<MessagePort> = { port: port2, settings, sentLocks: this.#sentLocks };
    this.#pool.run(start, { transferList: [port2] }).catch(() => {}); // it lasts as long as the thread
  }

  /** Whether the thread has ever replied. */
  get answered(): boolean {
    return this.#answered;
  }

  /** Whether no reply is outstanding. */
  get isIdle(): boolean {
    return this.#waiting.size === 0;
  }

  /** Puts' bodies are moved. Rejects when the thread ends before it replies. */
  send(requests: readonly Request[]): Promise<readonly Reply[]> {
    return new Promise((resolve, reject) => {
      const call: Call = { id: this.#calls++, requests };
      if (requests[0]?.op === "lock") Atomics.add(this.#sentLocks, 0, 1); // it is sent alone
      this.#port.postMessage(call, bodiesOf(requests));
      this.#waiting.set(call.id, { resolve, reject });
    });
  }

  /** Ends the thread and rejects what it has not replied to with `reason`. Resolves when the thread is gone. */
  end(reason: Error): Promise<void> {
    this.#ended = true;
    this.#port.close();
    for (const { reject } of this.#waiting.values()) reject(reason);
    this.#waiting.clear();
    return this.#pool.destroy();
  }

  #take({ id, replies }: Answer): void {
    this.#answered = true;
    this.#waiting.get(id)?.resolve(replies);
    this.#waiting.delete(id);
  }
}

function startPool(): Piscina {
  return new Piscina({
    filename: keyWorkerFile,
    name: "serve",
    minThreads: 1,
    maxThreads: 1,
    idleTimeout: Number.POSITIVE_INFINITY,
    recordTiming: false,
    env: {}, // the token may be in ours
    execArgv: [],
  });
}

function bodiesOf(requests: readonly Request[]): ArrayBuffer[] {
  return requests.flatMap((request) => {
    const memory = request.op === "seal" ? request.body.buffer : null;
    return memory instanceof ArrayBuffer ? [memory] : [];
  });
}
