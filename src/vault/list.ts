/** Owns how a list is made: names from the store, metadata opened by the key worker slice by slice. */
import pMap from "p-map";
import type { Bytes, Head, ReplyOf, RequestOf } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import type { SecretStore } from "../storage/secret-store.js";
import type { CiphertextCache, Keep } from "./ciphertext-cache.js";

/** What a list asks for; see `SecretStore.list`. `limit` null: all. */
export type ListQuery = { readonly prefix: string; readonly after: string; readonly limit: number | null };

/** Small enough that a get which waits behind a slice hardly notices. */
const sliceSize = 64;

/** One is described while the next is on its way. */
const slicesAtOnce = 2;

type Described = Extract<ReplyOf<"describe">, { ok: true }>;
type Describe = (request: RequestOf<"describe">) => Promise<Described>;

/**
 * The reply in pieces: `entries`, `next` where more follow, and `damaged`, the paths whose metadata cannot be opened,
 * where there are any: one bad file must not hide all others.
 */
export async function listReply(
  store: SecretStore,
  heads: CiphertextCache<Head>,
  describe: Describe,
  query: ListQuery,
  headBytes: number,
): Promise<readonly Bytes[]> {
  const limit = query.limit ?? store.count;
  const found = store.list(query.prefix, query.after, limit + 1);
  const paths = found.slice(0, limit);
  const describeNext = (slice: readonly string[]) =>
    heads.reading((keep) => describeSlice(store, heads, keep, describe, slice, headBytes));
  const described = await pMap(slicesOf(paths), describeNext, { concurrency: slicesAtOnce });
  const replies = described.map(({ reply }) => reply).filter((reply) => reply.length > 0);
  const pieces = replies.flatMap((reply, i) => (i > 0 ? [text(","), reply] : [reply]));
  const damaged = described.flatMap((slice) => slice.damaged);
  const extras = {
    ...(found.length > limit && { next: paths.at(-1) }),
    ...(damaged.length > 0 && { damaged }),
  };
  return [text('{"entries":['), ...pieces, text(`]${restOfObject(extras)}`)];
}

function slicesOf(paths: readonly string[]): string[][] {
  const count = Math.ceil(paths.length / sliceSize);
  return Array.from({ length: count }, (_, i) => paths.slice(i * sliceSize, (i + 1) * sliceSize));
}

/** What the key worker found to be the metadata's part of a blob is kept, for the next list. */
async function describeSlice(
  store: SecretStore,
  heads: CiphertextCache<Head>,
  keep: Keep<Head>,
  describe: Describe,
  paths: readonly string[],
  headBytes: number,
): Promise<Described> {
  const known = paths.map((path) => heads.get(path));
  const missing = paths.filter((_, i) => known[i] === undefined);
  const reading = missing.map(async (path) => [path, await listedHead(store, path, headBytes)] as const);
  const read = new Map(await Promise.all(reading));
  const all = paths.map((path, i) => known[i] ?? read.get(path) ?? null);
  const present = paths.filter((_, i) => all[i] !== null); // a secret that was deleted meanwhile is left out
  const described = await describe({ op: "describe", paths: present, heads: all.filter((head) => head !== null) });
  for (const [i, path] of present.entries()) {
    const head = read.get(path) ?? null;
    const length = described.lengths[i] ?? 0;
    if (head !== null && length > 0) keep(path, headOf(Buffer.from(head, "latin1"), length));
  }
  return described;
}

/** What is no blob at all becomes an empty head, which cannot be opened either. */
async function listedHead(store: SecretStore, path: string, headBytes: number): Promise<Head | null> {
  try {
    return await readHead(store, path, headBytes);
  } catch (error) {
    if (error instanceof VaultError && error.code === "INTEGRITY") return "";
    throw error;
  }
}

/** Null when there is no secret. */
export async function readHead(store: SecretStore, path: string, headBytes: number): Promise<Head | null> {
  const bytes = await store.read(path, headBytes);
  return bytes && headOf(bytes, bytes.length);
}

/** A string of its own: part of a longer string would keep all of that in memory. */
export function headOf(blob: Uint8Array, length: number): Head {
  return Buffer.from(blob.buffer, blob.byteOffset, length).toString("latin1");
}

/** The members as they end an object that has members already. */
function restOfObject(members: object): string {
  return Object.keys(members).length === 0 ? "}" : `,${JSON.stringify(members).slice(1)}`;
}

function text(json: string): Bytes {
  return new TextEncoder().encode(json);
}
