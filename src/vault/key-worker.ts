/**
 * The main thread's side of the key worker: starts, watches and replaces its thread, and passes messages. It moves bytes and
 * knows nothing of their content.
 *
 * piscina starts and ends the thread; messages use a port of their own, which is cheaper for each get than a piscina task.
 */
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { Piscina } from "piscina";
import type {
  Bytes,
  Call,
  CallResult,
  CheckpointSignature,
  ClonedRequest,
  Opened,
  OpenRequest,
  Refusal,
  Request,
  RequestOf,
  Result,
  ResultOf,
  SentLocks,
  WorkerSettings,
  WorkerStart,
} from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import { keyWorkerFile } from "../program-files.js";

/** Operations that derive a key or change the header. */
const derivingOperations = [
  "init",
  "unlock",
  "changePassphrase",
  "createKey",
  "deleteKey",
  "rotate",
  "finishRotation",
] as const;

export type DerivingRequest = RequestOf<(typeof derivingOperations)[number]>;

/** Result of an operation that does not refuse. */
export type Success<R extends Request> = Exclude<ResultOf<R["op"]>, Refusal>;

/** The audit log's. `end` is called with the signature, or with null when the key worker ended before it could sign. */
export type LastCheckpoint = { readonly text: string; readonly end: (signed: CheckpointSignature | null) => void };

type KeyWorkerOptions = {
  readonly settings: WorkerSettings;
  readonly clock: Clock;
  /** Called when the thread has crashed and a new one, without a header, has replaced it. */
  readonly crashed: () => void;
  /** Called with the milliseconds that each message took, except for messages that may wait for a derivation. */
  readonly responded?: (ms: number) => void;
};

/** Delay before a thread is restarted that ended before its first response: its file may be missing. */
const retryMs = 1_000;

/** Most requests in one message: with more, waiting for the slowest costs more than a second message. */
const maxBatch = 32;

/** The key worker is quick with a value of this size. */
const quickBytes = 16 * 1024;

/** Uses of transit keys that are quick with most keys, with a body that is too short for a batch of many. */
const quickUses: readonly string[] = ["encrypt", "decrypt", "hmac"];
const quickBodyBytes = 2048;

/** Larger bodies go to the key worker one at a time: what comes after them waits for one of them at most. */
const bulkyBytes = 64 * 1024;

type Waiting = {
  readonly request: Request;
  readonly resolve: (response: Result) => void;
  readonly reject: (error: unknown) => void;
};

/** One message that was sent, and when, in milliseconds. `opens` are packed: see `Call`. */
type Sent = { readonly cloned: readonly Waiting[]; readonly opens: readonly Waiting[]; readonly at: number };

type Thread = {
  readonly pool: Piscina;
  readonly port: MessagePort;
  readonly sentLocks: SentLocks;
  readonly sent: Map<number, Sent>;
  /** Requests with large bodies: the first was sent, the others wait for it. */
  readonly bulky: Waiting[];
  messages: number;
  hasResponded: boolean;
  hasEnded: boolean;
};

export class KeyWorker {
  readonly #options: KeyWorkerOptions;
  #thread: Thread | null = null;
  /** Sent at the end of this turn of the event loop: one message for all costs less than one for each. */
  #batch: Waiting[] = [];
  #stopped = false;
  #crashes = 0;
  /** Whether the current thread has seen a passphrase. */
  #derived = false;
  #deriving = 0;
  /** How many headers were sent, and how many of them are not confirmed yet. */
  #loads = 0;
  #loading = 0;
  /** Proposed headers, and how many loads there had been when they were asked for. */
  readonly #proposals = new WeakMap<Bytes, number>();
  #retiring: Promise<void> | null = null;

  private constructor(options: KeyWorkerOptions) {
    this.#options = options;
  }

  static start(options: KeyWorkerOptions): KeyWorker {
    const worker = new KeyWorker(options);
    worker.#startThread();
    return worker;
  }

  /** How often the thread has crashed. */
  get crashes(): number {
    return this.#crashes;
  }

  /** How many requests that derive were sent and have no response. */
  get deriving(): number {
    return this.#deriving;
  }

  get isLoading(): boolean {
    return this.#loading > 0;
  }

  /** Settles when a replaced thread that was still deriving is gone; null when there is none. */
  get retiring(): Promise<void> | null {
    return this.#retiring;
  }

  /**
   * Sends a request and returns the response. The key worker takes requests in the order of the calls, but for those with
   * large bodies, which wait for one another. The body of a write
   * that is not shared is moved: the caller's view of it is empty afterwards.
   * @throws VaultError the worker's refusal, INTERNAL when the thread ended before it responded, UNAVAILABLE when there is
   * no thread.
   */
  async call<R extends Request>(request: R): Promise<Success<R>> {
    const response = await new Promise<Result>((resolve, reject) => {
      const waiting = { request, resolve, reject };
      if (isQuick(request)) return this.#enqueue(waiting);
      if ("body" in request && request.body.byteLength > bulkyBytes) return this.#addBulky(waiting);
      if (request.op === "lock") this.#rejectBulky();
      this.#postAfterBatch(waiting);
    });
    if (!response.ok) throw refusal(response);
    return response as Success<R>;
  }

  /** Like `call`. Sends the request before it returns. */
  async derive<R extends DerivingRequest>(request: R): Promise<Success<R>> {
    this.#derived = true;
    const loads = this.#loads;
    this.#deriving++;
    try {
      const response = await this.call(request);
      if (response.header !== null) this.#proposals.set(response.header, loads);
      return response;
    } finally {
      this.#deriving--;
    }
  }

  /** Passes the header, or null before init, to the thread, which wipes its keys. Returns the header's rotation, or null. */
  async load(header: Bytes | null): Promise<string | null> {
    this.#loads++;
    this.#loading++;
    try {
      const { rotation } = await this.call({ op: "load", header: header && new Uint8Array(header) });
      return rotation;
    } finally {
      this.#loading--;
    }
  }

  /**
   * Whether the thread still holds aside the header that it proposed: not after a crash, nor once another was loaded, which
   * the proposal does not know.
   */
  holds(proposed: Bytes): boolean {
    return this.#proposals.get(proposed) === this.#loads;
  }

  /**
   * Signs the audit log's last checkpoint and wipes the keys.
   * DANGER: the checkpoint's text is part of the message that wipes the keys, so that nothing can come between them.
   * @throws VaultError as `call`
   */
  async signAndWipe(last: LastCheckpoint | null): Promise<void> {
    let signed: CheckpointSignature | null = null;
    try {
      ({ signed } = await this.call({ op: "lock", ...(last && { checkpoint: last.text }) }));
    } finally {
      last?.end(signed);
    }
  }

  /**
   * Replaces a thread that has seen a passphrase, and has wiped its keys; returns null when it had not. The new one has no
   * header. Outstanding requests are refused as locked. A derivation that is running keeps the old thread alive until it
   * ends. `wiped` settles when the old thread is gone, and with it what no program can wipe: copies in OpenSSL, and those
   * that a thread's stack has of registers; after a derivation that keeps it alive it settles at once.
   */
  replaceIfDerived(isDeriving: boolean): { readonly wiped: Promise<void> } | null {
    if (!this.#derived) return null;
    const old = this.#thread;
    this.#startThread();
    const ended = old === null ? Promise.resolve() : end(old, lockedMeanwhile());
    if (isDeriving) {
      this.#retiring = ended.finally(() => {
        this.#retiring = null;
      });
    }
    return { wiped: isDeriving ? Promise.resolve() : ended };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const last = this.#thread;
    this.#thread = null;
    if (last !== null) await end(last, lockedMeanwhile());
  }

  /** Sends at once while the thread is idle: then batching gains nothing. */
  #enqueue(waiting: Waiting): void {
    this.#batch.push(waiting);
    if (this.#thread?.sent.size === 0 || this.#batch.length === maxBatch) this.#flush();
    else if (this.#batch.length === 1) setImmediate(() => this.#flush());
  }

  #addBulky(waiting: Waiting): void {
    const thread = this.#thread;
    if (thread === null) return void this.#post([waiting]);
    thread.bulky.push(waiting);
    if (thread.bulky.length === 1) this.#postBulky(thread);
  }

  /** Sends the first of the requests with large bodies, and the next one when it has its response. */
  #postBulky(thread: Thread): void {
    const [first] = thread.bulky;
    if (first === undefined || thread !== this.#thread) return;
    const ended = () => {
      if (thread.bulky.shift() !== undefined) this.#postBulky(thread);
    };
    const resolve = (result: Result) => {
      first.resolve(result);
      ended();
    };
    const reject = (error: unknown) => {
      first.reject(error);
      ended();
    };
    this.#postAfterBatch({ request: first.request, resolve, reject });
  }

  /** A lock refuses what has not begun. */
  #rejectBulky(): void {
    rejectAll(this.#thread?.bulky.splice(1) ?? [], lockedMeanwhile());
  }

  #postAfterBatch(waiting: Waiting): void {
    this.#flush(); // earlier requests go first
    this.#post([waiting]);
  }

  #flush(): void {
    const batch = this.#batch;
    if (batch.length === 0) return;
    this.#batch = [];
    this.#post(batch);
  }

  #post(waiting: readonly Waiting[]): void {
    const thread = this.#thread;
    if (thread === null) {
      rejectAll(waiting, new VaultError("UNAVAILABLE", "the key worker is not running: try again in a second"));
      return;
    }
    const cloned: Waiting[] = [];
    const requests: ClonedRequest[] = [];
    const opens: Waiting[] = [];
    const blobs: OpenRequest[] = [];
    for (const one of waiting) {
      const { request } = one;
      if (request.op === "open") {
        opens.push(one);
        blobs.push(request);
      } else {
        cloned.push(one);
        requests.push(request);
      }
    }
    const { clock } = this.#options;
    const [id, now] = [thread.messages++, clock.now()];
    const packedOpens = blobs.length === 0 ? null : packed(blobs);
    const call: Call = [id, now, requests.length === 0 ? null : requests, packedOpens];
    if (requests[0]?.op === "lock") Atomics.add(thread.sentLocks, 0, 1); // no other request shares its message
    try {
      thread.port.postMessage(call, movedWith(call));
      thread.sent.set(id, { cloned, opens, at: clock.elapsed() });
    } catch (cause) {
      rejectAll(waiting, noResponse(cause));
    }
  }

  #startThread(): void {
    const thread = startThread(this.#options.settings, {
      take: (result) => this.#take(thread, result),
      crashed: () => this.#threadCrashed(thread),
    });
    this.#thread = thread;
    this.#derived = false;
  }

  #take(thread: Thread, [id, responses, bytes, refusals]: CallResult): void {
    thread.hasResponded = true;
    const sent = thread.sent.get(id);
    if (sent === undefined) return;
    thread.sent.delete(id);
    const { clock, responded } = this.#options;
    if (!mayWait(sent)) responded?.(clock.elapsed() - sent.at);
    for (const [i, { resolve }] of sent.cloned.entries()) resolve(responses?.[i] as Result);
    if (bytes !== null) resolveOpens(sent.opens, bytes, refusals);
  }

  #threadCrashed(thread: Thread): void {
    void end(thread, noResponse(new Error("the key worker's thread has crashed")));
    if (this.#stopped || thread !== this.#thread) return;
    this.#thread = null;
    this.#crashes++;
    if (thread.hasResponded) this.#startAgain();
    else this.#options.clock.after(retryMs, () => this.#startAgain());
  }

  #startAgain(): void {
    if (this.#stopped || this.#thread !== null) return;
    this.#startThread();
    this.#options.crashed();
  }
}

type ThreadEvents = { readonly take: (result: CallResult) => void; readonly crashed: () => void };

function startThread(settings: WorkerSettings, { take, crashed }: ThreadEvents): Thread {
  const { port1, port2 } = new MessageChannel();
  const pool = new Piscina({
    filename: keyWorkerFile,
    name: "serve",
    minThreads: 1,
    maxThreads: 1,
    idleTimeout: Number.POSITIVE_INFINITY,
    recordTiming: false,
    env: {}, // the token may be in ours
    execArgv: [],
  });
  const sentLocks: SentLocks = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const port = port1.on("message", take);
  const thread: Thread = {
    pool,
    port,
    sentLocks,
    sent: new Map(),
    bulky: [],
    messages: 0,
    hasResponded: false,
    hasEnded: false,
  };
  pool.on("error", () => {}); // workerDestroy follows in any case
  pool.on("workerDestroy", () => {
    if (!thread.hasEnded) crashed();
  });
  const { maxValueBytes, keepVersions, keepVersionBytes, minScryptLogN } = settings; // it needs no others
  const own = { maxValueBytes, keepVersions, keepVersionBytes, ...(minScryptLogN && { minScryptLogN }) };
  const start: WorkerStart<MessagePort> = { port: port2, settings: own, sentLocks };
  pool.run(start, { transferList: [port2] }).catch(() => {}); // it lasts as long as the thread
  return thread;
}

/** Ends a thread and rejects what it has not responded to with `reason`. Resolves when the thread is gone. */
function end(thread: Thread, reason: VaultError): Promise<void> {
  thread.hasEnded = true;
  thread.port.close();
  rejectAll(thread.bulky.splice(1), reason);
  for (const { cloned, opens } of thread.sent.values()) rejectAll([...cloned, ...opens], reason);
  thread.sent.clear();
  return thread.pool.destroy();
}

function rejectAll(waiting: readonly Waiting[], error: VaultError): void {
  for (const { reject } of waiting) reject(error);
}

const waitingOperations: ReadonlySet<string> = new Set([...derivingOperations, "drain"]);

/** Whether the message may wait for a derivation. */
function mayWait({ cloned: [first] }: Sent): boolean {
  return first !== undefined && waitingOperations.has(first.request.op);
}

/** Whether the key worker responds quickly: the rest of the batch waits for it. */
function isQuick(request: Request): boolean {
  if (request.op === "open") return request.blob.byteLength <= quickBytes;
  if (request.op === "useTransitKey")
    return quickUses.includes(request.use) && request.body.byteLength <= quickBodyBytes;
  if (request.op !== "write" || request.kind !== "put") return false;
  return request.body.byteLength + (request.previous?.length ?? 0) <= quickBytes;
}

/** Bodies of writes that are not shared and packed requests are moved. */
function movedWith([, , requests, opens]: Call): ArrayBuffer[] {
  const moved = opens === null ? [] : [opens.buffer];
  for (const request of requests ?? []) {
    if (request.op === "write" && "body" in request && request.body.buffer instanceof ArrayBuffer)
      moved.push(request.body.buffer);
  }
  return moved;
}

/** See `Call`. */
function packed(opens: readonly OpenRequest[]): Bytes {
  let length = 0;
  for (const { path, blob } of opens) length += 9 + Buffer.byteLength(path) + blob.length;
  const target = Buffer.from(new ArrayBuffer(length));
  let at = 0;
  for (const { path, blob, forVault } of opens) {
    const pathLength = target.write(path, at + 9);
    target[at] = forVault ? 1 : 0;
    target.writeUInt32BE(pathLength, at + 1);
    target.writeUInt32BE(blob.length, at + 5);
    target.set(blob, at + 9 + pathLength);
    at += 9 + pathLength + blob.length;
  }
  return target;
}

/** See `Opened`. Each response is a part of one buffer, which its sender wipes by itself. */
function resolveOpens(opens: readonly Waiting[], ...[bytes, refusals]: Opened): void {
  const fields = Buffer.from(bytes.buffer);
  let at = 0;
  for (const [i, { resolve }] of opens.entries()) {
    const refused = refusals?.get(i);
    if (refused !== undefined) {
      resolve(refused);
      continue;
    }
    const responseAt = at + 24;
    const end = responseAt + fields.readUInt32BE(at);
    const currentLength = fields.readUInt32BE(at + 4);
    const etag = fields.toString("latin1", at + 8, responseAt);
    resolve({ ok: true, response: bytes.subarray(responseAt, end), etag, currentLength });
    at = end;
  }
}

/** Wipes a body that was shared with the key worker, or did not reach it; a moved body has no bytes left here. */
export async function wipingAfter<T>(body: Uint8Array, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } finally {
    if (body.byteLength > 0) body.fill(0);
  }
}

function lockedMeanwhile(): VaultError {
  return new VaultError("VAULT_LOCKED", "the vault was locked while this request was waiting: send it again");
}

function noResponse(cause: unknown): VaultError {
  return new VaultError("INTERNAL", "the key worker did not answer: check whether the vault is locked", { cause });
}

function refusal({ code, detail, trace, index }: Refusal): VaultError {
  const cause =
    trace === undefined ? {} : { cause: Object.assign(new Error(), { name: "KeyWorkerError", stack: trace }) };
  return new VaultError(code, detail, { ...cause, index, ...(code === "RATE_LIMITED" && { retryAfter: 1 }) });
}
