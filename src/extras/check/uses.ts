/** Uses of secrets, from the audit log. */

import { CommandFailure } from "../../cli/kit/errors.js";
import { localDate } from "../../cli/kit/output.js";
import { type AuditRecord, type StrongroomClient, StrongroomError } from "../../client/client.js";

const pageRecords = 1_000;

/** Events in which a secret's value is used. */
const usingEvents = new Set(["get", "get-version", "use", "otp", "copy"]);

/**
 * Returns when each secret was last used since then.
 * @throws CommandFailure notFound, when the audit log does not know
 */
export async function usesSince(client: StrongroomClient, since: number): Promise<ReadonlyMap<string, string>> {
  const uses = new Map<string, string>();
  let oldest: string | null = null;
  let hasReads = false;
  for await (const { event, path, time, status = 500 } of allRecords(client)) {
    oldest ??= time;
    if (!usingEvents.has(event)) continue;
    hasReads = true;
    if (path !== undefined && status < 400 && Date.parse(time) >= since) uses.set(path, time);
  }
  if (!hasReads) throw unknown("it has no reads. Start the server with --audit all, and ask again later");
  if (oldest !== null && Date.parse(oldest) > since) {
    throw unknown(`it begins on ${localDate(new Date(oldest))}: ask for a shorter time with --unused`);
  }
  return uses;
}

/** Yields the records, oldest first. */
async function* allRecords(client: StrongroomClient): AsyncGenerator<AuditRecord, void, void> {
  for (let last = 0; ; ) {
    const { records } = await pageAfter(client, last);
    yield* records;
    if (records.length < pageRecords) return;
    last = records.at(-1)?.seq ?? last;
  }
}

async function pageAfter(client: StrongroomClient, after: number) {
  try {
    return await client.audit.read({ after, limit: pageRecords });
  } catch (error) {
    if (!(error instanceof StrongroomError) || error.code !== "NOT_FOUND") throw error;
    throw unknown("the server has none. Start it with --audit all, and ask again later");
  }
}

function unknown(why: string): CommandFailure {
  return new CommandFailure("notFound", `the audit log does not show what is unused: ${why}`);
}
