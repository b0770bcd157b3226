/** Listing: names from the store, metadata opened by the key worker in slices. */
import pMap from "p-map";
import type { Bytes, Head, ReplyOf } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { type CachedStore, headOf } from "./cached-store.js";
import type { Keep } from "./ciphertext-cache.js";
import type { KeyState } from "./key-state.js";
import { listNames, type NameQuery } from "./scoped-names.js";

/** `limit` null: all. */
export type ListQuery = NameQuery & { readonly limit: number | null };

/** Some pieces of a reply. `count`: the secrets in them. */
export type ListPart = { readonly pieces: readonly Bytes[]; readonly last: boolean; readonly count: number };

/** Bounds the memory of a list; one with fewer entries has one part. */
const partEntries = 8192;

/** Small enough that a get behind a slice hardly waits. */
const shortestSlice = 32;
const longestSlice = 128;

/** One is opened while the next is being read. */
const slicesAtOnce = 2;

/** Heads that storage returned with the names. */
type Heads = Map<string, Head>;

type Described = Extract<ReplyOf<"describe">, { ok: true }>;

export class Lister {
  readonly #cached: CachedStore;
  readonly #keyState: KeyState;

  constructor(cached: CachedStore, keyState: KeyState) {
    this.#cached = cached;
    this.#keyState = keyState;
  }

  /**
   * Yields the reply: `entries`, `next` if more follow, and `damaged`, the paths whose metadata cannot be opened, if there
   * are any: one bad file must not hide all others. A secret that exists throughout is in the list; of others, each part
   * shows what was there when it was made.
   */
  async *list(query: ListQuery): AsyncGenerator<ListPart, void, void> {
    const { after, limit } = query;
    const damaged: string[] = [];
    let begun = false;
    for (let cursor = after, opening = [text('{"entries":[')]; ; opening = []) {
      const { slices, next, count } = await this.#page({ ...query, after: cursor }, cursor !== after);
      const replies = slices.map(({ reply }) => reply).filter((reply) => reply.length > 0);
      damaged.push(...slices.flatMap((slice) => slice.damaged));
      const last = limit !== null || next === undefined;
      const extras = { ...(next !== undefined && { next }), ...(damaged.length > 0 && { damaged }) };
      const end = last ? [text(`]${restOfObject(extras)}`)] : [];
      yield { pieces: [...opening, ...separated(replies, begun), ...end], last, count };
      if (last) return;
      begun ||= replies.length > 0;
      cursor = next;
    }
  }

  /** `begun`: it is not the first part. `next`: the path to continue after, if more follow. */
  async #page(query: ListQuery, begun: boolean) {
    const { limit } = query;
    const most = limit ?? partEntries;
    const heads: Heads = new Map();
    const list = (prefix: string, behind: string, atMost: number) => this.#cached.list(prefix, behind, atMost, heads);
    const found = await listNames({ list }, query, most + 1);
    const slices = [...slicesOf(found.slice(0, most))];
    const more = found.length > most;
    if (more && limit === null) slices.pop(); // cut off before its end
    const isLong = limit === null && (more || begun);
    const all = isLong && heads.size === 0 ? await this.#cached.store.count() : found.length;
    const count = slices.reduce((sum, slice) => sum + slice.length, 0);
    return { slices: await this.#slices(slices, all, heads), next: more ? slices.at(-1)?.at(-1) : undefined, count };
  }

  /**
   * `count`: secrets in the whole list. DANGER: settles only when no slice is running any more, even if one fails: no lock or
   * init may run beside one.
   */
  #slices(slices: readonly (readonly string[])[], count: number, heads: Heads): Promise<Described[]> {
    const begun: Promise<Described>[] = [];
    const begin = (slice: readonly string[]) => {
      const work = this.#slice(slice, heads.size > 0 || this.#fits(slice, count), heads);
      begun.push(work);
      return work;
    };
    return pMap(slices, begin, { concurrency: slicesAtOnce }).finally(() => Promise.allSettled(begun));
  }

  async #slice(paths: readonly string[], cached: boolean, heads: Heads): Promise<Described> {
    if (!cached) return this.#describeSlice(paths, null, heads);
    return this.#cached.heads.reading((keep) => this.#describeSlice(paths, keep, heads));
  }

  /**
   * A list of more than the cache holds would evict what it has just read, and find nothing of it the next time. Of such a
   * list only as many slices are kept as fit, always the same.
   */
  #fits([first = ""]: readonly string[], count: number): boolean {
    return hashOf(first) / 2 ** 32 < this.#cached.heads.capacity / count;
  }

  /** `keep` null: nothing is cached. */
  async #describeSlice(wanted: readonly string[], keep: Keep<Head> | null, listed: Heads): Promise<Described> {
    const reading = wanted.map(async (path) => listed.get(path) ?? this.#headOrNone(path));
    const read = await Promise.all(reading).finally(() => Promise.allSettled(reading));
    const paths = wanted.filter((_, i) => read[i] !== null); // without secrets deleted meanwhile
    const all = read.filter((head) => head !== null);
    const described = await this.#keyState.ask({ op: "describe", paths, heads: all });
    if (keep === null) return described;
    for (const [i, head] of all.entries()) {
      const length = described.lengths[i] ?? 0;
      if (length > 0) keep(paths[i] ?? "", shortened(head, length));
    }
    return described;
  }

  /** A file that is no blob becomes an empty head, which cannot be opened either. */
  async #headOrNone(path: string): Promise<Head | null> {
    try {
      return await this.#cached.head(path);
    } catch (error) {
      if (error instanceof VaultError && error.code === "INTEGRITY") return "";
      throw error;
    }
  }
}

/** Cuts a head to the length that the key worker found. */
function shortened(head: Head, length: number): Head {
  return head.length === length ? head : headOf(Buffer.from(head, "latin1"), length);
}

/** Content-defined slices: a new secret changes its own slice only, not all that follow. */
function* slicesOf(paths: readonly string[]): Iterable<readonly string[]> {
  let from = 0;
  for (const [i, path] of paths.entries()) {
    const length = i + 1 - from;
    if (length < shortestSlice || (length < longestSlice && !endsSlice(path))) continue;
    yield paths.slice(from, i + 1);
    from = i + 1;
  }
  if (from < paths.length) yield paths.slice(from);
}

/** True for one path in 32. */
function endsSlice(path: string): boolean {
  return (hashOf(path) & 31) === 0;
}

/** From 0 to 2^32 - 1. */
function hashOf(path: string): number {
  let hash = 0;
  for (let i = 0; i < path.length; i++) hash = (Math.imul(hash, 31) + path.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** `begun`: others come before them. */
function separated(replies: readonly Bytes[], begun: boolean): Bytes[] {
  return replies.flatMap((reply, i) => (i > 0 || begun ? [text(","), reply] : [reply]));
}

/** The end of a JSON object that has members already. */
function restOfObject(members: object): string {
  return Object.keys(members).length === 0 ? "}" : `,${JSON.stringify(members).slice(1)}`;
}

function text(json: string): Bytes {
  return new TextEncoder().encode(json);
}
