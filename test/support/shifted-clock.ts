/** The system's clock, which a test can put forward; timers keep their own time. */
import { type Clock, systemClock } from "../../src/clock.js";

export class ShiftedClock implements Clock {
  #shift = 0;

  now(): number {
    return systemClock.now() + this.#shift;
  }

  elapsed(): number {
    return systemClock.elapsed() + this.#shift;
  }

  after(ms: number, callback: () => void): () => void {
    return systemClock.after(ms, callback);
  }

  advance(ms: number): void {
    this.#shift += ms;
  }
}
