/** Observers of the server: they receive an event for every finished request and for what happens to the vault. */
import type { PlannedOperation } from "../workers/protocol.js";
import type { ErrorCode } from "./errors.js";
import type { Log } from "./log.js";

/** One operation of a batch that the caller may send. `to`: the target of a move or copy. */
export type BatchItem = { readonly kind: PlannedOperation["kind"]; readonly path: string; readonly to?: string };

/** A request whose response is decided, or that will get none. Null: unknown, or there is none. */
export type FinishedRequest = {
  readonly method: string;
  /** The route's pattern; "unknown" for a path without an endpoint. */
  readonly route: string;
  /** 0: the client disconnected before its request was complete. */
  readonly status: number;
  /** Beside status 200: a streamed list failed after its beginning was sent. */
  readonly code: ErrorCode | null;
  /** The client token's name, or "root". */
  readonly caller: string | null;
  /** The client's IP address; "unix" for the Unix socket. */
  readonly address: string;
  /** The id in the error's body and in the log, where the status is 500 or more. */
  readonly requestId: string | null;
  /** Canonical path of the secret. */
  readonly path: string | null;
  /** Tag of the secret that was read or written, without quotes. */
  readonly etag: string | null;
  /** Name of the client token that was made, changed or removed. */
  readonly subject: string | null;
  /** The vault's key, or passphrase, that was made or removed. */
  readonly key: { readonly id: string; readonly kind: string; readonly label: string } | null;
  /** Version of the secret that was asked for. */
  readonly version: number | null;
  /** Prefix of a list; "" for a prefix that no path can begin with. */
  readonly prefix: string | null;
  /** Secrets in a list, or in the part of it that was sent. */
  readonly count: number | null;
  /** Operations of a batch, which is applied or refused as a whole. */
  readonly operations: readonly BatchItem[] | null;
  /** Milliseconds from the parsed head to the last byte of the response that was passed to the connection. */
  readonly durationMs: number;
};

/**
 * `request`: the endpoint or the signal. `crash`: the key worker ended, or its key is no longer the header's. `start`:
 * not unlocked since the start.
 */
export const lockReasons = ["request", "idle", "crash", "start", "shutdown"] as const;
export type LockReason = (typeof lockReasons)[number];

export const credentials = ["token", "passphrase"] as const;
export type Credential = (typeof credentials)[number];

/**
 * `init`, `unlock`: the vault is unlocked now. `unlock-failed`: the passphrase or key was wrong. `lock`: of an unlocked vault.
 * `stop`: the stop begins.
 */
export type VaultEvent = { readonly at: number } & (
  | { readonly event: "start" | "stop" | "init" | "unlock" | "unlock-failed" }
  | { readonly event: "lock"; readonly reason: LockReason }
  | { readonly event: "failure" | "lockout"; readonly credential: Credential; readonly address: string }
);

/** The calls of a secret store. */
export const storageCalls = [
  "header",
  "count",
  "list",
  "read",
  "commit",
  "startNewVault",
  "replaceHeader",
  "readDocument",
  "writeDocument",
  "snapshot",
  "freeze",
  "confirm",
  "documentTags",
] as const;
export type StorageCall = (typeof storageCalls)[number];

/** Called synchronously on the hot path: it must return at once. Durations in milliseconds. */
export interface Observer {
  requestFinished?(request: FinishedRequest): void;
  /** `at`: milliseconds since 1970. */
  vaultEvent?(event: VaultEvent): void;
  /** A message with one or more requests, none of which derives a key, has its result. */
  keyWorkerResponded?(durationMs: number): void;
  /** The key worker derived a key, or changed the header, or refused to; with the wait for its turn. */
  derivationEnded?(durationMs: number): void;
  storageReturned?(call: StorageCall, durationMs: number, failed: boolean): void;
}

/** All observers of one server. An observer that throws is logged, and disturbs neither the request nor the others. */
export class Observers implements Required<Observer> {
  readonly #log: Log;
  #all: Observer[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  add(observer: Observer): void {
    this.#all.push(observer);
  }

  remove(observer: Observer): void {
    this.#all = this.#all.filter((one) => one !== observer);
  }

  requestFinished(request: FinishedRequest): void {
    // Not by #each: on this path the closure would show.
    for (const observer of this.#all) {
      try {
        observer.requestFinished?.(request);
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  vaultEvent(event: VaultEvent): void {
    this.#each((observer) => observer.vaultEvent?.(event));
  }

  keyWorkerResponded(durationMs: number): void {
    this.#each((observer) => observer.keyWorkerResponded?.(durationMs));
  }

  derivationEnded(durationMs: number): void {
    this.#each((observer) => observer.derivationEnded?.(durationMs));
  }

  storageReturned(call: StorageCall, durationMs: number, failed: boolean): void {
    this.#each((observer) => observer.storageReturned?.(call, durationMs, failed));
  }

  #each(tell: (observer: Observer) => void): void {
    for (const observer of this.#all) {
      try {
        tell(observer);
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  #failed(error: unknown): void {
    this.#log.error({ event: "observer-failed", error });
  }
}

/** Writes one debug line for each finished request. DANGER: never its path. */
export function requestLog(log: Log): Observer {
  return {
    requestFinished({ method, route, status, durationMs }) {
      log.debug({ event: "request", method, route, status, durationMs: Math.round(durationMs) });
    },
  };
}
