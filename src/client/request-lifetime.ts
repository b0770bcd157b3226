/** Lifetime of one request, from finding the server to the last byte: ended by timeout, signal or the closing of the client. */
import { StrongroomError } from "./client-error.js";
import type { ApiRequest, CallOptions } from "./request.js";
import { afterwards } from "./request-failure.js";

const defaultTimeoutMs = 30_000;
/** About 25 days. Above it, Node's timers fire at once. */
const maxTimerMs = 2 ** 31 - 1;

export class Lifetime {
  #error: StrongroomError | null = null;
  #interrupt: ((error: StrongroomError) => void) | null = null;
  readonly #release: () => void;

  constructor(request: ApiRequest, { signal, timeoutMs = defaultTimeoutMs }: CallOptions) {
    const cancel = () => this.end(cancelled(request, signal?.reason));
    const expire = () => this.end(tooLate(request, timeoutMs));
    const timer = timeoutMs > 0 && timeoutMs <= maxTimerMs ? setTimeout(expire, timeoutMs) : undefined;
    signal?.addEventListener("abort", cancel, { once: true });
    this.#release = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    };
    if (signal?.aborted) cancel();
  }

  end(error: StrongroomError): void {
    this.#error ??= error;
    this.#interrupt?.(this.#error);
  }

  /** @throws StrongroomError after the end */
  mustLast(): void {
    if (this.#error !== null) throw this.#error;
  }

  /** Waits for the work. At the end of the lifetime, rejects and calls `stop`. One work at a time. */
  async wait<T>(work: Promise<T>, stop: () => void = () => {}): Promise<T> {
    this.mustLast();
    try {
      return await new Promise<T>((resolve, reject) => {
        this.#interrupt = (error) => {
          reject(error);
          stop();
        };
        work.then(resolve, reject);
      });
    } finally {
      this.#interrupt = null;
    }
  }

  /** Lets go of the timer and of the caller's signal. */
  release(): void {
    this.#release();
  }
}

function cancelled(request: ApiRequest, cause: unknown): StrongroomError {
  return new StrongroomError("ABORTED", `the request was cancelled by its caller${afterwards(request)}`, { cause });
}

function tooLate(request: ApiRequest, timeoutMs: number): StrongroomError {
  return new StrongroomError(
    "TIMEOUT",
    `there was no response within ${timeoutMs} ms: wait longer, or check the server${afterwards(request)}`,
  );
}
