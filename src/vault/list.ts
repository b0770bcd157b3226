/** Owns how a list is made: names from the store, metadata opened by the key worker slice by slice. */
import type { Bytes, ReplyOf, RequestOf, SealedEntry } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import type { SecretStore } from "../storage/secret-store.js";

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
    const entries = await readHeads(store, paths.slice(at, at + sliceSize), headBytes);
    const described = await describe({ op: "describe", entries });
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

/** A secret that was deleted meanwhile is left out. */
async function readHeads(store: SecretStore, paths: readonly string[], headBytes: number): Promise<SealedEntry[]> {
  const heads = await Promise.all(paths.map(async (path) => ({ path, head: await readHead(store, path, headBytes) })));
  return heads.flatMap(({ path, head }) => (head === null ? [] : [{ path, head }]));
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
