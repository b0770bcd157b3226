/** What `strongroom top` shows of an interval: figures of the requests and of what is behind them. */
import type { Interval } from "./metric-samples.js";

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
  /** Of the interval. */
  readonly seconds: number;
  /** Null while the storage does not answer. */
  readonly secrets: number | null;
  readonly residentBytes: number;
  /** Of one processor; above 1 where several threads were busy. */
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

export function loadOf(interval: Interval): ServerLoad {
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

/** The busiest first; those without requests in the interval are left out. */
function operationsIn(interval: Interval): OperationLoad[] {
  const duration = "strongroom_http_request_duration_seconds";
  const loads = interval.labels(`${duration}_count`).map(({ method, route }) => {
    const isOf = (labels: Readonly<Record<string, string>>) => labels["method"] === method && labels["route"] === route;
    const hasFailed = ({ status = "" }: Readonly<Record<string, string>>) => !/^[123]/.test(status);
    const requests = (matches: typeof isOf) =>
      interval.grown("strongroom_http_requests_total", matches) / interval.seconds;
    return {
      operation: `${method} ${route}`,
      perSecond: requests(isOf),
      failedPerSecond: requests((labels) => isOf(labels) && hasFailed(labels)),
      p50: measured(interval.quantile(0.5, duration, isOf)),
      p99: measured(interval.quantile(0.99, duration, isOf)),
    };
  });
  return loads.filter(({ perSecond }) => perSecond > 0).sort((a, b) => b.perSecond - a.perSecond);
}

function measured(seconds: number): number | null {
  return Number.isNaN(seconds) ? null : seconds;
}
