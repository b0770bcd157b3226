/**
 * Records of what requests and the vault did, from a closed set of members. DANGER: never a value, a passphrase, a token or a
 * digest, and nothing that a client wrote where a path or a name was expected, unless it was found to be one.
 */
import { randomUUID } from "node:crypto";
import type { Settings } from "../config/definitions.js";
import type { BatchItem, FinishedRequest } from "../observer.js";

export type AuditedMode = Exclude<Settings["audit"], "off">;

/** Returns a record's text behind `seq`. Members that are undefined are left out. */
export function textOfRecord(time: string, members: object): string {
  return `,"time":"${time}",${JSON.stringify(members).slice(1)}\n`;
}

const changes: Readonly<Record<string, string>> = {
  "PUT /v1/secrets/:path": "put",
  "DELETE /v1/secrets/:path": "delete",
  "POST /v1/versions/:path": "undo",
  "DELETE /v1/versions/:path": "prune",
  "POST /v1/batch": "batch",
  "POST /v1/init": "init",
  "POST /v1/unlock": "unlock",
  "POST /v1/lock": "lock",
  "POST /v1/shutdown": "shutdown",
  "POST /v1/snapshot": "snapshot",
  "POST /v1/passphrase": "passphrase",
  "POST /v1/rotate": "rotate",
  "POST /v1/keys": "key-create",
  "DELETE /v1/keys/:id": "key-delete",
  "POST /v1/tokens": "token-create",
  "POST /v1/tokens/:name": "token-rotate",
  "DELETE /v1/tokens/:name": "token-revoke",
};

const reads: Readonly<Record<string, string>> = {
  "GET /v1/secrets": "list",
  "GET /v1/secrets/:path": "get",
  "GET /v1/versions/:path": "versions",
};

/** The records' `event`, by route and method. A request without a row, such as the status, has no record. */
const eventsOf = { changes: byRoute(changes), all: byRoute({ ...changes, ...reads }) };

function byRoute(rows: Readonly<Record<string, string>>): ReadonlyMap<string, Readonly<Record<string, string>>> {
  const events = new Map<string, Record<string, string>>();
  for (const [row, event] of Object.entries(rows)) {
    const [method = "", route = ""] = row.split(" ");
    events.set(route, { ...events.get(route), [method]: event });
  }
  return events;
}

/**
 * Returns the texts of a request's records: one, or one for each operation of a batch. A request without a valid token has
 * none, or anyone could fill the log until its oldest files are gone.
 */
export function recordsOf(request: FinishedRequest, mode: AuditedMode, timeNow: () => string): readonly string[] {
  const { method, route, caller, operations } = request;
  const event = eventsOf[mode].get(route)?.[method];
  if (event === undefined || caller === null) return [];
  const time = timeNow();
  if (operations === null || operations.length === 0) return [textOfRequest(request, eventOf(request, event), time)];
  const recorded = mode === "all" ? operations : operations.filter(({ kind }) => kind !== "get");
  return recordsOfBatch(request, recorded, time);
}

/** A list may be asked for as a secret without a path, and a version of a secret as its versions. */
function eventOf({ prefix, version }: FinishedRequest, event: string): string {
  if (prefix !== null) return "list";
  return version !== null && event === "versions" ? "get-version" : event;
}

/** By hand: `JSON.stringify` of an object takes three times as long, and this runs for each get. */
function textOfRequest(request: FinishedRequest, event: string, time: string): string {
  const { caller, address, requestId, path, subject, version, etag, prefix, count, status, code } = request;
  return (
    `,"time":"${time}","event":"${event}"${text("token", caller)}${text("address", address)}` +
    `${text("requestId", requestId)}${text("path", path)}${text("name", subject)}${number("version", version)}` +
    `${text("etag", etag)}${text("prefix", prefix)}${number("count", count)},"status":${status}${text("code", code)}}\n`
  );
}

/** What JSON does not escape. */
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
    textOfRecord(time, { event, token, address, requestId, batch: true, path, to, status, code }),
  );
}
