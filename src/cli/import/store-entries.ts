/** Storing of imported entries, several requests at a time, and the tally of the results. */
import pMap from "p-map";
import { type PutOptions, type Secret, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { CommandFailure } from "../session/exit-codes.js";
import { concurrency, getIfThere } from "../session/fetch-secrets.js";
import { isConflict } from "../session/secret-arguments.js";
import { type Limits, limitsOf, problemOfSizes } from "../session/server-limits.js";
import type { ImportEntry, Refused } from "./formats/import-entry.js";

export type Tally = {
  created: number;
  replaced: number;
  /** Already stored with the same value, type and description. */
  unchanged: number;
  /** Paths that already hold something else. */
  readonly skipped: string[];
  readonly refused: Refused[];
};

export type ImportOptions = {
  readonly folder: string;
  readonly force: boolean;
  readonly dryRun: boolean;
  /** Ends the work; requests under way are completed. */
  readonly signal: AbortSignal;
};

/** Stores the entries; the tally is right even when an error ends the work. @throws the first such error */
export async function storeAll(
  client: StrongroomClient,
  entries: readonly ImportEntry[],
  options: ImportOptions,
  tally: Tally,
  tick: (done: number) => void,
): Promise<void> {
  const limits = await limitsOf(client);
  const existing = await existingPaths(client, options.folder);
  let stopped: unknown = null;
  let done = 0;
  const storeOne = async (entry: ImportEntry) => {
    if (options.signal.aborted) stopped ??= new CommandFailure("aborted", "interrupted");
    if (stopped !== null) return;
    try {
      await store(client, entry, { ...options, limits, exists: existing.has(entry.path) }, tally);
      tick(++done);
    } catch (error) {
      stopped ??= error;
    }
  };
  await pMap(entries, storeOne, { concurrency });
  if (stopped !== null) throw stopped;
}

type EntryOptions = ImportOptions & { readonly limits: Limits; readonly exists: boolean };

async function store(client: StrongroomClient, entry: ImportEntry, options: EntryOptions, tally: Tally): Promise<void> {
  const problem = problemOf(entry, options.limits);
  const refusal = problem === null ? await storeOrRefuse(client, entry, options, tally) : { problem };
  if (refusal !== null) tally.refused.push({ origin: `${entry.origin} (${entry.path})`, ...refusal });
}

/** Returns why this entry alone cannot be stored; null when it is done. */
async function storeOrRefuse(
  client: StrongroomClient,
  entry: ImportEntry,
  options: EntryOptions,
  tally: Tally,
): Promise<Omit<Refused, "origin"> | null> {
  try {
    const result = await resultFor(client, entry, options);
    if (isWrite(result) && !options.dryRun) await put(client, entry, options.force);
    if (result === "skipped") tally.skipped.push(entry.path);
    else tally[result]++;
    return null;
  } catch (error) {
    if (isConflict(error)) return storeOrRefuse(client, entry, { ...options, exists: true }, tally); // created meanwhile
    return refusalOf(error);
  }
}

/** @throws the error, unless it is about this entry alone */
function refusalOf(error: unknown): Omit<Refused, "origin"> {
  if (!(error instanceof StrongroomError)) throw error;
  if (error.code === "BAD_REQUEST") return { problem: error.message };
  if (error.code === "INTEGRITY") return { problem: error.message, damaged: true };
  throw error;
}

type Result = keyof Omit<Tally, "refused">;

function isWrite(result: Result): boolean {
  return result === "created" || result === "replaced";
}

async function resultFor(
  client: StrongroomClient,
  entry: ImportEntry,
  { exists, force }: EntryOptions,
): Promise<Result> {
  const stored = exists ? await getIfThere(client, entry.path) : null;
  if (stored === null) return "created";
  if (isSame(stored, entry)) return "unchanged";
  return force ? "replaced" : "skipped";
}

function put(client: StrongroomClient, entry: ImportEntry, force: boolean): Promise<unknown> {
  const { path, value, description } = entry;
  const type = entry.type as PutOptions["type"]; // problemOf has checked it
  return client.put(path, value, { type, description, replaceMetadata: true, ifAbsent: !force });
}

function isSame(stored: Secret, { value, type, description }: ImportEntry): boolean {
  const { metadata } = stored;
  return stored.reveal() === value && metadata.type === type && metadata.description === description;
}

function problemOf({ value, type, description }: ImportEntry, limits: Limits): string | null {
  const tooLarge = problemOfSizes(Buffer.byteLength(value), description, limits);
  if (tooLarge !== null) return tooLarge;
  if (/\p{Surrogate}/u.test(`${value} ${description ?? ""}`))
    return "it has a lone surrogate, which UTF-8 cannot express";
  return type === undefined || limits.types.includes(type) ? null : `its type is not one of ${limits.types.join(", ")}`;
}

/** Paths in the vault, those with damaged metadata included. */
async function existingPaths(client: StrongroomClient, prefix: string): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  for await (const { entries, damaged = [] } of client.pages({ prefix, limit: 1000 })) {
    for (const path of [...entries.map((entry) => entry.path), ...damaged]) paths.add(path);
  }
  return paths;
}
