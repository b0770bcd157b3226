/**
 * Lockout of an address after too many failures, on top of express-rate-limit. Its own stores count every request and
 * subtract successes later; ours counts only failures, so that valid requests never count, however many run at once or
 * are cancelled.
 */
import type { Request, RequestHandler } from "express";
import { rateLimit } from "express-rate-limit";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { Credential } from "../observer.js";
import { FailureLog } from "./failure-log.js";
import { FailureStore, windowMs } from "./failure-store.js";

export interface Lockout {
  /** Refuses requests of a locked-out address with 429. */
  readonly gate: RequestHandler;
  /** Counts a failure. */
  fail(req: Request): void;
  /** @throws VaultError RATE_LIMITED while the address is locked out. */
  check(req: Request): void;
}

export type LockoutRules = {
  /** What is counted, for the client and the log: "wrong tokens". */
  readonly failures: string;
  readonly credential: Credential;
  /** Returns what counts as one address. */
  readonly keyOf: (address: string) => string;
  /** Whether the gate checks a request. */
  readonly applies: (req: Request) => boolean;
};

/** Called for each failure, and after it when it begins a lockout. */
type Report = (event: "failure" | "lockout", address: string) => void;

export function createLockout(clock: Clock, log: Log, rules: LockoutRules, report: Report): Lockout {
  const { failures, keyOf, applies } = rules;
  const store = new FailureStore(clock);
  const failureLog = new FailureLog(clock, log, failures);
  const addressKey = (req: Request) => keyOf(addressOf(req));
  const refusal = (req: Request) => {
    const retryAfter = store.secondsLeft(addressKey(req));
    return new VaultError("RATE_LIMITED", `too many ${failures} from this address: wait, then try again`, {
      retryAfter,
    });
  };
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
  const isLockedOut = (req: Request) => store.hasLockouts && store.secondsLeft(addressKey(req)) > 0;
  return {
    // The limiter awaits several promises, so only requests that it will refuse get there.
    gate(req, res, next) {
      if (applies(req) && isLockedOut(req)) void limit(req, res, next);
      else next();
    },
    fail(req) {
      const address = addressOf(req);
      const begins = store.fail(addressKey(req));
      failureLog.add(address);
      report("failure", address);
      if (begins) report("lockout", address);
    },
    check(req) {
      if (isLockedOut(req)) throw refusal(req);
    },
  };
}

/**
 * Returns the socket's address, regardless of proxy headers. The only connections without TLS are those of the Unix
 * socket: they count together, and apart from all addresses.
 */
export function addressOf({ socket }: Request): string {
  if (!("encrypted" in socket)) return "unix";
  return socket.remoteAddress ?? "";
}
