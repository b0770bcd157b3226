/** How many derivations run and wait, and how long each took. */
import type { Clock } from "../../clock.js";

export type DerivationFigures = { readonly running: number; readonly waiting: number };

export class DerivationCounts {
  readonly #clock: Clock;
  readonly #ended: (durationMs: number) => void;
  /** Those that have not ended, and how many of them the key worker was sent: it runs one at a time. */
  #all = 0;
  #sent = 0;

  /** `ended` is called with the milliseconds that each took, its wait included. */
  constructor(clock: Clock, ended: (durationMs: number) => void) {
    this.#clock = clock;
    this.#ended = ended;
  }

  get figures(): DerivationFigures {
    const running = Math.min(1, this.#sent);
    return { running, waiting: this.#all - running };
  }

  async count<T>(derive: () => Promise<T>): Promise<T> {
    const began = this.#clock.elapsed();
    this.#all++;
    try {
      return await derive();
    } finally {
      this.#all--;
      this.#ended(this.#clock.elapsed() - began);
    }
  }

  countSent<T>(reply: Promise<T>): Promise<T> {
    this.#sent++;
    return reply.finally(() => {
      this.#sent--;
    });
  }
}
