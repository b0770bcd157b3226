/** Owns the work of an import: what is there already, what is stored, a few requests at a time, and the tally of it. */
import pMap from "p-map";
import { type PutOptions, type Secret, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { CommandFailure } from "../session/exit-codes.js";
import { concurrency, getIfThere } from "../session/fetch-secrets.js";
import { type Limits, limitsOf, problemOfSizes } from "../session/server-limits.js";
import type { ImportEntry, Refused } from "./formats/import-entry.js";

export type Tally = {
  created: number;
  replaced: number;
  /** There with the same value, type and description. */
  unchanged: number;
  /** Paths that were left as they are. */
  readonly skipped: string[];
  readonly refused: Refused[];
};

export type ImportOptions = {
  readonly folder: string;
  readonly force: boolean;
  readonly dryRun: boolean;
  /** Ends the work after what is under way. */
  readonly signal: AbortSignal;
};

/** Stores the entries, and keeps the tally right even when it cannot go on. @throws what made it end too early */
export async function storeAll(
  client: StrongroomClient,
  entries: readonly ImportEntry[],
  manner: ImportOptions,
  tally: Tally,
  tick: (done: number) => void,
): Promise<void> {
  const limits = await limitsOf(client);
  const there = await pathsThere(client, manner.folder);
  let stopped: unknown = null;
  let done = 0;
  const storeOne = async (entry: ImportEntry) => {
    if (manner.signal.aborted) stopped ??= new CommandFailure("aborted", "broken off");
    if (stopped !== null) return;
    try {
      await store(client, entry, { ...manner, limits, isThere: there.has(entry.path) }, tally);
      tick(++done);
    } catch (error) {
      stopped ??= error;
    }
  };
  await pMap(entries, storeOne, { concurrency });
  if (stopped !== null) throw stopped;
}

type Case = ImportOptions & { readonly limits: Limits; readonly isThere: boolean };

async function store(client: StrongroomClient, entry: ImportEntry, manner: Case, tally: Tally): Promise<void> {
  const problem = problemOf(entry, manner.limits);
  const refusal = problem === null ? await storeOrRefuse(client, entry, manner, tally) : { problem };
  if (refusal !== null) tally.refused.push({ origin: `${entry.origin} (${entry.path})`, ...refusal });
}

/** Why this one entry cannot be stored, when others can; null when it needs no more. */
async function storeOrRefuse(client: StrongroomClient, entry: ImportEntry, manner: Case, tally: Tally) {
  try {
    const fate = await fateOf(client, entry, manner);
    if ((fate === "created" || fate === "replaced") && !manner.dryRun) await put(client, entry);
    if (fate === "skipped") tally.skipped.push(entry.path);
    else tally[fate]++;
    return null;
  } catch (error) {
    if (!(error instanceof StrongroomError)) throw error;
    if (error.code === "BAD_REQUEST") return { problem: error.message };
    if (error.code === "INTEGRITY") return { problem: error.message, damaged: true as const };
    throw error;
  }
}

async function fateOf(
  client: StrongroomClient,
  entry: ImportEntry,
  { isThere, force }: Case,
): Promise<keyof Omit<Tally, "refused">> {
  const stored = isThere ? await getIfThere(client, entry.path) : null;
  if (stored === null) return "created";
  if (isSame(stored, entry)) return "unchanged";
  return force ? "replaced" : "skipped";
}

function put(client: StrongroomClient, { path, value, type, description }: ImportEntry): Promise<unknown> {
  return client.put(path, value, { type: type as PutOptions["type"], description }); // the type was checked
}

function isSame(stored: Secret, { value, type, description }: ImportEntry): boolean {
  const { metadata } = stored;
  return stored.reveal() === value && metadata.type === type && metadata.description === description;
}

function problemOf({ value, type, description }: ImportEntry, limits: Limits): string | null {
  const tooLarge = problemOfSizes(Buffer.byteLength(value), description, limits);
  if (tooLarge !== null) return tooLarge;
  if (/\p{Surrogate}/u.test(`${value} ${description ?? ""}`)) return "it has a lone surrogate";
  return type === undefined || limits.types.includes(type) ? null : `its type is none of ${limits.types.join(", ")}`;
}

/** Those with damaged metadata are there, too. */
async function pathsThere(client: StrongroomClient, prefix: string): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  for await (const { entries, damaged = [] } of client.pages({ prefix, limit: 1000 })) {
    for (const path of [...entries.map((entry) => entry.path), ...damaged]) paths.add(path);
  }
  return paths;
}
