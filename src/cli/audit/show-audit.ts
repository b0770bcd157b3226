/** `strongroom audit show` and `tail`: records from the server. */
import { setTimeout as sleep } from "node:timers/promises";
import type { AuditRecord, StrongroomClient } from "../../client/client.js";
import { type ConnectionFlags, withClient } from "../session/connection.js";
import { breakable } from "../session/interrupt.js";
import { type OutputFlags, printJson } from "../session/output.js";
import { type Filter, matches, printRecord, recordsAfter } from "./record-lines.js";

export type ShowFlags = OutputFlags & ConnectionFlags & Filter & { readonly limit?: number; readonly follow?: true };

const defaultLimit = 100;
const tailLimit = 10;
const pollMs = 1_000;

/** The latest of the records that match; all of them when a filter is given without a limit. */
export async function showRecords(flags: ShowFlags): Promise<void> {
  const isFiltered = flags.token !== undefined || flags.path !== undefined || flags.since !== undefined;
  const limit = flags.limit ?? (isFiltered ? Number.POSITIVE_INFINITY : defaultLimit);
  const records = await withClient(flags, async (client) => {
    const after = isFiltered ? 0 : Math.max(0, (await endOf(client)) - limit);
    return latestMatching(client, after, limit, flags);
  });
  if (flags.json) return printJson({ records });
  for (const record of records) printRecord(record, flags);
}

/** The latest records, and with `follow` those that come. */
export function tailRecords(flags: ShowFlags): Promise<void> {
  return withClient(flags, async (client) => {
    let last = await printAfter(client, Math.max(0, (await endOf(client)) - (flags.limit ?? tailLimit)), flags);
    await breakable(async (signal) => {
      while (flags.follow && !signal.aborted) {
        await sleep(pollMs, undefined, { signal }).catch(() => {}); // interrupted
        last = await printAfter(client, last, flags);
      }
    });
  });
}

async function latestMatching(
  client: StrongroomClient,
  after: number,
  limit: number,
  filter: Filter,
): Promise<AuditRecord[]> {
  let found: AuditRecord[] = [];
  for await (const record of recordsAfter(client, after)) {
    if (matches(record, filter)) found.push(record);
    if (found.length >= 2 * limit) found = found.slice(-limit);
  }
  return found.slice(-limit);
}

/** Returns the number of the last record. */
async function printAfter(client: StrongroomClient, after: number, flags: ShowFlags): Promise<number> {
  let last = after;
  for await (const record of recordsAfter(client, after)) {
    last = record.seq;
    if (matches(record, flags)) printRecord(record, flags);
  }
  return last;
}

async function endOf(client: StrongroomClient): Promise<number> {
  return (await client.audit.read({ limit: 1 })).head?.seq ?? 0;
}
