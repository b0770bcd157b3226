/** Load that `strongroom top` shows for an interval, from two scrapes of Prometheus' text format. */

/** Times in seconds; null where nothing was measured. */
export type OperationLoad = {
  readonly operation: string;
  readonly perSecond: number;
  /** Responses with a status of 400 or more, or none. */
  readonly failedPerSecond: number;
  readonly p50: number | null;
  readonly p99: number | null;
};

export type ServerLoad = {
  readonly version: string;
  readonly initialized: boolean;
  readonly unlocked: boolean;
  readonly uptime: number;
  /** Length of the interval. */
  readonly seconds: number;
  /** Null while the storage does not respond. */
  readonly secrets: number | null;
  readonly residentBytes: number;
  /** Share of one processor; above 1 where several threads were busy. */
  readonly cpu: number;
  readonly operations: readonly OperationLoad[];
  readonly derivations: { readonly running: number; readonly waiting: number; readonly p99: number | null };
  readonly keyWorkerP99: number | null;
  readonly readP99: number | null;
  readonly commitP99: number | null;
  readonly storageErrors: number;
  readonly eventLoop: { readonly delayP99: number | null; readonly busy: number };
  /** Share of the lookups; null without any. */
  readonly cacheHits: number | null;
  readonly wrongCredentials: number;
  readonly lockouts: number;
  readonly auditLost: number;
};

export function serverLoad(interval: Interval): ServerLoad {
  const { seconds } = interval;
  const [build] = interval.labels("strongroom_build_info");
  const storage = (operation: string) =>
    measured(
      interval.quantile(0.99, "strongroom_storage_duration_seconds", (labels) => labels["operation"] === operation),
    );
  const lookups = interval.grown("strongroom_cache_lookups_total");
  const hits = interval.grown("strongroom_cache_lookups_total", ({ result }) => result === "hit");
  return {
    version: build?.["version"] ?? "",
    initialized: interval.now("strongroom_vault_initialized") === 1,
    unlocked: interval.now("strongroom_vault_unlocked") === 1,
    uptime: Math.max(0, Date.now() / 1000 - interval.now("process_start_time_seconds")),
    seconds,
    secrets: interval.labels("strongroom_secrets").length === 0 ? null : interval.now("strongroom_secrets"),
    residentBytes: interval.now("process_resident_memory_bytes"),
    cpu: interval.grown("process_cpu_seconds_total") / seconds,
    operations: operationsIn(interval),
    derivations: {
      running: interval.now("strongroom_derivations_running"),
      waiting: interval.now("strongroom_derivations_waiting"),
      p99: measured(interval.quantile(0.99, "strongroom_derivation_duration_seconds")),
    },
    keyWorkerP99: measured(interval.quantile(0.99, "strongroom_key_worker_round_trip_seconds")),
    readP99: storage("read"),
    commitP99: storage("commit"),
    storageErrors: interval.grown("strongroom_storage_errors_total"),
    eventLoop: {
      delayP99: measured(interval.quantile(0.99, "strongroom_event_loop_delay_seconds")),
      busy: interval.grown("strongroom_event_loop_seconds_total", ({ state }) => state === "active") / seconds,
    },
    cacheHits: lookups === 0 ? null : hits / lookups,
    wrongCredentials: interval.grown("strongroom_authentication_failures_total"),
    lockouts: interval.grown("strongroom_lockouts_total"),
    auditLost: interval.grown("strongroom_audit_lost_records_total"),
  };
}

/** Busiest operations first; operations without requests in the interval are left out. */
function operationsIn(interval: Interval): OperationLoad[] {
  const duration = "strongroom_http_request_duration_seconds";
  const loads = interval.labels(`${duration}_count`).map(({ method, route }) => {
    const isOperation = (labels: Readonly<Record<string, string>>) =>
      labels["method"] === method && labels["route"] === route;
    const hasFailed = ({ status = "" }: Readonly<Record<string, string>>) => !/^[123]/.test(status);
    const requests = (matches: typeof isOperation) =>
      interval.grown("strongroom_http_requests_total", matches) / interval.seconds;
    return {
      operation: `${method} ${route}`,
      perSecond: requests(isOperation),
      failedPerSecond: requests((labels) => isOperation(labels) && hasFailed(labels)),
      p50: measured(interval.quantile(0.5, duration, isOperation)),
      p99: measured(interval.quantile(0.99, duration, isOperation)),
    };
  });
  return loads.filter(({ perSecond }) => perSecond > 0).sort((a, b) => b.perSecond - a.perSecond);
}

function measured(seconds: number): number | null {
  return Number.isNaN(seconds) ? null : seconds;
}

type MetricSample = { readonly labels: Readonly<Record<string, string>>; readonly value: number };

/** One scrape: samples by the name of their metric. `at`: milliseconds, of a clock that is never set. */
export type MetricSamples = { readonly at: number; readonly byName: ReadonlyMap<string, readonly MetricSample[]> };

const line = /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>.*)\})? (?<value>\S+)$/;

export function parseSamples(text: string, at: number): MetricSamples {
  const byName = new Map<string, MetricSample[]>();
  for (const each of text.split("\n")) {
    const { name, labels = "", value } = (each.startsWith("#") ? null : line.exec(each))?.groups ?? {};
    if (name === undefined) continue;
    const samples = byName.get(name) ?? [];
    samples.push({ labels: parseLabels(labels), value: Number(value) });
    byName.set(name, samples);
  }
  return { at, byName };
}

function parseLabels(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value]));
}

type Labels = Readonly<Record<string, string>>;
type Matches = (labels: Labels) => boolean;

/** Changes from one scrape to the next; without an earlier scrape, since the server's start. */
export class Interval {
  readonly #before: MetricSamples | null;
  readonly #after: MetricSamples;
  readonly seconds: number;

  constructor(before: MetricSamples | null, after: MetricSamples) {
    const hasRestarted = before !== null && processStart(before) !== processStart(after);
    this.#before = hasRestarted ? null : before;
    this.#after = after;
    this.seconds =
      this.#before === null
        ? Math.max(1, Date.now() / 1000 - processStart(after))
        : (after.at - this.#before.at) / 1000;
  }

  /** The labels of all series of a metric. */
  labels(name: string): readonly Labels[] {
    return (this.#after.byName.get(name) ?? []).map(({ labels }) => labels);
  }

  /** The sum of the series now; of a gauge. */
  now(name: string): number {
    return sum(this.#after, name, () => true);
  }

  /** Returns the growth of the sum of a counter's series. */
  grown(name: string, matches: Matches = () => true): number {
    return sum(this.#after, name, matches) - (this.#before === null ? 0 : sum(this.#before, name, matches));
  }

  /** A quantile of a histogram in seconds, within its bucket as if evenly spread; NaN without observations. */
  quantile(q: number, name: string, matches: Matches = () => true): number {
    const bounds = [...new Set(this.labels(`${name}_bucket`).map(({ le = "" }) => le))];
    const buckets = bounds.map((le) => ({
      bound: le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le),
      count: this.grown(`${name}_bucket`, (labels) => labels["le"] === le && matches(labels)),
    }));
    return histogramQuantile(q, buckets);
  }
}

function processStart({ byName }: MetricSamples): number {
  return byName.get("process_start_time_seconds")?.[0]?.value ?? 0;
}

function sum({ byName }: MetricSamples, name: string, matches: Matches): number {
  return (byName.get(name) ?? []).reduce((total, { labels, value }) => total + (matches(labels) ? value : 0), 0);
}

/** `count`: of observations up to the bound. */
export function histogramQuantile(
  q: number,
  buckets: readonly { readonly bound: number; readonly count: number }[],
): number {
  const ordered = [...buckets].sort((a, b) => a.bound - b.bound);
  const total = ordered.at(-1)?.count ?? 0;
  if (total === 0) return Number.NaN;
  const at = ordered.findIndex(({ count }) => count >= q * total);
  const [below, bucket] = [ordered[at - 1] ?? { bound: 0, count: 0 }, ordered[at]];
  if (bucket === undefined || bucket.bound === Number.POSITIVE_INFINITY) return below.bound;
  const share = (q * total - below.count) / (bucket.count - below.count || 1);
  return below.bound + share * (bucket.bound - below.bound);
}
