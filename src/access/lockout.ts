/**
 * Lockout of an address after too many failures. Only failures count, so that valid requests never do, however many run at
 * once or are cancelled.
 */
import type { IncomingMessage } from "node:http";
import { ipKeyGenerator } from "express-rate-limit";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { Credential } from "../observer.js";

export interface Lockout {
  /** Counts a failure. */
  fail(req: IncomingMessage): void;
  /** @throws VaultError RATE_LIMITED while the address is locked out. */
  check(req: IncomingMessage): void;
  /** Like `fail` and `check`, for a connection that is not HTTP's. */
  failFrom(address: string): void;
  checkFrom(address: string): void;
}

export type LockoutRules = {
  /** Name of the counted failures, for the client and the log: "wrong tokens". */
  readonly failures: string;
  readonly credential: Credential;
  /** Returns what counts as one address. */
  readonly addressKey: (address: string) => string;
};

/** Called for each failure, and after it when it begins a lockout. */
type Report = (event: "failure" | "lockout", address: string) => void;

export function createLockout(clock: Clock, log: Log, { failures, addressKey }: LockoutRules, report: Report): Lockout {
  const store = new FailureStore(clock);
  const failureLog = new FailureLog(clock, log, failures);
  const failFrom = (address: string) => {
    const begins = store.fail(addressKey(address));
    failureLog.add(address);
    report("failure", address);
    if (begins) report("lockout", address);
  };
  const checkFrom = (address: string) => {
    const retryAfter = store.secondsLeft(addressKey(address));
    if (retryAfter === 0) return;
    const problem = `too many ${failures} from this address: wait, then try again`;
    throw new VaultError("RATE_LIMITED", problem, { retryAfter });
  };
  return {
    failFrom,
    checkFrom,
    fail: (req) => failFrom(clientAddress(req)),
    check: (req) => {
      if (store.hasLockouts) checkFrom(clientAddress(req));
    },
  };
}

/**
 * Returns the socket's address, regardless of proxy headers. The only connections without TLS are those of the Unix
 * socket: they count together, and apart from all addresses.
 */
export function clientAddress({ socket }: IncomingMessage): string {
  if (!("encrypted" in socket)) return "unix";
  return socket.remoteAddress ?? "";
}

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

const periodMs = 60_000;

/** Most addresses counted within a period. */
const maxAddresses = 10_000;

class FailureLog {
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

/** Expects an address as the system reports it. */
export function isLoopback(address: string): boolean {
  return address === "::1" || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/i.test(address);
}

/** Returns an IPv4 address whole, also when mapped into IPv6, and an IPv6 address by its /64. */
export function keyOfAddress(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return ipKeyGenerator(mapped?.[1] ?? address.replace(/%.*$/, ""), 64);
}

/** Returns one key for all loopback addresses: any local user may bind any of them. */
export function keyOfOrigin(address: string): string {
  return isLoopback(address) ? "loopback" : keyOfAddress(address);
}
