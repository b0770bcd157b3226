/** Bytes that the gets of a batch may reply: those beyond are refused. */
import type { Bytes } from "../../../workers/protocol.js";
import { VaultError } from "../../errors.js";
import { KeyedMutex } from "../sync/keyed-mutex.js";

export class ReplyBudget {
  readonly #most: number;
  readonly #turns = new KeyedMutex();
  #spent = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Counts a reply that has been made. */
  spend(reply: Bytes): void {
    this.#spent += reply.length;
  }

  /** @throws VaultError BAD_REQUEST once more than the budget is spent */
  mustLast(): void {
    if (this.#spent <= this.#most) return;
    const problem = `the secrets of this batch have more than ${this.#most} bytes`;
    throw new VaultError("BAD_REQUEST", `${problem}: read the rest in another batch`);
  }

  /**
   * Makes a reply that may be large, after those before it: 32 at once, of a value of 1 MiB that has to be escaped, were 200 MB.
   * @throws VaultError BAD_REQUEST
   */
  take<R extends { readonly reply: Bytes }>(make: () => Promise<R>): Promise<R> {
    return this.#turns.run("", async () => {
      this.mustLast();
      const made = await make();
      this.spend(made.reply);
      return made;
    });
  }
}
