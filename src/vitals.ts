/** Figures of the last second, for those who watch the server live. They cost nothing while it is not watched. */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { FinishedRequest, Observer, Observers } from "./observer.js";

/** Sources that are read each second. */
export type VitalSources = {
  readonly derivations: () => { readonly running: number; readonly waiting: number };
  readonly connections: () => Promise<number>;
  readonly now: () => number;
};

type Watcher = (line: string) => void;

const periodMs = 1000;
const resolutionMs = 10;
/** More durations in one second change no percentile. */
const mostSamples = 4096;
const getRoute = "/v1/secrets/:path";

export class Vitals implements Observer {
  readonly #observers: Observers;
  #sources: VitalSources | null = null;
  readonly #watchers = new Set<Watcher>();
  #timer: NodeJS.Timeout | null = null;
  #delay: IntervalHistogram | null = null;
  #requests = 0;
  #gets: number[] = [];
  #roundTrips: number[] = [];
  #stormGets: number[] = [];
  #bareRequests: number[] = [];

  /** Observes while it is watched. */
  constructor(observers: Observers) {
    this.#observers = observers;
  }

  /** Must come before the first watcher. */
  setSources(sources: VitalSources): void {
    this.#sources = sources;
  }

  /** Calls `watcher` each second with the figures as a line of JSON; returns what ends that. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    this.#start();
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#stop();
    };
  }

  requestFinished({ route, method, durationMs }: FinishedRequest): void {
    this.#requests++;
    if (route === getRoute && method === "GET" && this.#gets.length < mostSamples) this.#gets.push(durationMs);
  }

  keyWorkerResponded(durationMs: number): void {
    if (this.#roundTrips.length < mostSamples) this.#roundTrips.push(durationMs);
  }

  /** A get during a storm of the review page took so many milliseconds, from the request to the end of its response. */
  stormGet(ms: number): void {
    if (this.#timer !== null) this.#stormGets.push(ms);
  }

  /** Like `stormGet`, of a bare server beside it. */
  bareRequest(ms: number): void {
    if (this.#timer !== null) this.#bareRequests.push(ms);
  }

  #start(): void {
    if (this.#timer !== null) return;
    this.#delay = monitorEventLoopDelay({ resolution: resolutionMs });
    this.#delay.enable();
    this.#timer = setInterval(() => void this.#tell(), periodMs).unref();
    this.#observers.add(this);
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#observers.remove(this);
    this.#delay?.disable();
    this.#delay = null;
    this.#reset();
  }

  #reset(): void {
    this.#requests = 0;
    this.#gets = [];
    this.#roundTrips = [];
    this.#stormGets = [];
    this.#bareRequests = [];
    this.#delay?.reset();
  }

  async #tell(): Promise<void> {
    const sources = this.#sources;
    if (sources === null) return;
    const connections = await sources.connections();
    const { running, waiting } = sources.derivations();
    const delayMs = (this.#delay?.percentile(99) ?? 0) / 1e6 - resolutionMs;
    // Milliseconds and bytes; null where nothing happened.
    const line = `${JSON.stringify({
      time: new Date(sources.now()).toISOString(),
      requests: this.#requests,
      getP50: percentile(this.#gets, 0.5),
      getP99: percentile(this.#gets, 0.99),
      eventLoopP99: rounded(Math.max(0, delayMs)),
      derivationsRunning: running,
      derivationsWaiting: waiting,
      keyWorkerP99: percentile(this.#roundTrips, 0.99),
      connections,
      rss: process.memoryUsage.rss(),
      stormGetP99: percentile(this.#stormGets, 0.99),
      bareP99: percentile(this.#bareRequests, 0.99),
    })}\n`;
    this.#reset();
    for (const watcher of [...this.#watchers]) watcher(line);
  }
}

/** To microseconds; null where nothing happened. */
export function percentile(durations: number[], share: number): number | null {
  const sorted = durations.sort((a, b) => a - b);
  const found = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return found === undefined ? null : rounded(found);
}

/** To microseconds. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
