/** Sorted in-memory indexes of all paths, so that counting and listing need neither disk nor key. */
import { compareUtf8, sortUtf8 } from "../../paths/secret-path.js";
import { type Space, spaces } from "../secret-store.js";

export type Names = Readonly<Record<Space, NameIndex>>;

export function indexNames(found: Partial<Readonly<Record<Space, readonly string[]>>> = {}): Names {
  return Object.fromEntries(spaces.map((space) => [space, new NameIndex(found[space])])) as Names;
}

export class NameIndex {
  readonly #paths: string[];

  constructor(paths: readonly string[] = []) {
    this.#paths = sortUtf8([...paths]);
  }

  get count(): number {
    return this.#paths.length;
  }

  has(path: string): boolean {
    return this.#paths[this.#position(path)] === path;
  }

  add(path: string): void {
    const at = this.#position(path);
    if (this.#paths[at] !== path) this.#paths.splice(at, 0, path);
  }

  delete(path: string): void {
    const at = this.#position(path);
    if (this.#paths[at] === path) this.#paths.splice(at, 1);
  }

  /** Returns at most `limit` paths that start with `prefix` and sort after `after`. */
  list(prefix: string, after: string, limit: number): string[] {
    let at = this.#position(prefix);
    if (after !== "") {
      const behind = this.#position(after);
      at = Math.max(at, this.#paths[behind] === after ? behind + 1 : behind);
    }
    const end = Math.min(this.#paths.length, at + limit);
    const found: string[] = [];
    for (let path = this.#paths[at]; at < end && path?.startsWith(prefix); path = this.#paths[++at]) found.push(path);
    return found;
  }

  /** Returns the index at which the path is, or would be inserted. */
  #position(path: string): number {
    let low = 0;
    let high = this.#paths.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareUtf8(this.#paths[middle] ?? "", path) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
