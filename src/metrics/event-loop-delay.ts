/** Delay of the event loop: how late a timer is. It runs only while someone scrapes. */
import type { Clock } from "../clock.js";
import { Histograms, type Sample } from "./instruments.js";

const periodMs = 20;

/** Time without a scrape, in milliseconds, after which the timer stops. */
const restMs = 300_000;

const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

export class EventLoopDelay {
  readonly #clock: Clock;
  readonly #histogram = new Histograms({ count: 1, labels: () => ({}), shown: true }, bounds);
  #timer: NodeJS.Timeout | null = null;
  #scraped = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns what was measured so far, and measures on. */
  scrape(): Iterable<Sample> {
    this.#scraped = this.#clock.elapsed();
    this.#timer ??= this.#start();
    return this.#histogram.samples();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #start(): NodeJS.Timeout {
    let last = this.#clock.elapsed();
    const tick = () => {
      const now = this.#clock.elapsed();
      this.#histogram.observe(0, Math.max(0, now - last - periodMs) / 1000);
      last = now;
      if (now - this.#scraped > restMs) this.stop();
    };
    return setInterval(tick, periodMs).unref();
  }
}
