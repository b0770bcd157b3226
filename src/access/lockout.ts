/**
 * Lockout of an address after too many failures. Only failures count, so that valid requests never do, however many run at
 * once or are cancelled.
 */
import type { IncomingMessage } from "node:http";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { Credential } from "../observer.js";
import { FailureLog } from "./failure-log.js";
import { FailureStore } from "./failure-store.js";

export interface Lockout {
  /** Counts a failure. */
  fail(req: IncomingMessage): void;
  /** @throws VaultError RATE_LIMITED while the address is locked out. */
  check(req: IncomingMessage): void;
}

export type LockoutRules = {
  /** What is counted, for the client and the log: "wrong tokens". */
  readonly failures: string;
  readonly credential: Credential;
  /** Returns what counts as one address. */
  readonly keyOf: (address: string) => string;
};

/** Called for each failure, and after it when it begins a lockout. */
type Report = (event: "failure" | "lockout", address: string) => void;

export function createLockout(clock: Clock, log: Log, { failures, keyOf }: LockoutRules, report: Report): Lockout {
  const store = new FailureStore(clock);
  const failureLog = new FailureLog(clock, log, failures);
  return {
    fail(req) {
      const address = addressOf(req);
      const begins = store.fail(keyOf(address));
      failureLog.add(address);
      report("failure", address);
      if (begins) report("lockout", address);
    },
    check(req) {
      const retryAfter = store.hasLockouts ? store.secondsLeft(keyOf(addressOf(req))) : 0;
      if (retryAfter === 0) return;
      const problem = `too many ${failures} from this address: wait, then try again`;
      throw new VaultError("RATE_LIMITED", problem, { retryAfter });
    },
  };
}

/**
 * Returns the socket's address, regardless of proxy headers. The only connections without TLS are those of the Unix
 * socket: they count together, and apart from all addresses.
 */
export function addressOf({ socket }: IncomingMessage): string {
  if (!("encrypted" in socket)) return "unix";
  return socket.remoteAddress ?? "";
}
