/**
 * Lockout of an address for 300 s after 10 failures within 60 s, on top of express-rate-limit. Its own stores count every
 * request and subtract successes later; this one counts only failures, so that valid requests never count, however many
 * run at once or are cancelled.
 */
import type { Request, RequestHandler } from "express";
import { type ClientRateLimitInfo, ipKeyGenerator, rateLimit, type Store } from "express-rate-limit";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";

const maxFailures = 10;
const windowMs = 60_000;
const lockoutMs = 300_000;

/** Most addresses in the table. Beyond that, the address with the oldest last failure is dropped. */
const maxAddresses = 10_000;

type Record = { readonly failures: number[]; lockedUntil: number };

/** Failures by address. Reports 2 hits to express-rate-limit for a locked-out address, 1 for any other. */
export class FailureStore implements Store {
  readonly localKeys = true;
  readonly #clock: Clock;
  readonly #records = new Map<string, Record>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a failure; returns true when it begins a lockout (the tenth within the window). */
  fail(key: string): boolean {
    const now = this.#clock.elapsed();
    const record = this.#records.get(key) ?? { failures: [], lockedUntil: 0 };
    if (now < record.lockedUntil) return false;
    const recent = record.failures.filter((at) => now - at < windowMs);
    recent.push(now);
    const locked = recent.length >= maxFailures;
    this.#remember(key, locked ? { failures: [], lockedUntil: now + lockoutMs } : { failures: recent, lockedUntil: 0 });
    return locked;
  }

  /** Returns the whole seconds until the lockout ends; 0 when there is none. */
  secondsLeft(key: string): number {
    const left = (this.#records.get(key)?.lockedUntil ?? 0) - this.#clock.elapsed();
    return Math.max(0, Math.ceil(left / 1000));
  }

  get isEmpty(): boolean {
    return this.#records.size === 0;
  }

  increment(key: string): ClientRateLimitInfo {
    return { totalHits: this.secondsLeft(key) > 0 ? 2 : 1, resetTime: undefined };
  }

  decrement(): void {}

  resetKey(key: string): void {
    this.#records.delete(key);
  }

  #remember(key: string, record: Record): void {
    this.#records.delete(key); // keeps the map in order of the last failures
    this.#records.set(key, record);
    if (this.#records.size <= maxAddresses) return;
    const [oldest] = this.#records.keys();
    if (oldest !== undefined) this.#records.delete(oldest);
  }
}

export interface Lockout {
  /** Refuses requests of a locked-out address with 429. */
  readonly gate: RequestHandler;
  /** Counts a failure; returns true when it begins a lockout. */
  fail(req: Request): boolean;
  /** @throws VaultError RATE_LIMITED while the address is locked out. */
  check(req: Request): void;
}

/** `message`: sent to the client; `applies`: the requests that the gate checks. */
export function createLockout(clock: Clock, message: string, applies: (req: Request) => boolean): Lockout {
  const store = new FailureStore(clock);
  const refusal = (req: Request) =>
    new VaultError("RATE_LIMITED", message, { retryAfter: store.secondsLeft(addressKey(req)) });
  const limit = rateLimit({
    store,
    limit: 1,
    windowMs,
    keyGenerator: addressKey,
    handler: (req, _res, next) => next(refusal(req)),
    standardHeaders: false,
    legacyHeaders: false,
    validate: false, // it would warn on the console about proxy headers, which are ignored on purpose
  });
  const isLockedOut = (req: Request) => !store.isEmpty && store.secondsLeft(addressKey(req)) > 0;
  return {
    // The limiter awaits several promises, so only requests that it will refuse get there.
    gate(req, res, next) {
      if (applies(req) && isLockedOut(req)) void limit(req, res, next);
      else next();
    },
    fail: (req) => store.fail(addressKey(req)),
    check(req) {
      if (isLockedOut(req)) throw refusal(req);
    },
  };
}

/** The socket's address, regardless of proxy headers. */
function addressKey(req: Request): string {
  return keyOfAddress(addressOf(req));
}

export function addressOf(req: Request): string {
  return req.socket.remoteAddress ?? "";
}

/** Returns an IPv4 address whole, also when mapped into IPv6, and an IPv6 address by its /64. */
export function keyOfAddress(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return ipKeyGenerator(mapped?.[1] ?? address.replace(/%.*$/, ""), 64);
}
