/**
 * Records of what requests and the vault did, from a closed set of members. DANGER: never a value, a passphrase, a token or a
 * digest, and nothing that a client wrote where a path or a name was expected, unless it was found to be one.
 */
import { randomUUID } from "node:crypto";
import type { Settings } from "../config/definitions.js";
import type { ChangeEvent, ReadEvent, ServerRecord } from "../contract/audit-events.js";
import type { BatchItem, FinishedRequest } from "../observer.js";

export type AuditedMode = Exclude<Settings["audit"], "off">;

/** Why a checkpoint is made. */
export type CheckpointReason = "init" | "unlock" | "lock" | "time" | "records" | "file" | "key";

/** Kind of mismatch in the log of an earlier server. */
export type Mismatch = "chain" | "wrong" | "unknown";

type RequestRecord = { readonly event: ChangeEvent | ReadEvent | BatchItem["kind"]; readonly status: number } & {
  readonly [M in "token" | "address" | "requestId" | "path" | "to" | "code"]?: string | null | undefined;
} & { readonly batch?: true };

/** Any event that a record may have. */
export type AuditEvent = ChangeEvent | ReadEvent | (ServerRecord | RequestRecord)["event"];

/** Returns a record's text behind `seq`. Members that are undefined are left out. */
export function auditRecordText(time: string, members: ServerRecord | RequestRecord): string {
  return `,"time":"${time}",${JSON.stringify(members).slice(1)}\n`;
}

/** The records' `event` for an endpoint. `mode`: from which mode on it is recorded. */
export type AuditedEvent =
  | { readonly event: ChangeEvent; readonly mode: "changes" }
  | { readonly event: ReadEvent; readonly mode: "all" };

export function change(event: ChangeEvent): AuditedEvent {
  return { event, mode: "changes" };
}

export function read(event: ReadEvent): AuditedEvent {
  return { event, mode: "all" };
}

/**
 * Returns the texts of a request's records: one, or one for each operation of a batch. A request without a valid token has
 * none, or anyone could fill the log until its oldest files are gone.
 */
export function requestRecords(
  audited: AuditedEvent,
  request: FinishedRequest,
  mode: AuditedMode,
  timeNow: () => string,
): readonly string[] {
  const { caller, operations } = request;
  if (caller === null || (audited.mode === "all" && mode !== "all")) return [];
  const time = timeNow();
  if (operations === null || operations.length === 0) return [textOfRequest(request, audited.event, time)];
  const recorded = mode === "all" ? operations : operations.filter(({ kind }) => kind !== "get");
  return recordsOfBatch(request, recorded, time);
}

/** By hand: `JSON.stringify` of an object takes longer, and this runs for each get. */
function textOfRequest(request: FinishedRequest, event: AuditEvent, time: string): string {
  const { caller, address, requestId, path, subject, key, version, etag, prefix, count, status, code } = request;
  return (
    `,"time":"${time}","event":"${event}"${text("token", caller)}${text("address", address)}` +
    `${text("requestId", requestId)}${text("path", path)}${text("name", subject)}${key === null ? "" : textOfKey(key)}${number("version", version)}` +
    `${text("etag", etag)}${text("prefix", prefix)}${number("count", count)},"status":${status}${text("code", code)}}\n`
  );
}

function textOfKey({ id, kind, label }: NonNullable<FinishedRequest["key"]>): string {
  return `${text("name", id)}${text("kind", kind)}${text("label", label)}`;
}

/** Text that JSON does not escape. */
const plain = /^[\w./:-]*$/;

function text(name: string, value: string | null): string {
  if (value === null) return "";
  return plain.test(value) ? `,"${name}":"${value}"` : `,"${name}":${JSON.stringify(value)}`;
}

function number(name: string, value: number | null): string {
  return value === null ? "" : `,"${name}":${value}`;
}

/** They share a request id. `status` and `code` are those of the whole batch. */
function recordsOfBatch(request: FinishedRequest, operations: readonly BatchItem[], time: string): readonly string[] {
  const { caller: token, address, status } = request;
  const [requestId, code] = [request.requestId ?? randomUUID(), request.code ?? undefined];
  return operations.map(({ kind: event, path, to }) =>
    auditRecordText(time, { event, token, address, requestId, batch: true, path, to, status, code }),
  );
}
