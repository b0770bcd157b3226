/** Records of the audit log as lines for people, and which of them were asked for. */
import type { AuditRecord, StrongroomClient } from "../../client/client.js";
import { localMillisecond } from "../session/local-time.js";
import { type OutputFlags, printable, printJson } from "../session/output.js";

export type Filter = {
  readonly token?: string;
  /** A secret, or with a slash at the end a subtree. */
  readonly path?: string;
  readonly since?: Date;
};

const pageSize = 1_000;

/** Yields records behind `after` until the latest. */
export async function* recordsAfter(client: StrongroomClient, after: number): AsyncGenerator<AuditRecord, void, void> {
  for (let last = after; ; ) {
    const { records } = await client.audit.read({ after: last, limit: pageSize });
    yield* records;
    last = records.at(-1)?.seq ?? last;
    if (records.length < pageSize) return;
  }
}

export function matches(record: AuditRecord, { token, path, since }: Filter): boolean {
  if (token !== undefined && record.token !== token) return false;
  if (since !== undefined && Date.parse(record.time) < since.getTime()) return false;
  return path === undefined || [record.path, record.to, record.prefix].some((one) => isWithin(one, path));
}

function isWithin(path: string | undefined, wanted: string): boolean {
  if (path === undefined) return false;
  return wanted.endsWith("/") ? path.startsWith(wanted) : path === wanted;
}

/** Prints a record as one line. */
export function printRecord(record: AuditRecord, { json }: OutputFlags): void {
  if (json) printJson(record);
  else process.stdout.write(`${textOf(record)}\n`);
}

/** Time, who, what, and the outcome; then what else there is. */
function textOf({ seq, time, event, token, address, path, status, code, ...rest }: AuditRecord): string {
  const outcome = status === undefined ? [] : [code === undefined ? String(status) : `${status} ${code}`];
  const { to, prefix, requestId: _, etag: __, batch, key: ___, mac: ____, ...more } = rest;
  const what = [path, to === undefined ? undefined : `to ${to}`, prefix].filter((part) => part !== undefined);
  const others = Object.entries(more).map(([name, value]) => `${name} ${String(value)}`);
  const parts = [
    seq,
    token ?? "-",
    address ?? "-",
    event,
    ...what,
    ...outcome,
    ...(batch ? ["in a batch"] : []),
    ...others,
  ];
  const date = new Date(time);
  const shown = Number.isNaN(date.getTime()) ? time : localMillisecond(date); // a file may have been edited
  return printable(`${shown}  ${parts.join("  ")}`);
}
