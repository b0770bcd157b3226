/** The secrets that the screen lists: loaded page by page in the background, searched at each key. */
import type { SecretEntry, SecretList, StrongroomClient } from "../../client/client.js";

type Row = { readonly entry: SecretEntry; readonly folded: string };

/** Entries of the first page, which is short so that it comes soon. */
export const firstPage = 100;
const furtherPages = 1000;

export class Catalog {
  /** All rows, in the order of the server. */
  #rows: Row[] = [];
  #found: Row[] = [];
  #query = "";
  #loading = false;
  #damaged = 0;

  get total(): number {
    return this.#rows.length;
  }

  get isLoading(): boolean {
    return this.#loading;
  }

  /** How many secrets have damaged metadata, and are not listed. */
  get damaged(): number {
    return this.#damaged;
  }

  get query(): string {
    return this.#query;
  }

  /** How many secrets the search finds. */
  get count(): number {
    return this.#found.length;
  }

  at(index: number): SecretEntry | undefined {
    return this.#found[index]?.entry;
  }

  slice(from: number, to: number): SecretEntry[] {
    return this.#found.slice(from, to).map(({ entry }) => entry);
  }

  /** Returns the place of a path among what was found, or that of the next one. */
  indexOf(path: string): number {
    return insertionIndex(this.#found, path);
  }

  /** Loads everything again; calls `onPage` after each page. @throws StrongroomError */
  async load(
    client: StrongroomClient,
    prefix: string,
    signal: AbortSignal,
    onPage: () => void,
    first?: SecretList,
  ): Promise<void> {
    this.#rows = [];
    this.#found = [];
    this.#damaged = 0;
    this.#loading = true;
    try {
      let page = first ?? (await client.list({ prefix, limit: firstPage, signal }));
      for (;;) {
        this.#loading = page.next !== undefined;
        this.#add(page.entries, page.damaged?.length ?? 0);
        onPage();
        if (page.next === undefined) return;
        page = await client.list({ prefix, limit: furtherPages, after: page.next, signal });
      }
    } finally {
      this.#loading = false;
    }
  }

  /** Finds the secrets whose path or description has all the words, ignoring case. */
  search(query: string): void {
    const narrows = query.startsWith(this.#query);
    this.#query = query;
    this.#found = (narrows ? this.#found : this.#rows).filter(matching(query));
  }

  /** Shows what is known of a secret now: `entry` is null when it is gone. */
  replace(path: string, entry: SecretEntry | null): void {
    const at = insertionIndex(this.#rows, path);
    const isThere = this.#rows[at]?.entry.path === path;
    if (!isThere && this.#loading && at === this.#rows.length) return; // it comes with a later page
    const rows = entry === null ? [] : [catalogRow(entry)];
    this.#rows = this.#rows.toSpliced(at, isThere ? 1 : 0, ...rows);
    this.#found = this.#rows.filter(matching(this.#query));
  }

  #add(entries: readonly SecretEntry[], damaged: number): void {
    const rows = entries.map(catalogRow);
    const found = rows.filter(matching(this.#query));
    this.#rows.push(...rows);
    this.#found.push(...found);
    this.#damaged += damaged;
  }
}

function catalogRow(entry: SecretEntry): Row {
  return { entry, folded: folded(`${entry.path}\n${entry.metadata.description ?? ""}`) };
}

function folded(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

function matching(query: string): (row: Row) => boolean {
  const words = folded(query).split(/\s+/);
  return (row) => words.every((word) => row.folded.includes(word));
}

/** The server orders paths by their bytes. */
function insertionIndex(rows: readonly Row[], path: string): number {
  const wanted = Buffer.from(path);
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Buffer.compare(Buffer.from(rows[middle]?.entry.path ?? ""), wanted) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
