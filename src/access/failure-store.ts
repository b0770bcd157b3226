/** Failures and lockouts by key: 10 failures within 60 s lock a key out for 300 s. */
import type { Clock } from "../clock.js";

const maxFailures = 10;
const windowMs = 60_000;
const lockoutMs = 300_000;

/** Most keys with failures, and most lockouts. Beyond that, the key that failed longest ago is dropped, but no lockout. */
const maxKeys = 10_000;

export class FailureStore {
  readonly #clock: Clock;
  /** Times of the failures, in order of the last one. */
  readonly #failures = new Map<string, readonly number[]>();
  /** Times at which the lockouts end, in this order. */
  readonly #lockouts = new Map<string, number>();
  /** The end of a lockout of all other keys, when there was no room for one more. */
  #othersUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a failure; returns true when it begins a lockout (the tenth within the window). */
  fail(key: string): boolean {
    if (this.secondsLeft(key) > 0) return false;
    const now = this.#clock.elapsed();
    const recent = [...(this.#failures.get(key) ?? []).filter((at) => now - at < windowMs), now];
    this.#failures.delete(key);
    if (recent.length >= maxFailures) this.#lockOut(key, now);
    else this.#remember(key, recent);
    return recent.length >= maxFailures;
  }

  /** Returns the whole seconds until the lockout ends; 0 when there is none. */
  secondsLeft(key: string): number {
    const until = this.#lockouts.get(key) ?? this.#othersUntil;
    return Math.max(0, Math.ceil((until - this.#clock.elapsed()) / 1000));
  }

  get hasLockouts(): boolean {
    return this.#lockouts.size > 0;
  }

  #lockOut(key: string, now: number): void {
    for (const [other, until] of this.#lockouts) {
      if (until > now) break;
      this.#lockouts.delete(other);
    }
    this.#lockouts.delete(key); // the map stays in order of the ends
    if (this.#lockouts.size < maxKeys) this.#lockouts.set(key, now + lockoutMs);
    else this.#othersUntil = now + lockoutMs;
  }

  #remember(key: string, failures: readonly number[]): void {
    this.#failures.set(key, failures);
    if (this.#failures.size <= maxKeys) return;
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined) this.#failures.delete(oldest);
  }
}
