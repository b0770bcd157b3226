/** Metrics of the moment of a scrape, each read where it is shown: a gauge is a line here. */
import type { ClientTokens } from "../access/tokens.js";
import type { AuditLog } from "../audit/audit-log.js";
import type { Settings } from "../config/definitions.js";
import type { Family, Sample } from "../metrics/instruments.js";
import type { VaultFigures } from "../vault/status.js";

type Measured = {
  readonly figures: VaultFigures;
  readonly settings: Pick<Settings, "idleTimeoutMs">;
  readonly tokens: Pick<ClientTokens, "count">;
  /** Null: it is off. */
  readonly audit: Pick<AuditLog, "losses"> | null;
  /** The program's. */
  readonly version: string;
};

export function currentGauges(measured: Measured): Family[] {
  return [
    ...ofVault(measured),
    ...ofKeyWorker(measured.figures),
    ...ofAudit(measured),
    ...ofCache(measured.figures),
    ...ofProcess(measured),
  ];
}

function ofVault({ figures, settings, tokens }: Measured): Family[] {
  const { initialized, unlocked, secrets, trashed, idleMs } = figures;
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
    gauge(
      "strongroom_idle_timeout_seconds",
      "Idle time after which the vault locks; 0: never.",
      settings.idleTimeoutMs / 1000,
    ),
    gauge("strongroom_client_tokens", "Client tokens.", tokens.count),
  ];
}

function ofKeyWorker({ derivations, keyWorkerCrashes }: VaultFigures): Family[] {
  return [
    gauge("strongroom_derivations_running", "Key derivations that are running.", derivations.running),
    gauge("strongroom_derivations_waiting", "Key derivations that wait.", derivations.waiting),
    counter("strongroom_key_worker_restarts_total", "Restarts of the key worker after a crash.", [
      { labels: {}, value: keyWorkerCrashes },
    ]),
  ];
}

function ofAudit({ audit }: Measured): Family[] {
  const losses = audit?.losses;
  const sample = (value: number | undefined) => (value === undefined ? [] : [{ labels: {}, value }]);
  return [
    counter("strongroom_audit_gaps_total", "Gaps in the audit log; missing while it is off.", sample(losses?.gaps)),
    counter("strongroom_audit_lost_records_total", "Records that the gaps stand for.", sample(losses?.records)),
  ];
}

function ofCache({ cache }: VaultFigures): Family[] {
  const lookups = [
    { labels: { result: "hit" }, value: cache.hits },
    { labels: { result: "miss" }, value: cache.misses },
  ];
  return [
    counter("strongroom_cache_lookups_total", "Lookups in the cache of ciphertext, by result.", lookups),
    gauge("strongroom_cache_bytes", "Memory of the cache of ciphertext.", cache.bytes),
  ];
}

/** Names without a prefix are those of Prometheus' own libraries. */
function ofProcess({ version }: Measured): Family[] {
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
