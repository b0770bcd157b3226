/** A clock that the test sets. */
import type { Clock } from "../../src/clock.js";

export class FakeClock implements Clock {
  #now: number;
  #elapsed = 0;
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void }>();

  constructor(now = Date.parse("2026-03-01T12:00:00.000Z")) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Time passes while the machine is awake: due timers fire in order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    this.#elapsed += ms;
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
    }
    this.#now = end;
  }

  /** The wall clock is changed, or the machine slept: timers do not notice. */
  jump(ms: number): void {
    this.#now += ms;
  }
}
