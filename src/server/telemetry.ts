/** Telemetry of a server: the metrics, which observe, and the audit log, which each step calls by name. */
import type { AuditLog } from "../audit/audit-log.js";
import type { AuditedMode } from "../audit/record.js";
import type { Settings } from "../config/definitions.js";
import type { Home } from "../files/home.js";
import { endpointTable } from "../http/endpoints.js";
import { ServerMetrics } from "../metrics/server-metrics.js";
import { Observers, requestLog } from "../observer.js";
import { Vitals } from "../vitals.js";
import type { AllDependencies } from "./server-handle.js";

export type Telemetry = {
  readonly observers: Observers;
  readonly metrics: ServerMetrics;
  readonly audit: AuditLog | null;
  readonly vitals: Vitals;
};

/** `routes`: patterns of the endpoints that are no native ones. */
export async function startTelemetry(
  home: Home,
  settings: Settings,
  around: AllDependencies,
  routes: readonly string[],
): Promise<Telemetry> {
  const { clock, log, observer } = around;
  const observers = new Observers(log);
  const metrics = new ServerMetrics([...endpointTable.patterns, ...routes], clock);
  const vitals = new Vitals(observers);
  const audit = settings.audit === "off" ? null : await openAuditLog(home, settings.audit, settings, around);
  for (const each of [metrics, log.writes("debug") && requestLog(log), observer]) if (each) observers.add(each);
  return { observers, metrics, audit, vitals };
}

/** The audit log's code is loaded only for those who use it. */
async function openAuditLog(
  home: Home,
  mode: AuditedMode,
  { auditOnFailure }: Settings,
  { files, clock, log }: AllDependencies,
): Promise<AuditLog> {
  const { openAudit } = await import("../audit/audit-log.js");
  return openAudit(home.path, mode, auditOnFailure === "deny", { files, clock, log });
}
