/** Lists: names from storage, metadata opened by the key worker in slices, and the response in parts. */
import pMap from "p-map";
import type { Bytes, Head, ResultOf } from "../../workers/protocol.js";
import { type NameRange, narrowed } from "../paths/path-scope.js";

/** See `SecretStore.list`. `within`: only paths in these ranges, disjoint and ascending; all without it. */
export type NameQuery = { readonly prefix: string; readonly after: string; readonly within?: readonly NameRange[] };

/** `limit` null: all. */
export type ListQuery = NameQuery & { readonly limit: number | null };

/** Some pieces of a response. `count`: the blobs in them. */
export type ListPart = { readonly pieces: readonly Bytes[]; readonly last: boolean; readonly count: number };

/** Bounds the memory of a list; one with fewer entries has one part. */
const partEntries = 8192;

/** Small enough that a get behind a slice hardly waits, and a page of a hundred is one message. */
const sliceEntries = 100;

/** One slice is opened while the next is being read. */
const slicesAtOnce = 2;

/** Heads that storage returned with the names, by path. */
export type Heads = Map<string, Head>;

export type Described = Extract<ResultOf<"describe">, { ok: true }>;

/** Source of a list: see `SealedSpace`. */
type ListSource = {
  readonly namesWithHeads: (prefix: string, after: string, limit: number, heads: Heads) => Promise<readonly string[]>;
  readonly describe: (paths: readonly string[], listed: Heads, isFilling: boolean) => Promise<Described>;
};

/**
 * Yields the response: the list under its name, `next` if more follow, and `damaged`, the paths whose metadata cannot be
 * opened, if there are any: one bad file must not hide all others. A blob that exists throughout is in the list; of others,
 * each part shows what was there when it was made.
 */
export async function* listParts(
  source: ListSource,
  listed: string,
  query: ListQuery,
): AsyncGenerator<ListPart, void, void> {
  const { after, limit } = query;
  const damaged: string[] = [];
  let begun = false;
  for (let cursor = after, opening = [text(`{"${listed}":[`)]; ; opening = []) {
    const { slices, next, count } = await part(source, { ...query, after: cursor }, cursor !== after);
    const responses = slices.map(({ response }) => response).filter((response) => response.length > 0);
    damaged.push(...slices.flatMap((slice) => slice.damaged));
    const last = limit !== null || next === undefined;
    const extras = { ...(next !== undefined && { next }), ...(damaged.length > 0 && { damaged }) };
    const end = last ? [text(`]${restOfObject(extras)}`)] : [];
    yield { pieces: [...opening, ...separated(responses, begun), ...end], last, count };
    if (last) return;
    begun ||= responses.length > 0;
    cursor = next;
  }
}

/** `begun`: it is not the first part. `next`: the path to continue after, if more follow. */
async function part(source: ListSource, query: ListQuery, begun: boolean) {
  const { limit } = query;
  const most = limit ?? partEntries;
  const heads: Heads = new Map();
  const list = (prefix: string, after: string, atMost: number) => source.namesWithHeads(prefix, after, atMost, heads);
  const found = await listNames(list, query, most + 1);
  const paths = found.slice(0, most);
  const more = found.length > most;
  const slices = await describeAll(source, paths, heads, limit === null && (more || begun));
  return { slices, next: more ? paths.at(-1) : undefined, count: paths.length };
}

/**
 * A list of many parts only fills the cache: of more than that holds, it would evict what it has just read, and find nothing
 * of it the next time.
 * DANGER: settles only when no slice is still running, even if one fails: no lock or init may run beside one.
 */
function describeAll(
  source: ListSource,
  paths: readonly string[],
  heads: Heads,
  isLong: boolean,
): Promise<Described[]> {
  const begun: Promise<Described>[] = [];
  const begin = (slice: readonly string[]) => {
    const work = source.describe(slice, heads, isLong);
    begun.push(work);
    return work;
  };
  return pMap(slicePaths(paths), begin, { concurrency: slicesAtOnce }).finally(() => Promise.allSettled(begun));
}

/** Like `SecretStore.list`. */
type List = (prefix: string, after: string, limit: number) => Promise<readonly string[]>;

/** Lists names as if nothing existed outside the ranges. */
export async function listNames(list: List, query: NameQuery, limit: number): Promise<readonly string[]> {
  const { prefix, after, within } = query;
  if (within === undefined) return list(prefix, after, limit);
  let found: readonly string[] = [];
  for (const range of narrowed(within, prefix)) {
    if (found.length === limit) break;
    found = found.concat(await namesIn(list, range, after, limit - found.length));
  }
  return found;
}

/** A path sorts before all others that start with it. */
async function namesIn(
  list: List,
  { prefix, exact }: NameRange,
  after: string,
  limit: number,
): Promise<readonly string[]> {
  if (!exact) return list(prefix, after, limit);
  const [first] = await list(prefix, after, 1);
  return first === prefix ? [first] : [];
}

function slicePaths(paths: readonly string[]): (readonly string[])[] {
  const count = Math.ceil(paths.length / sliceEntries);
  return Array.from({ length: count }, (_, i) => paths.slice(i * sliceEntries, (i + 1) * sliceEntries));
}

/** `begun`: others come before them. */
function separated(responses: readonly Bytes[], begun: boolean): Bytes[] {
  return responses.flatMap((response, i) => (i > 0 || begun ? [text(","), response] : [response]));
}

/** The end of a JSON object that has members already. */
function restOfObject(members: object): string {
  return Object.keys(members).length === 0 ? "}" : `,${JSON.stringify(members).slice(1)}`;
}

function text(json: string): Bytes {
  return new TextEncoder().encode(json);
}
