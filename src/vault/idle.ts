/**
 * Idle deadline by the wall clock, so that it holds across the machine's sleep. A timer stands still meanwhile, so each
 * request checks `expired` too.
 */
import type { Clock } from "../clock.js";

/** The longest time, in milliseconds, until the timer checks the wall clock again. */
const recheckMs = 5000;

export class IdleDeadline {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #last: number;
  #cancel: () => void = () => {};

  /** Starts now. `timeoutMs` 0: never. */
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
    if (now < this.#last) this.#last = now; // the clock was set back, which must not extend the deadline
    return this.#timeoutMs > 0 && now - this.#last >= this.#timeoutMs;
  }

  /** Calls `lapsed` once when the deadline has passed. */
  watch(lapsed: () => void): void {
    this.stop();
    if (this.#timeoutMs === 0) return;
    const left = this.#last + this.#timeoutMs - this.#clock.now();
    this.#cancel = this.#clock.after(Math.min(Math.max(left, 1), recheckMs), () => {
      if (this.expired()) lapsed();
      else this.watch(lapsed);
    });
  }

  stop(): void {
    this.#cancel();
    this.#cancel = () => {};
  }
}
