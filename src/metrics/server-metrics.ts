/** Metrics of a server: counts of what its observer receives, and the values at the moment of a scrape. */
import type { Clock } from "../clock.js";
import { errorStatuses } from "../errors.js";
import {
  credentials,
  type FinishedRequest,
  lockReasons,
  type Observer,
  type StorageCall,
  storageCalls,
  type VaultEvent,
} from "../observer.js";
import { Counters, type Family, Histograms, labelSeries, print, type Sample, type Series } from "./instruments.js";

const requestBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const storageBounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];
const workerBounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5];
const derivationBounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10];

const single: Series = { count: 1, labels: () => ({}), shown: true };
const unlockResults = ["ok", "wrong"] as const;

export class ServerMetrics implements Observer {
  readonly #requests: RequestSeries;
  readonly #outcomes: Counters;
  readonly #durations: Histograms;
  readonly #keyWorker = new Histograms(single, workerBounds);
  readonly #derivations = new Histograms(single, derivationBounds);
  readonly #storage = new Histograms({ ...labelSeries("operation", storageCalls), shown: false }, storageBounds);
  readonly #storageErrors = new Counters(labelSeries("operation", storageCalls));
  readonly #failures = new Counters(labelSeries("credential", credentials));
  readonly #lockouts = new Counters(labelSeries("credential", credentials));
  readonly #unlocks = new Counters(labelSeries("result", unlockResults));
  readonly #locks = new Counters(labelSeries("reason", lockReasons));
  readonly #delay: EventLoopDelay;

  /** `routes`: the patterns of all endpoints. */
  constructor(routes: readonly string[], clock: Clock) {
    this.#requests = new RequestSeries(routes);
    this.#outcomes = new Counters(this.#requests.outcomes);
    this.#durations = new Histograms(this.#requests.operations, requestBounds);
    this.#delay = new EventLoopDelay(clock);
  }

  requestFinished({ route, method, status, durationMs }: FinishedRequest): void {
    const operation = this.#requests.operation(route, method);
    this.#outcomes.add(this.#requests.outcome(operation, status));
    this.#durations.observe(operation, durationMs / 1000);
  }

  vaultEvent(event: VaultEvent): void {
    if (event.event === "lock") this.#locks.add(lockReasons.indexOf(event.reason));
    if (event.event === "failure") this.#failures.add(credentials.indexOf(event.credential));
    if (event.event === "lockout") this.#lockouts.add(credentials.indexOf(event.credential));
    if (event.event === "unlock") this.#unlocks.add(0);
    if (event.event === "unlock-failed") this.#unlocks.add(1);
    if (event.event === "stop") this.#delay.stop();
  }

  keyWorkerResponded(durationMs: number): void {
    this.#keyWorker.observe(0, durationMs / 1000);
  }

  derivationEnded(durationMs: number): void {
    this.#derivations.observe(0, durationMs / 1000);
  }

  storageReturned(call: StorageCall, durationMs: number, failed: boolean): void {
    const index = storageCalls.indexOf(call);
    this.#storage.observe(index, durationMs / 1000);
    if (failed) this.#storageErrors.add(index);
  }

  /** Returns all metrics in Prometheus' text format. `gauges`: those of the moment. */
  scrape(gauges: readonly Family[]): Promise<string> {
    return print([...this.#counted(), ...gauges]);
  }

  #counted(): Family[] {
    const counter = (name: string, help: string, counters: Counters): Family => {
      return { name: `strongroom_${name}_total`, help, type: "counter", samples: counters.samples() };
    };
    const histogram = (name: string, help: string, samples: Iterable<Sample>): Family => {
      return { name: `strongroom_${name}_seconds`, help, type: "histogram", samples };
    };
    return [
      counter("http_requests", "Finished requests, by route, method and status.", this.#outcomes),
      histogram(
        "http_request_duration",
        "Time until the response was passed to the connection, by route and method.",
        this.#durations.samples(),
      ),
      histogram(
        "key_worker_round_trip",
        "Time until the key worker responded to a message, without derivations.",
        this.#keyWorker.samples(),
      ),
      histogram("derivation_duration", "Time until a key was derived, with the wait.", this.#derivations.samples()),
      histogram("storage_duration", "Time of calls of the storage, by operation.", this.#storage.samples()),
      counter("storage_errors", "Failed calls of the storage, by operation.", this.#storageErrors),
      counter("authentication_failures", "Wrong tokens and passphrases, by credential.", this.#failures),
      counter("lockouts", "Lockouts that began, by credential.", this.#lockouts),
      counter("unlocks", "Unlocks, by result: ok, or wrong passphrase or key.", this.#unlocks),
      counter("locks", "Locks of the unlocked vault, by reason.", this.#locks),
      histogram("event_loop_delay", "Delay of the event loop while someone scrapes.", this.#delay.scrape()),
    ];
  }
}

const unknownRoute = "unknown";
const methods = ["GET", "LIST", "PUT", "POST", "DELETE"] as const;
const otherMethod = methods.length;
const methodCount = methods.length + 1;

/** 0: the client disconnected before its request was complete. */
const statuses = [...new Set([0, 200, 204, 304, 501, ...Object.values(errorStatuses)])].sort((a, b) => a - b);
const otherStatus = statuses.length;
const statusCount = statuses.length + 1;

class RequestSeries {
  readonly #routes: readonly string[];
  readonly #indexOfRoute: ReadonlyMap<string, number>;
  readonly #indexOfMethod = new Map<string, number>(methods.map((method, index) => [method, index]));
  readonly #indexOfStatus = new Map<number, number>(statuses.map((status, index) => [status, index]));

  /** `routes`: the patterns of all endpoints. */
  constructor(routes: readonly string[]) {
    this.#routes = [unknownRoute, ...routes];
    this.#indexOfRoute = new Map(this.#routes.map((route, index) => [route, index]));
  }

  /** By route and method. */
  get operations(): Series {
    const labels = (index: number) => ({
      route: this.#routes[Math.floor(index / methodCount)] ?? unknownRoute,
      method: methods[index % methodCount] ?? "other",
    });
    return { count: this.#routes.length * methodCount, labels, shown: false };
  }

  /** By route, method and status. */
  get outcomes(): Series {
    const { count, labels } = this.operations;
    const status = (index: number) => String(statuses[index % statusCount] ?? "other").replace(/^0$/, "none");
    const both = (index: number) => ({ ...labels(Math.floor(index / statusCount)), status: status(index) });
    return { count: count * statusCount, labels: both, shown: false };
  }

  operation(route: string, method: string): number {
    return (this.#indexOfRoute.get(route) ?? 0) * methodCount + (this.#indexOfMethod.get(method) ?? otherMethod);
  }

  /** `operation`: its index. */
  outcome(operation: number, status: number): number {
    return operation * statusCount + (this.#indexOfStatus.get(status) ?? otherStatus);
  }
}

const periodMs = 20;

/** Time without a scrape, in milliseconds, after which the timer stops. */
const restMs = 300_000;

const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

class EventLoopDelay {
  readonly #clock: Clock;
  readonly #histogram = new Histograms({ count: 1, labels: () => ({}), shown: true }, bounds);
  #timer: NodeJS.Timeout | null = null;
  #scraped = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns what was measured so far, and measures on. */
  scrape(): Iterable<Sample> {
    this.#scraped = this.#clock.elapsed();
    this.#timer ??= this.#start();
    return this.#histogram.samples();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #start(): NodeJS.Timeout {
    let last = this.#clock.elapsed();
    const tick = () => {
      const now = this.#clock.elapsed();
      this.#histogram.observe(0, Math.max(0, now - last - periodMs) / 1000);
      last = now;
      if (now - this.#scraped > restMs) this.stop();
    };
    return setInterval(tick, periodMs).unref();
  }
}
