/** Storing of imported entries in batches, and the tally of the results. */
import { isDeepStrictEqual } from "node:util";
import pMap from "p-map";
import { maxOperations, type Read, readMany } from "../../client/batch.js";
import { type PutOperation, type Secret, type StrongroomClient, StrongroomError } from "../../client/client.js";
import { isConflict } from "../kit/connection/changes.js";
import { listFolder } from "../kit/connection/secrets.js";
import { fetchLimits, type Limits, problemOfSizes } from "../kit/connection/server-limits.js";
import { CommandFailure } from "../kit/errors.js";
import type { ImportEntry, Refused } from "./entry.js";

export type Tally = {
  created: number;
  replaced: number;
  /** Already stored with the same value and metadata. */
  unchanged: number;
  /** Paths that already hold something else. */
  readonly skipped: string[];
  readonly refused: Refused[];
};

type ImportOptions = {
  readonly folder: string;
  readonly replace: boolean;
  readonly dryRun: boolean;
  /** Ends the work; requests under way are completed. */
  readonly signal: AbortSignal;
};

/** One is stored while the next is prepared. */
const batchesAtOnce = 2;

/** Stores the entries; the tally is right even when an error ends the work. @throws the first such error */
export async function storeAll(
  client: StrongroomClient,
  entries: readonly ImportEntry[],
  options: ImportOptions,
  tally: Tally,
  tick: (done: number) => void,
): Promise<void> {
  const limits = await fetchLimits(client);
  const existing = await listFolder(client, options.folder);
  const store = new EntryStore(client, options, tally);
  let stopped: unknown = null;
  let done = 0;
  const storeBatch = async (batch: readonly ImportEntry[]) => {
    if (stopped !== null) return;
    try {
      const fit = batch.filter((entry) => !store.refuses(entry, entryProblem(entry, limits)));
      await store.compare(fit, (path) => existing.has(path));
      done += batch.length;
      tick(done);
    } catch (error) {
      stopped ??= error;
    }
  };
  await pMap(splitBatches(entries), storeBatch, { concurrency: batchesAtOnce });
  if (stopped !== null) throw stopped;
}

type Write = { readonly entry: ImportEntry; readonly result: "created" | "replaced" };

class EntryStore {
  readonly #client: StrongroomClient;
  readonly #options: ImportOptions;
  readonly #tally: Tally;

  constructor(client: StrongroomClient, options: ImportOptions, tally: Tally) {
    this.#client = client;
    this.#options = options;
    this.#tally = tally;
  }

  /** Records why an entry alone cannot be stored, if there is a reason. */
  refuses({ origin, path }: ImportEntry, problem: string | null, damaged?: true): boolean {
    if (problem === null) return false;
    this.#tally.refused.push({ origin: `${origin} (${path})`, problem, ...(damaged && { damaged }) });
    return true;
  }

  /** Stores what differs from the vault. */
  async compare(entries: readonly ImportEntry[], exists: (path: string) => boolean): Promise<void> {
    const there = entries.filter(({ path }) => exists(path));
    const writes: Write[] = entries.filter(({ path }) => !exists(path)).map((entry) => ({ entry, result: "created" }));
    let done = 0;
    for await (const results of readMany(
      (gets) => this.#client.batch(gets),
      there.map(({ path }) => path),
    )) {
      for (const read of results) {
        const entry = there[done++];
        if (entry !== undefined) writes.push(...this.#writesFor(entry, read));
      }
    }
    if (!this.#options.dryRun) return this.#write(writes);
    for (const { result } of writes) this.#tally[result]++;
  }

  #writesFor(entry: ImportEntry, read: Read): Write[] {
    if ("code" in read) {
      if (read.code === "NOT_FOUND") return [{ entry, result: "created" }];
      this.refuses(entry, read.error, read.code === "INTEGRITY" || undefined);
      return [];
    }
    if (isSame(read, entry)) this.#tally.unchanged++;
    else if (this.#options.replace) return [{ entry, result: "replaced" }];
    else this.#tally.skipped.push(entry.path);
    return [];
  }

  /** One entry that is refused must not keep the others out: they are stored without it. */
  async #write(writes: readonly Write[]): Promise<void> {
    if (writes.length === 0) return;
    if (this.#options.signal.aborted) throw new CommandFailure("aborted", "interrupted");
    try {
      await this.#client.batch(writes.map(({ entry }) => this.#putOperation(entry)));
      for (const { result } of writes) this.#tally[result]++;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (writes.length === 1 && writes[0] !== undefined) return this.#refuseOrCompare(writes[0].entry, error);
      const at = error.index ?? Math.floor(writes.length / 2);
      for (const part of [writes.slice(0, at), writes.slice(at, at + 1), writes.slice(at + 1)]) await this.#write(part);
    }
  }

  /** A conflict means that another program has stored a secret there since. */
  async #refuseOrCompare(entry: ImportEntry, error: StrongroomError): Promise<void> {
    if (isConflict(error)) return this.compare([entry], () => true);
    this.refuses(entry, error.message, error.code === "INTEGRITY" || undefined);
  }

  #putOperation({ path, value, encoding, type, description, expiresAt, custom }: ImportEntry): PutOperation {
    const known = type as PutOperation["type"]; // entryProblem has checked it
    return {
      put: path,
      value,
      encoding,
      type: known,
      description,
      expiresAt,
      custom,
      ifAbsent: !this.#options.replace,
    };
  }
}

/** Whether the request was refused for what is in it. */
function isRefusal(error: unknown): error is StrongroomError {
  return error instanceof StrongroomError && ["BAD_REQUEST", "PRECONDITION_FAILED", "INTEGRITY"].includes(error.code);
}

function isSame(stored: Secret, { value, encoding, type, description, expiresAt, custom }: ImportEntry): boolean {
  const { metadata } = stored;
  const isSameValue = stored.reveal() === value && stored.encoding === encoding;
  const isSameText = metadata.type === type && metadata.description === description;
  return isSameValue && isSameText && metadata.expiresAt === expiresAt && isDeepStrictEqual(metadata.custom, custom);
}

function entryProblem({ value, type, description }: ImportEntry, limits: Limits): string | null {
  const tooLarge = problemOfSizes(Buffer.byteLength(value), description, limits);
  if (tooLarge !== null) return tooLarge;
  if (/\p{Surrogate}/u.test(`${value} ${description ?? ""}`))
    return "it has a lone surrogate, which UTF-8 cannot express";
  return type === undefined || limits.types.includes(type) ? null : `its type is not one of ${limits.types.join(", ")}`;
}

/** The server's default limit for the body of a batch. One with a lower limit refuses, and the batch is divided again. */
const maxBodyBytes = 16 * 2 ** 20;

/** Names and punctuation of an operation. */
const overheadBytes = 128;

/** A single entry may be larger than a batch. */
function* splitBatches(entries: readonly ImportEntry[]): Generator<readonly ImportEntry[], void, void> {
  let from = 0;
  let bytes = 0;
  for (const [at, entry] of entries.entries()) {
    const size = bodyLength(entry);
    if (at > from && (at - from === maxOperations || bytes + size > maxBodyBytes)) {
      yield entries.slice(from, at);
      [from, bytes] = [at, 0];
    }
    bytes += size;
  }
  if (from < entries.length) yield entries.slice(from);
}

function bodyLength({ path, value, description = "", custom = {} }: ImportEntry): number {
  return (
    overheadBytes + [path, value, description, JSON.stringify(custom)].reduce((sum, text) => sum + jsonLength(text), 0)
  );
}

/** As the client writes it: a control character takes 6 bytes, a quote or backslash 2. */
function jsonLength(text: string): number {
  const controls = text.match(/\p{Cc}/gu)?.length ?? 0;
  const escaped = text.match(/["\\]/g)?.length ?? 0;
  return Buffer.byteLength(text) + 5 * controls + escaped;
}
