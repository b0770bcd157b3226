/** Lists: names from storage, metadata opened by the key worker in slices, and the response in parts. */
import pMap from "p-map";
import type { Bytes, Head, RequestOf, ResultOf } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { type NameRange, narrowed } from "../paths/path-scope.js";
import type { SecretStore } from "../storage/secret-store.js";
import { type CachedStore, type CiphertextCache, headOf, type Keep } from "./cache.js";
import type { LockState } from "./lock-state.js";

/** See `SecretStore.list`. `within`: only paths in these ranges, disjoint and ascending; all without it. */
export type NameQuery = { readonly prefix: string; readonly after: string; readonly within?: readonly NameRange[] };

/** `limit` null: all. */
export type ListQuery = NameQuery & { readonly limit: number | null };

/** Some pieces of a response. `count`: the secrets in them. */
export type ListPart = { readonly pieces: readonly Bytes[]; readonly last: boolean; readonly count: number };

/** Bounds the memory of a list; one with fewer entries has one part. */
const partEntries = 8192;

/** Small enough that a get behind a slice hardly waits, and a page of a hundred is one message. */
const sliceEntries = 100;

/** One is opened while the next is being read. */
const slicesAtOnce = 2;

/** Heads that storage returned with the names, by path. */
export type Heads = Map<string, Head>;

type Described = Extract<ResultOf<"describe">, { ok: true }>;

/** What is listed: the secrets, or the trash. */
export type ListSource = {
  readonly count: () => Promise<number>;
  /** As `SecretStore.list`; fills `heads` where storage returns them in the same round trip. */
  readonly list: (prefix: string, after: string, limit: number, heads: Heads) => Promise<readonly string[]>;
  readonly head: (path: string) => Promise<Head | null>;
  readonly describe: (paths: readonly string[], heads: readonly Head[]) => RequestOf<"describe">;
  /** Null: heads are not cached. */
  readonly cache: CiphertextCache<Head> | null;
};

export function secretsIn(cached: CachedStore): ListSource {
  return {
    count: () => cached.store.count(),
    list: (prefix, after, limit, heads) => cached.list(prefix, after, limit, heads),
    head: (path) => cached.head(path),
    describe: (paths, heads) => ({ op: "describe", paths, heads }),
    cache: cached.heads,
  };
}

export class Lister {
  readonly #source: ListSource;
  readonly #lockState: LockState;

  constructor(source: ListSource, lockState: LockState) {
    this.#source = source;
    this.#lockState = lockState;
  }

  /**
   * Yields the response: `entries`, `next` if more follow, and `damaged`, the paths whose metadata cannot be opened, if there
   * are any: one bad file must not hide all others. A secret that exists throughout is in the list; of others, each part
   * shows what was there when it was made.
   */
  async *list(query: ListQuery): AsyncGenerator<ListPart, void, void> {
    const { after, limit } = query;
    const damaged: string[] = [];
    let begun = false;
    for (let cursor = after, opening = [text('{"entries":[')]; ; opening = []) {
      const { slices, next, count } = await this.#part({ ...query, after: cursor }, cursor !== after);
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
  async #part(query: ListQuery, begun: boolean) {
    const { limit } = query;
    const most = limit ?? partEntries;
    const heads: Heads = new Map();
    const list = (prefix: string, behind: string, atMost: number) => this.#source.list(prefix, behind, atMost, heads);
    const found = await listNames({ list }, query, most + 1);
    const paths = found.slice(0, most);
    const more = found.length > most;
    const isLong = limit === null && (more || begun);
    const all = isLong && heads.size === 0 ? await this.#source.count() : found.length;
    const slices = await this.#describeAll(paths, heads, (this.#source.cache?.capacity ?? 0) / all);
    return { slices, next: more ? paths.at(-1) : undefined, count: paths.length };
  }

  /**
   * A list of more than the cache holds would evict what it has just read, and find nothing of it the next time. So of such a
   * list only a `share` of the heads is cached, always of the same paths.
   * DANGER: settles only when no slice is still running, even if one fails: no lock or init may run beside one.
   */
  #describeAll(paths: readonly string[], heads: Heads, share: number): Promise<Described[]> {
    const begun: Promise<Described>[] = [];
    const begin = (slice: readonly string[]) => {
      const describe = (keep: Keep<Head>) =>
        this.#describe(slice, heads, (path, head) => {
          if (hashOf(path) / 2 ** 32 < share) keep(path, head);
        });
      const work = this.#source.cache?.reading(describe) ?? describe(() => {});
      begun.push(work);
      return work;
    };
    return pMap(slicesOf(paths), begin, { concurrency: slicesAtOnce }).finally(() => Promise.allSettled(begun));
  }

  async #describe(wanted: readonly string[], listed: Heads, keep: Keep<Head>): Promise<Described> {
    const cached = wanted.map((path) => this.#source.cache?.get(path)); // most are there, and need no promise
    const missing = wanted.filter((_, i) => cached[i] === undefined);
    const read = await this.#read(missing, listed);
    const found = wanted.map((path, i) => cached[i] ?? read.get(path) ?? null);
    const paths = wanted.filter((_, i) => found[i] !== null); // without secrets that were deleted since
    const heads = found.filter((head) => head !== null);
    const described = await this.#lockState.ask(this.#source.describe(paths, heads));
    if (read.size === 0) return described;
    for (const [i, path] of paths.entries()) {
      const [head, length = 0] = [read.get(path), described.lengths[i]];
      if (head !== undefined && length > 0) keep(path, shortened(head, length));
    }
    return described;
  }

  async #read(paths: readonly string[], listed: Heads): Promise<Heads> {
    const heads: Heads = new Map();
    const reading = paths.map(async (path) => {
      const head = listed.get(path) ?? (await this.#headOrNone(path));
      if (head !== null) heads.set(path, head);
    });
    await Promise.all(reading).finally(() => Promise.allSettled(reading));
    return heads;
  }

  /** A file that is no blob becomes an empty head, which cannot be opened either. */
  async #headOrNone(path: string): Promise<Head | null> {
    try {
      return await this.#source.head(path);
    } catch (error) {
      if (error instanceof VaultError && error.code === "INTEGRITY") return "";
      throw error;
    }
  }
}

type NameStore = Pick<SecretStore, "list">;

/** Lists names as if nothing existed outside the ranges. */
export async function listNames(store: NameStore, query: NameQuery, limit: number): Promise<readonly string[]> {
  const { prefix, after, within } = query;
  if (within === undefined) return store.list(prefix, after, limit);
  let found: readonly string[] = [];
  for (const range of narrowed(within, prefix)) {
    if (found.length === limit) break;
    found = found.concat(await namesIn(store, range, after, limit - found.length));
  }
  return found;
}

/** A path sorts before all others that start with it. */
async function namesIn(
  store: NameStore,
  { prefix, exact }: NameRange,
  after: string,
  limit: number,
): Promise<readonly string[]> {
  if (!exact) return store.list(prefix, after, limit);
  const [first] = await store.list(prefix, after, 1);
  return first === prefix ? [first] : [];
}

/** Cuts a head to the length that the key worker found. */
function shortened(head: Head, length: number): Head {
  return head.length === length ? head : headOf(Buffer.from(head, "latin1"), length);
}

function slicesOf(paths: readonly string[]): (readonly string[])[] {
  const count = Math.ceil(paths.length / sliceEntries);
  return Array.from({ length: count }, (_, i) => paths.slice(i * sliceEntries, (i + 1) * sliceEntries));
}

/** From 0 to 2^32 - 1. */
function hashOf(path: string): number {
  let hash = 0;
  for (let i = 0; i < path.length; i++) hash = (Math.imul(hash, 31) + path.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 15)) >>> 0;
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
