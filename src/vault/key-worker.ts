/**
 * Owns the main thread's end of the key worker: one piscina thread, its messages, and its replacement after a lock or a
 * crash. It moves bytes and knows nothing of what is in them.
 */
import { Piscina } from "piscina";
import type { Operation, Refusal, ReplyOf, RequestOf, WorkerSettings } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";

/** More than all connections together have under way; piscina's own default is one at a time. */
const maxUnderWay = 4096;

/** A thread that ended before it answered anything is not started again at once: its file may be gone. */
const retryMs = 1_000;

type Success<R> = Exclude<R, Refusal>;

type Thread = { readonly pool: Piscina; answered: boolean };

export class KeyWorker {
  readonly #settings: WorkerSettings;
  readonly #clock: Clock;
  readonly #ended: () => void;
  #thread: Thread | null = null;
  #stopped = false;

  private constructor(settings: WorkerSettings, clock: Clock, ended: () => void) {
    this.#settings = settings;
    this.#clock = clock;
    this.#ended = ended;
  }

  /** `ended` is called when the thread has ended unasked and a fresh one, which knows nothing, is there. */
  static start(settings: WorkerSettings, clock: Clock, ended: () => void): KeyWorker {
    const worker = new KeyWorker(settings, clock, ended);
    worker.replace();
    return worker;
  }

  /**
   * Asks the key worker. Byte fields of the request are moved: they are gone here afterwards.
   * @throws VaultError the worker's refusal, INTERNAL when the thread ended before it answered, UNAVAILABLE when there
   * is none.
   */
  async call<O extends Operation>(request: RequestOf<O>): Promise<Success<ReplyOf<O>>> {
    const reply = await this.#run<O>(request);
    if (!reply.ok) throw refusal(reply as Refusal);
    return reply as Success<ReplyOf<O>>;
  }

  /** Ends the thread, once it has wiped what it held, and starts a fresh one. */
  replace(): void {
    const old = this.#thread;
    this.#thread = this.#startThread();
    void old?.pool.destroy();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const last = this.#thread;
    this.#thread = null;
    await last?.pool.destroy();
  }

  async #run<O extends Operation>(request: RequestOf<O>): Promise<ReplyOf<O>> {
    const thread = this.#thread;
    if (thread === null) throw new VaultError("UNAVAILABLE", "the key worker is not running: try again in a second");
    try {
      const reply: ReplyOf<O> = await thread.pool.run(request, { transferList: buffersOf(request) });
      thread.answered = true;
      return reply;
    } catch (cause) {
      throw new VaultError("INTERNAL", "the key worker did not answer: see whether the vault is locked", { cause });
    }
  }

  #startThread(): Thread {
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
    const thread = { pool, answered: false };
    pool.on("error", () => {}); // told by workerDestroy, which comes with and without tasks under way
    pool.on("workerDestroy", () => this.#threadEnded(thread));
    return thread;
  }

  #threadEnded(thread: Thread): void {
    if (this.#stopped || thread !== this.#thread) return;
    this.#thread = null;
    void thread.pool.destroy();
    if (thread.answered) this.#startAgain();
    else this.#clock.after(retryMs, () => this.#startAgain());
  }

  #startAgain(): void {
    if (this.#stopped || this.#thread !== null) return;
    this.replace();
    this.#ended();
  }
}

function buffersOf(request: object): ArrayBuffer[] {
  return Object.values(request).flatMap((part) => {
    if (part instanceof Uint8Array) return [part.buffer as ArrayBuffer];
    return Array.isArray(part) ? part.flatMap(buffersOf) : [];
  });
}

function refusal({ code, detail, trace }: Refusal): VaultError {
  const cause =
    trace === undefined ? {} : { cause: Object.assign(new Error(), { name: "KeyWorkerError", stack: trace }) };
  return new VaultError(code, detail, { ...cause, ...(code === "RATE_LIMITED" && { retryAfter: 1 }) });
}
