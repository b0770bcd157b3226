/** Turns of the operations that derive a key or change the header: one at a time, the others wait in a short queue. */
import { wipe } from "./memory.js";
import type { Refusal, SharedBytes } from "./protocol.js";
import { lockedMeanwhile, tooMany, unexpected } from "./refusals.js";

const waitingDerivations = 16;

/** `until`: the turn lasts until a proposed header is adopted or discarded, so that nothing else comes between. */
export type TurnResult<R> = { readonly response: R; readonly until?: Promise<void> };

export class Turns {
  readonly #queue = new DerivationQueue(waitingDerivations);

  /** Runs the work in its turn and wipes the body. */
  take<R>(body: SharedBytes | null, work: () => Promise<TurnResult<R>>): Promise<R | Refusal> {
    return new Promise((response) => {
      const turn = async () => {
        const result = await work();
        wipe(body);
        response(result.response);
        await result.until;
      };
      this.#queue
        .run(turn)
        .then(
          (ended) => ended && response(ended === "full" ? tooMany : lockedMeanwhile),
          (error: unknown) => response(unexpected(error)),
        )
        .finally(() => wipe(body));
    });
  }

  /** Cancels the waiting ones. */
  cancel(): void {
    this.#queue.cancel();
  }

  /** Resolves when no turn is running. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }
}

type Turn = "start" | "full" | "cancelled";

/** Runs one job at a time and lets at most `limit` wait. */
class DerivationQueue {
  readonly #limit: number;
  readonly #waiting: ((turn: Turn) => void)[] = [];
  readonly #idle: (() => void)[] = [];
  #busy = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Runs the job in its turn, unless the queue is full or it is cancelled before. */
  async run<T>(job: () => Promise<T>): Promise<T | "full" | "cancelled"> {
    const turn = await this.#turn();
    if (turn !== "start") return turn;
    try {
      return await job();
    } finally {
      this.#next();
    }
  }

  /** Cancels the waiting jobs. The running one continues: scrypt cannot be interrupted. */
  cancel(): void {
    for (const wake of this.#waiting.splice(0)) wake("cancelled");
  }

  /** Resolves when no job is running. */
  async idle(): Promise<void> {
    if (this.#busy) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #turn(): Turn | Promise<Turn> {
    if (!this.#busy) {
      this.#busy = true;
      return "start";
    }
    if (this.#waiting.length >= this.#limit) return "full";
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #next(): void {
    const wake = this.#waiting.shift();
    if (wake) {
      wake("start");
      return;
    }
    this.#busy = false;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}
