/** Lifetime of a request, from finding the server to the last byte. A timeout, a signal or closing the client ends it. */
import { StrongroomError } from "./errors.js";
import type { CallOptions } from "./options.js";
import { type ApiRequest, isRead } from "./request.js";

const defaultTimeoutMs = 30_000;
/** About 25 days. With a longer delay, Node's timers fire at once. */
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

  /** @throws StrongroomError when the lifetime has ended */
  mustLast(): void {
    if (this.#error !== null) throw this.#error;
  }

  /** Waits for the work. When the lifetime ends first, rejects and calls `stop`. Waits for one at a time. */
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

  /** Releases the timer and the caller's signal. */
  release(): void {
    this.#release();
  }
}

function cancelled(request: ApiRequest, cause: unknown): StrongroomError {
  return new StrongroomError("ABORTED", `the caller cancelled the request${uncertainty(request)}`, { cause });
}

function tooLate(request: ApiRequest, timeoutMs: number): StrongroomError {
  return new StrongroomError(
    "TIMEOUT",
    `no response within ${timeoutMs} ms: raise the timeout, or check the server${uncertainty(request)}`,
  );
}

/** Returns a warning, for a change, that it may have happened even though there was no response. */
export function uncertainty(request: ApiRequest): string {
  return isRead(request) ? "" : "; the change may still have happened: check before you repeat it";
}
