/** Owns what the program knows of time, as one parameter that tests can move by hand. */

export interface Clock {
  /** The wall clock, in milliseconds since 1970 UTC. */
  now(): number;
  /** Milliseconds since some moment; whoever sets the wall clock does not move it. */
  elapsed(): number;
  /** Calls back once after `ms` milliseconds, without keeping the process alive; the answer cancels it. */
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
