/** Opening of a server's audit log. */
import { join } from "node:path";
import type { Clock } from "../clock.js";
import type { FileOperations } from "../files/durable.js";
import type { Log } from "../log.js";
import { AuditLog } from "./audit-log.js";
import type { AuditedMode } from "./audit-record.js";
import { AuditWriter } from "./audit-writer.js";

type AuditSurroundings = { readonly files: FileOperations; readonly clock: Clock; readonly log: Log };

/** Nothing is read or written before the first record. `denies`: see `AuditLogOptions`. */
export function openAudit(home: string, mode: AuditedMode, denies: boolean, around: AuditSurroundings): AuditLog {
  const place = { ...around, directory: auditDirectory(home) };
  return new AuditLog({ ...place, writer: new AuditWriter(place), mode, denies });
}

export function auditDirectory(home: string): string {
  return join(home, "audit");
}
