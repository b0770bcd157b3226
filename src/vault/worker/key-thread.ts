/**
 * Current thread of the key worker: whether it has mounted the vault and seen a passphrase, its wiping and its replacement.
 * One derivation runs at a time, across threads.
 */
import type { Bytes, CheckpointSignature, Request, RequestOf, WorkerSettings } from "../../../workers/protocol.js";
import { type Clock, inTime } from "../../clock.js";
import type { Log } from "../../log.js";
import type { Observers } from "../../observer.js";
import { KeyWorkerClient, type Success } from "./key-worker-client.js";

/** Operations that derive a key or change the header. */
type Deriving = "init" | "unlock" | "changePassphrase" | "createKey" | "deleteKey" | "rotate" | "finishRotation";

export type DerivingRequest = RequestOf<Deriving>;

/** The audit log's. `end` is called with the signature, or with null when the key worker ended before it could sign. */
export type LastCheckpoint = {
  readonly text: string;
  readonly end: (signed: CheckpointSignature | null) => void;
};

/**
 * How long a lock waits for a running derivation, in milliseconds. scrypt cannot be interrupted; the costliest takes 3 s of
 * a free processor. A slower one goes on in its thread, which is no longer used and ends with it: what the derivation
 * holds of the passphrase is wiped by OpenSSL then, and its result reaches no one.
 */
const longestDerivationMs = 3_500;

export class KeyThread {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #worker: KeyWorkerClient;
  /** Whether the current thread has seen a passphrase. */
  #derived = false;
  /** How many mounts the thread has not confirmed yet. */
  #mounting = 0;
  #orphan: Promise<void> | null = null;

  /** `ended` is called when the thread has crashed and a new one, which knows no vault, has replaced it. */
  constructor(settings: WorkerSettings, clock: Clock, log: Log, observers: Observers, ended: () => void) {
    const { maxValueBytes, keepVersions, keepVersionBytes, minScryptLogN } = settings;
    const own = { maxValueBytes, keepVersions, keepVersionBytes, ...(minScryptLogN && { minScryptLogN }) };
    this.#clock = clock;
    this.#log = log;
    const crashed = () => {
      this.#derived = false;
      ended();
    };
    this.#worker = KeyWorkerClient.start(own, clock, crashed, (ms) => observers.keyWorkerReplied(ms));
  }

  get isMounting(): boolean {
    return this.#mounting > 0;
  }

  /** How often the thread has crashed. */
  get crashes(): number {
    return this.#worker.crashes;
  }

  /** Settles when a replaced thread that was still deriving is gone; null when there is none. */
  get orphan(): Promise<void> | null {
    return this.#orphan;
  }

  /** @throws VaultError as KeyWorkerClient.call */
  call<R extends Request>(request: R): Promise<Success<R>> {
    return this.#worker.call(request);
  }

  /** As `call`. Sends the request before it returns. */
  derive<R extends DerivingRequest>(request: R): Promise<Success<R>> {
    this.#derived = true;
    return this.call(request);
  }

  /** Passes the header, or null before init, to the thread. Returns the rotation that the header is in, or null. */
  async mount(header: Bytes | null): Promise<string | null> {
    this.#mounting++;
    try {
      const { rotation } = await this.call({ op: "load", header: header && new Uint8Array(header) });
      return rotation;
    } finally {
      this.#mounting--;
    }
  }

  /**
   * Signs the last checkpoint, then wipes the keys. Returns whether a derivation is still running. A thread that has ended
   * holds no key either.
   */
  async wipe(last: LastCheckpoint | null): Promise<boolean> {
    try {
      await this.signAndWipe(last);
      return (await inTime(this.#clock, longestDerivationMs, this.call({ op: "drain" }))) === "late";
    } catch (error) {
      this.#log.warn({ event: "key-worker-ended-in-lock", error });
      return false;
    }
  }

  /**
   * DANGER: the checkpoint's text is part of the message that wipes the keys, so that nothing can come between them.
   * @throws VaultError as KeyWorkerClient.call
   */
  async signAndWipe(last: LastCheckpoint | null): Promise<void> {
    let signed: CheckpointSignature | null = null;
    try {
      ({ signed } = await this.call({ op: "lock", ...(last && { checkpoint: last.text }) }));
    } finally {
      last?.end(signed);
    }
  }

  /** Replaces a thread that has seen a passphrase; returns whether it had. The new one knows no vault. */
  replaceIfDerived(isDeriving: boolean): boolean {
    if (!this.#derived) return false;
    const ended = this.#worker.replace();
    if (isDeriving) this.#holdDerivations(ended);
    this.#derived = false;
    return true;
  }

  stop(): Promise<void> {
    return this.#worker.stop();
  }

  #holdDerivations(until: Promise<void>): void {
    this.#orphan = until.finally(() => {
      this.#orphan = null;
    });
  }
}
