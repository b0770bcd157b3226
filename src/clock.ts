/** Time as a parameter, so that tests can control it. */

export interface Clock {
  /** The wall clock, in milliseconds since 1970 UTC. */
  now(): number;
  /** Monotonic milliseconds: setting the wall clock does not change them. */
  elapsed(): number;
  /** Calls back once after `ms` milliseconds without keeping the process alive; returns a function that cancels it. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Returns the work's result, or "late" after `ms` milliseconds; the work continues. */
export function withTimeout<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | "late"> {
  let cancel = () => {};
  const timeout = new Promise<"late">((resolve) => {
    cancel = clock.after(ms, () => resolve("late"));
  });
  return Promise.race([work, timeout]).finally(() => cancel());
}
