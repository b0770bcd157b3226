/** Log of failed authentication in aggregate: at most one line a minute, whatever the number of failures. */
import type { Clock } from "../clock.js";
import type { Log } from "../log.js";

const periodMs = 60_000;

/** Most addresses counted within a period. */
const maxAddresses = 10_000;

export class FailureLog {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #hint: string;
  readonly #addresses = new Set<string>();
  #count = 0;

  /** `hint`: what the failures are. */
  constructor(clock: Clock, log: Log, hint: string) {
    this.#clock = clock;
    this.#log = log;
    this.#hint = hint;
  }

  add(address: string): void {
    if (this.#count === 0) this.#clock.after(periodMs, () => this.#write());
    this.#count++;
    if (this.#addresses.size < maxAddresses) this.#addresses.add(address);
  }

  #write(): void {
    const { size: addresses } = this.#addresses;
    this.#log.warn({ event: "authentication-failures", hint: this.#hint, count: this.#count, addresses });
    this.#count = 0;
    this.#addresses.clear();
  }
}
