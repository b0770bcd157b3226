/**
 * Owns the main thread's end of the key worker: one piscina thread, its messages, and its replacement after a lock or a
 * crash. It moves bytes and knows nothing of what is in them.
 */
import { Piscina } from "piscina";
import type { Operation, Refusal, ReplyOf, RequestOf, WorkerSettings } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";

/** More than all connections together have under way; piscina's own default is one at a time. */
const maxUnderWay = 4096;

type Success<R> = Exclude<R, Refusal>;

export class KeyWorker {
  readonly #settings: WorkerSettings;
  readonly #ended: () => void;
  #pool: Piscina;
  #stopped = false;

  /** Starts the thread. `ended` is called when it has ended unasked and a fresh one, which holds nothing, is there. */
  static start(settings: WorkerSettings, ended: () => void): KeyWorker {
    return new KeyWorker(settings, ended);
  }

  private constructor(settings: WorkerSettings, ended: () => void) {
    this.#settings = settings;
    this.#ended = ended;
    this.#pool = this.#startThread();
  }

  /**
   * Asks the key worker. Byte fields of the request are moved: they are gone here afterwards.
   * @throws VaultError the worker's refusal, or INTERNAL when the thread ended before it answered.
   */
  async call<O extends Operation>(request: RequestOf<O>): Promise<Success<ReplyOf<O>>> {
    const reply = await this.#run<O>(request);
    if (!reply.ok) throw refusal(reply as Refusal);
    return reply as Success<ReplyOf<O>>;
  }

  /** Ends the thread, once it has wiped what it held, and starts a fresh one. */
  replace(): void {
    const old = this.#pool;
    this.#pool = this.#startThread();
    void old.destroy();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#pool.destroy();
  }

  async #run<O extends Operation>(request: RequestOf<O>): Promise<ReplyOf<O>> {
    try {
      return (await this.#pool.run(request, { transferList: buffersOf(request) })) as ReplyOf<O>;
    } catch (error) {
      throw new VaultError("INTERNAL", "the key worker ended before it answered: the vault is locked", {
        cause: error,
      });
    }
  }

  #startThread(): Piscina {
    const pool = new Piscina({
      filename: new URL("../../workers/key-worker.js", import.meta.url).href,
      name: "handle",
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: maxUnderWay,
      maxQueue: maxUnderWay,
      idleTimeout: Number.POSITIVE_INFINITY,
      recordTiming: false,
      workerData: this.#settings,
      env: {}, // the token may be in ours
      execArgv: [],
    });
    pool.on("error", () => {}); // told by workerDestroy, which comes with and without tasks under way
    pool.on("workerDestroy", () => {
      if (this.#stopped || pool !== this.#pool) return;
      this.replace();
      this.#ended();
    });
    return pool;
  }
}

function buffersOf(request: object): ArrayBuffer[] {
  return Object.values(request).flatMap((part) => {
    if (part instanceof Uint8Array) return [part.buffer as ArrayBuffer];
    return Array.isArray(part) ? part.flatMap(buffersOf) : [];
  });
}

function refusal({ code, detail }: Refusal): VaultError {
  return new VaultError(code, detail, code === "RATE_LIMITED" ? { retryAfter: 1 } : {});
}
