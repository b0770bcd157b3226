/** Turns of the operations that derive a key or change the header: one at a time, the others wait in a short queue. */
import { DerivationQueue } from "./crypto/derivation.js";
import { wipe } from "./memory.js";
import type { SharedBytes } from "./owned-bytes.js";
import { lockedMeanwhile, tooMany, unexpected } from "./refusals.js";
import type { Refusal } from "./replies.js";

const waitingDerivations = 16;

/** `until`: the turn goes on until a proposed header is adopted or discarded, so that nothing else comes between. */
export type Outcome<R> = { readonly reply: R; readonly until?: Promise<void> };

export class Turns {
  readonly #queue = new DerivationQueue(waitingDerivations);

  /** Runs the work in its turn and wipes the body. */
  take<R>(body: SharedBytes | null, work: () => Promise<Outcome<R>>): Promise<R | Refusal> {
    return new Promise((reply) => {
      const turn = async () => {
        const outcome = await work();
        wipe(body);
        reply(outcome.reply);
        await outcome.until;
      };
      this.#queue
        .run(turn)
        .then(
          (ended) => ended && reply(ended === "full" ? tooMany : lockedMeanwhile),
          (error: unknown) => reply(unexpected(error)),
        )
        .finally(() => wipe(body));
    });
  }

  /** Cancels the waiting ones. */
  cancel(): void {
    this.#queue.cancel();
  }

  /** Resolves when no turn is running any more. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }
}
