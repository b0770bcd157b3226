/**
 * The main thread's client of the key worker: batches requests, and replaces the thread after a lock or a crash. It moves
 * bytes and knows nothing of their content.
 */
import type { Refusal, Reply, ReplyOf, Request, WorkerSettings } from "../../../workers/protocol.js";
import type { Clock } from "../../clock.js";
import { VaultError } from "../../errors.js";
import { WorkerThread } from "./worker-thread.js";

/** Delay before a thread is restarted that ended before its first reply: its file may be missing. */
const retryMs = 1_000;

/** In one message: with more, waiting for the slowest costs more than a second message. */
const maxBatch = 32;

/** A value of this size takes the key worker a fraction of a millisecond. */
const quickBytes = 16 * 1024;

type Waiting = {
  readonly request: Request;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
};

/** What an operation replies when it does not refuse. */
export type Success<R extends Request> = Exclude<ReplyOf<R["op"]>, Refusal>;

export class KeyWorkerClient {
  readonly #settings: WorkerSettings;
  readonly #clock: Clock;
  readonly #ended: () => void;
  readonly #replied: (ms: number) => void;
  /** Sent at the end of this turn of the event loop: one message for all halves the cost of the hop. */
  #batch: Waiting[] = [];
  #thread: WorkerThread | null = null;
  #stopped = false;
  #crashes = 0;

  private constructor(settings: WorkerSettings, clock: Clock, ended: () => void, replied: (ms: number) => void) {
    this.#settings = settings;
    this.#clock = clock;
    this.#ended = ended;
    this.#replied = replied;
  }

  /**
   * `ended` is called when the thread has crashed and a new one, which knows no vault, has replaced it. `replied`: with the
   * time that each message took, but for those that may wait for a derivation.
   */
  static start(
    settings: WorkerSettings,
    clock: Clock,
    ended: () => void,
    replied: (ms: number) => void = () => {},
  ): KeyWorkerClient {
    const worker = new KeyWorkerClient(settings, clock, ended, replied);
    void worker.replace();
    return worker;
  }

  /** How often the thread has crashed. */
  get crashes(): number {
    return this.#crashes;
  }

  /**
   * Sends a request and returns the reply. The key worker takes requests in the order of the calls. A put's body is moved: the
   * caller's view of it is empty afterwards.
   * @throws VaultError the worker's refusal, INTERNAL when the thread ended before it replied, UNAVAILABLE when there is
   * no thread.
   */
  async call<R extends Request>(request: R): Promise<Success<R>> {
    const reply = await (isQuick(request) ? this.#inBatch(request) : this.#alone(request));
    if (!reply.ok) throw refusal(reply);
    return reply as Success<R>;
  }

  /**
   * Ends the thread, which must have wiped its keys, and starts a new one. Outstanding requests are refused as locked.
   * Resolves when the old thread is gone: it waits for a derivation that is running.
   */
  async replace(): Promise<void> {
    const old = this.#thread;
    this.#thread = new WorkerThread(this.#settings, (thread) => this.#threadEnded(thread));
    await old?.end(lockedMeanwhile());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const last = this.#thread;
    this.#thread = null;
    await last?.end(lockedMeanwhile());
  }

  /** Sends at once while the thread is idle: then batching gains nothing. */
  #inBatch(request: Request): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#batch.push({ request, resolve, reject });
      if (this.#thread?.isIdle || this.#batch.length === maxBatch) this.#flush();
      else if (this.#batch.length === 1) setImmediate(() => this.#flush());
    });
  }

  /** Earlier requests go first. */
  async #alone(request: Request): Promise<Reply> {
    this.#flush();
    const [reply] = await this.#send([request]);
    return reply as Reply;
  }

  #flush(): void {
    const batch = this.#batch;
    if (batch.length === 0) return;
    this.#batch = [];
    const settle = (replies: readonly Reply[]) => {
      for (const [i, { resolve }] of batch.entries()) resolve(replies[i] as Reply);
    };
    const fail = (error: unknown) => {
      for (const { reject } of batch) reject(error);
    };
    this.#send(batch.map(({ request }) => request)).then(settle, fail);
  }

  async #send(requests: readonly Request[]): Promise<readonly Reply[]> {
    const thread = this.#thread;
    if (thread === null) throw new VaultError("UNAVAILABLE", "the key worker is not running: try again in a second");
    const began = this.#clock.elapsed();
    try {
      const replies = await thread.send(requests);
      if (!mayWait(requests)) this.#replied(this.#clock.elapsed() - began);
      return replies;
    } catch (cause) {
      if (cause instanceof VaultError) throw cause;
      throw new VaultError("INTERNAL", "the key worker did not answer: check whether the vault is locked", { cause });
    }
  }

  #threadEnded(thread: WorkerThread): void {
    if (this.#stopped || thread !== this.#thread) return;
    this.#thread = null;
    this.#crashes++;
    if (thread.answered) this.#startAgain();
    else this.#clock.after(retryMs, () => this.#startAgain());
  }

  #startAgain(): void {
    if (this.#stopped || this.#thread !== null) return;
    void this.replace();
    this.#ended();
  }
}

const derivingOperations = new Set<Request["op"]>([
  "init",
  "unlock",
  "changePassphrase",
  "createKey",
  "deleteKey",
  "rotate",
  "finishRotation",
  "drain",
]);

/** Whether the message may wait for a derivation. */
function mayWait([request]: readonly Request[]): boolean {
  return request !== undefined && derivingOperations.has(request.op);
}

/** Whether the key worker replies quickly: the rest of the batch waits for it. */
function isQuick(request: Request): boolean {
  if (request.op === "open") return request.blob.byteLength <= quickBytes;
  return request.op === "seal" && request.body.byteLength + (request.previous?.length ?? 0) <= quickBytes;
}

function lockedMeanwhile(): VaultError {
  return new VaultError("VAULT_LOCKED", "the vault was locked while this request was waiting: send it again");
}

function refusal({ code, detail, trace, index }: Refusal): VaultError {
  const cause =
    trace === undefined ? {} : { cause: Object.assign(new Error(), { name: "KeyWorkerError", stack: trace }) };
  return new VaultError(code, detail, { ...cause, index, ...(code === "RATE_LIMITED" && { retryAfter: 1 }) });
}
