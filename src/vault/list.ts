/** Owns how a list is made: names from the store, metadata opened by the key worker slice by slice. */
import type { Bytes, ReplyOf, RequestOf } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import type { SecretStore } from "../storage/secret-store.js";
import type { CiphertextCache, Keep } from "./ciphertext-cache.js";

/** What a list asks for; see `SecretStore.list`. `limit` null: all. */
export type ListQuery = { readonly prefix: string; readonly after: string; readonly limit: number | null };

/** Small enough that a get which waits behind a slice hardly notices. */
const sliceSize = 128;

type Described = Extract<ReplyOf<"describe">, { ok: true }>;
type Describe = (request: RequestOf<"describe">) => Promise<Described>;

/**
 * The reply in pieces: `entries`, `next` where more follow, and `damaged`, the paths whose metadata cannot be opened,
 * where there are any: one bad file must not hide all others.
 */
export async function listReply(
  store: SecretStore,
  heads: CiphertextCache,
  describe: Describe,
  query: ListQuery,
  headBytes: number,
): Promise<readonly Bytes[]> {
  const limit = query.limit ?? store.count;
  const found = store.list(query.prefix, query.after, limit + 1);
  const paths = found.slice(0, limit);
  const pieces: Bytes[] = [];
  const damaged: string[] = [];
  for (let at = 0; at < paths.length; at += sliceSize) {
    const slice = paths.slice(at, at + sliceSize);
    const described = await heads.reading((keep) => describeSlice(store, heads, keep, describe, slice, headBytes));
    damaged.push(...described.damaged);
    if (described.reply.length === 0) continue;
    if (pieces.length > 0) pieces.push(text(","));
    pieces.push(described.reply);
  }
  const extras = {
    ...(found.length > limit && { next: paths.at(-1) }),
    ...(damaged.length > 0 && { damaged }),
  };
  return [text('{"entries":['), ...pieces, text(`]${restOfObject(extras)}`)];
}

/** What the key worker found to be the metadata's part of a blob is kept, for the next list. */
async function describeSlice(
  store: SecretStore,
  heads: CiphertextCache,
  keep: Keep,
  describe: Describe,
  paths: readonly string[],
  headBytes: number,
): Promise<Described> {
  const known = paths.map((path) => heads.get(path));
  const missing = paths.filter((_, i) => known[i] === undefined);
  const read = new Map(
    await Promise.all(missing.map(async (path) => [path, await readHead(store, path, headBytes)] as const)),
  );
  const entries = paths.flatMap((path, i) => {
    const head = known[i] ?? read.get(path) ?? null;
    return head === null ? [] : [{ path, head }]; // a secret that was deleted meanwhile is left out
  });
  const described = await describe({ op: "describe", entries });
  entries.forEach(({ path, head }, i) => {
    const length = described.lengths[i] ?? 0;
    if (read.has(path) && length > 0) keep(path, head.slice(0, length));
  });
  return described;
}

/** What is no blob at all becomes an empty head, which cannot be opened either. */
async function readHead(store: SecretStore, path: string, headBytes: number): Promise<Bytes | null> {
  try {
    return await store.read(path, headBytes);
  } catch (error) {
    if (error instanceof VaultError && error.code === "INTEGRITY") return new Uint8Array(new ArrayBuffer(0));
    throw error;
  }
}

/** The members as they end an object that has members already. */
function restOfObject(members: object): string {
  return Object.keys(members).length === 0 ? "}" : `,${JSON.stringify(members).slice(1)}`;
}

function text(json: string): Bytes {
  return new TextEncoder().encode(json);
}
