/** State of the key worker for transit keys, held as long as its master key. */
import { Turns } from "../turns.js";
import { KnownKeys } from "./known-keys.js";
import { Messages } from "./messages.js";
import { PrivateKeys } from "./private-keys.js";

export class TransitState {
  readonly messages = new Messages();
  readonly knownKeys = new KnownKeys();
  readonly privateKeys = new PrivateKeys();
  /** RSA keys are made one at a time. */
  readonly generations = new Turns();

  #lastSlice: Promise<void> = Promise.resolve();

  /**
   * Resolves when the caller may work on the next slice of a batch: one at a time, whichever batch it is of, and the messages
   * that have arrived are read before each.
   */
  sliceTurn(): Promise<void> {
    this.#lastSlice = this.#lastSlice.then(() => new Promise((resolve) => setImmediate(resolve)));
    return this.#lastSlice;
  }

  forget(): void {
    this.messages.clear();
    this.knownKeys.clear();
    this.privateKeys.clear();
  }
}
