/**
 * Owns the lockout: after 10 failures of one address within 60 s, 300 s of refusals. It stands on express-rate-limit,
 * whose own stores count every request and take the good ones back later; this one is told of failures alone, so that
 * honest requests, however many, at once or broken off, never count.
 */
import type { Request, RequestHandler } from "express";
import { type ClientRateLimitInfo, ipKeyGenerator, rateLimit, type Store } from "express-rate-limit";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";

const maxFailures = 10;
const windowMs = 60_000;
const lockoutMs = 300_000;

/** Addresses remembered at most. Beyond, the one whose last failure is longest ago is forgotten. */
const maxAddresses = 10_000;

type Record = { readonly failures: number[]; lockedUntil: number };

/** Failures by address. To express-rate-limit it shows 1 hit for an address in good standing, 2 for one locked out. */
export class FailureStore implements Store {
  readonly localKeys = true;
  readonly #clock: Clock;
  readonly #records = new Map<string, Record>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a failure; the tenth within the window begins a lockout, and answers true. */
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

  /** Whole seconds until the lockout ends; 0 when there is none. */
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
    this.#records.delete(key); // so that the map's order is that of the last failures
    this.#records.set(key, record);
    if (this.#records.size <= maxAddresses) return;
    const [oldest] = this.#records.keys();
    if (oldest !== undefined) this.#records.delete(oldest);
  }
}

export interface Lockout {
  /** Refuses requests of a locked-out address with 429. */
  readonly gate: RequestHandler;
  /** Counts a failure; true when it begins a lockout. */
  fail(req: Request): boolean;
  /** @throws VaultError RATE_LIMITED while the address is locked out. */
  check(req: Request): void;
}

/** `message` says what there was too much of; `applies` says for which requests the gate is there at all. */
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
    validate: false, // it would complain on the console about proxy headers, which are ignored on purpose
  });
  const isLockedOut = (req: Request) => !store.isEmpty && store.secondsLeft(addressKey(req)) > 0;
  return {
    // The limiter awaits several promises for each request: only those that it will refuse are sent there.
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

/** The socket's address, whatever the request claims: IPv4 whole, also when mapped into IPv6, and IPv6 by its /64. */
function addressKey(req: Request): string {
  return keyOfAddress(addressOf(req));
}

export function addressOf(req: Request): string {
  return req.socket.remoteAddress ?? "";
}

export function keyOfAddress(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return ipKeyGenerator(mapped?.[1] ?? address.replace(/%.*$/, ""), 64);
}
