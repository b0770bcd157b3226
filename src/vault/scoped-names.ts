/** Names for a list that may see only some of the paths: as if nothing else existed, and nothing else is asked for. */
import { type NameRange, narrowed } from "../paths/path-scope.js";
import type { SecretStore } from "../storage/secret-store.js";

type Store = Pick<SecretStore, "list">;

/** See `SecretStore.list`. `within`: only paths in these ranges, disjoint and ascending; all without it. */
export type NameQuery = { readonly prefix: string; readonly after: string; readonly within?: readonly NameRange[] };

export async function listNames(store: Store, query: NameQuery, limit: number): Promise<readonly string[]> {
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
  store: Store,
  { prefix, exact }: NameRange,
  after: string,
  limit: number,
): Promise<readonly string[]> {
  if (!exact) return store.list(prefix, after, limit);
  const [first] = await store.list(prefix, after, 1);
  return first === prefix ? [first] : [];
}
