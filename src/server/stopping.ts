/** Stop of a server: once, however often it is requested, and within a limited time. */
import { once } from "node:events";
import { systemClock, withTimeout } from "../clock.js";
import type { Log } from "../log.js";
import { stopMs } from "./server-handle.js";

type Stopper = {
  readonly signal: AbortSignal;
  /** Further calls return the same promise. */
  readonly stop: () => Promise<void>;
  /** Resolves when the stop begins. */
  readonly stopping: Promise<unknown>;
  readonly stopped: Promise<void>;
};

/** `work` runs once, whether the endpoint, a signal or a test asks first. */
export function createStopper(work: () => Promise<void>): Stopper {
  const request = new AbortController();
  const { signal } = request;
  const stopping = once(signal, "abort");
  const stopped = stopping.then(work);
  const stop = (): Promise<void> => {
    request.abort();
    return stopped;
  };
  return { signal, stop, stopping, stopped };
}

/** Waits until all have ended, for at most `stopMs`, and logs what failed. */
export async function awaitEnds(works: readonly Promise<unknown>[], log: Log): Promise<void> {
  log.info({ event: "stopping" });
  const ends = await within(stopMs, Promise.allSettled(works));
  for (const end of ends === "late" ? [] : ends) {
    if (end.status === "rejected") log.error({ event: "stop-failed", error: end.reason });
  }
  log.info({ event: "stopped" });
}

/** Waits at most this long, in real time: a disk that hangs must not keep the process alive. */
export function within<T>(ms: number, work: Promise<T>): Promise<T | "late"> {
  return withTimeout(systemClock, ms, work);
}

export async function openOrRelease<T>(opened: { close(): Promise<unknown> }, next: () => Promise<T>): Promise<T> {
  try {
    return await next();
  } catch (error) {
    await opened.close();
    throw error;
  }
}
