/** Metrics of the moment of a scrape: the vault's state and figures that others count. */
import type { Family, Sample } from "./instruments.js";

/** Times in milliseconds. */
export type CurrentFigures = {
  readonly version: string;
  readonly initialized: boolean;
  readonly unlocked: boolean;
  readonly secrets: number | null;
  readonly trashed: number | null;
  readonly idleMs: number;
  readonly idleTimeoutMs: number;
  readonly tokens: number;
  readonly derivations: { readonly running: number; readonly waiting: number };
  readonly keyWorkerCrashes: number;
  /** Of the audit log; null when it is off. */
  readonly losses: { readonly gaps: number; readonly records: number } | null;
  readonly cache: { readonly hits: number; readonly misses: number; readonly bytes: number };
};

export function currentFamilies(figures: CurrentFigures): Family[] {
  return [
    ...ofVault(figures),
    ...ofKeyWorker(figures),
    ...ofAudit(figures),
    ...ofCache(figures),
    ...ofProcess(figures),
  ];
}

function ofVault(figures: CurrentFigures): Family[] {
  const { initialized, unlocked, secrets, trashed, idleMs, idleTimeoutMs, tokens } = figures;
  return [
    gauge("strongroom_vault_initialized", "1 when there is a vault.", Number(initialized)),
    gauge("strongroom_vault_unlocked", "1 while the vault is unlocked.", Number(unlocked)),
    gauge(
      "strongroom_secrets",
      "Stored secrets; missing while the storage fails.",
      ...(secrets === null ? [] : [secrets]),
    ),
    gauge(
      "strongroom_secrets_trashed",
      "Secrets in the trash; missing while the storage fails.",
      ...(trashed === null ? [] : [trashed]),
    ),
    gauge("strongroom_idle_seconds", "Time since the last activity.", idleMs / 1000),
    gauge("strongroom_idle_timeout_seconds", "Idle time after which the vault locks; 0: never.", idleTimeoutMs / 1000),
    gauge("strongroom_client_tokens", "Client tokens.", tokens),
  ];
}

function ofKeyWorker({ derivations, keyWorkerCrashes }: CurrentFigures): Family[] {
  return [
    gauge("strongroom_derivations_running", "Key derivations that are running.", derivations.running),
    gauge("strongroom_derivations_waiting", "Key derivations that wait.", derivations.waiting),
    counter("strongroom_key_worker_restarts_total", "Restarts of the key worker after a crash.", [
      { labels: {}, value: keyWorkerCrashes },
    ]),
  ];
}

function ofAudit({ losses }: CurrentFigures): Family[] {
  const sample = (value: number | undefined) => (value === undefined ? [] : [{ labels: {}, value }]);
  return [
    counter("strongroom_audit_gaps_total", "Gaps in the audit log; missing while it is off.", sample(losses?.gaps)),
    counter("strongroom_audit_lost_records_total", "Records that the gaps stand for.", sample(losses?.records)),
  ];
}

function ofCache({ cache }: CurrentFigures): Family[] {
  const lookups = [
    { labels: { result: "hit" }, value: cache.hits },
    { labels: { result: "miss" }, value: cache.misses },
  ];
  return [
    counter("strongroom_cache_lookups_total", "Lookups in the cache of ciphertext, by result.", lookups),
    gauge("strongroom_cache_bytes", "Memory of the cache of ciphertext.", cache.bytes),
  ];
}

/** Names without a prefix are those that Prometheus' own libraries give. */
function ofProcess({ version }: CurrentFigures): Family[] {
  const { user, system } = process.cpuUsage();
  const { active, idle } = performance.eventLoopUtilization();
  const loop = [
    { labels: { state: "active" }, value: active / 1000 },
    { labels: { state: "idle" }, value: idle / 1000 },
  ];
  return [
    counter("strongroom_event_loop_seconds_total", "Time of the event loop, by state: active or idle.", loop),
    counter("process_cpu_seconds_total", "CPU time of all threads.", [{ labels: {}, value: (user + system) / 1e6 }]),
    gauge("process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss()),
    gauge("process_start_time_seconds", "Start, in seconds since 1970.", performance.timeOrigin / 1000),
    { ...gauge("strongroom_build_info", "The program's version."), samples: [{ labels: { version }, value: 1 }] },
  ];
}

function gauge(name: string, help: string, ...values: number[]): Family {
  return { name, help, type: "gauge", samples: values.map((value) => ({ labels: {}, value })) };
}

function counter(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, help, type: "counter", samples };
}
