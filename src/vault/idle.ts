/**
 * Owns the idle deadline, by the wall clock so that it holds across the machine's sleep. A timer alone would not: it
 * stands still meanwhile. So each request asks `expired` too.
 */
import type { Clock } from "../clock.js";

/** How long the timer sleeps at most before it looks at the wall clock again. */
const longestNap = 5000;

export class IdleDeadline {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #last: number;
  #cancel: () => void = () => {};

  /** `timeoutMs` 0: never. Counts from now. */
  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#last = clock.now();
  }

  /** Milliseconds since 1970 of the last activity, or of the start. */
  get lastActivity(): number {
    return this.#last;
  }

  touch(): void {
    this.#last = this.#clock.now();
  }

  expired(): boolean {
    const now = this.#clock.now();
    if (now < this.#last) this.#last = now; // the clock was set back: that must not lengthen the time
    return this.#timeoutMs > 0 && now - this.#last >= this.#timeoutMs;
  }

  /** Calls back once when the deadline has passed. */
  watch(lapsed: () => void): void {
    this.stop();
    if (this.#timeoutMs === 0) return;
    const left = this.#last + this.#timeoutMs - this.#clock.now();
    this.#cancel = this.#clock.after(Math.min(Math.max(left, 1), longestNap), () => {
      if (this.expired()) lapsed();
      else this.watch(lapsed);
    });
  }

  stop(): void {
    this.#cancel();
    this.#cancel = () => {};
  }
}
