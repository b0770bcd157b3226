/** Heap for the names of all secrets: too many end a start with a sentence, and not in V8's abort. */
import { getHeapStatistics } from "node:v8";
import { StartError } from "../../errors.js";

const mebibyte = 2 ** 20;

/** V8's limit includes up to 48 MiB of young objects; the rest is for the program at work. */
const reservedBytes = 64 * mebibyte;

/** Names of this size never matter. */
const smallestBudget = 4 * mebibyte;

/** Of a path beyond its characters: the string's header, and its places in the list, the index and their growth. */
const pathOverhead = 56;

export class NameBudget {
  readonly #limit: number;
  #left: number;

  constructor({ heap_size_limit: limit, used_heap_size: used } = getHeapStatistics()) {
    this.#limit = limit;
    this.#left = Math.max(smallestBudget, limit - used - reservedBytes);
  }

  /** Call it before the path is kept. @throws StartError */
  spend(path: string): void {
    this.#left -= Buffer.byteLength(path) + pathOverhead;
    if (this.#left < 0) throw tooSmall(this.#limit);
  }
}

function tooSmall(limit: number): StartError {
  return new StartError(
    `the heap of ${Math.round(limit / mebibyte)} MiB is too small for the names of all secrets: raise it, for example with ` +
      "NODE_OPTIONS=--max-old-space-size=1024 (MiB; a million secrets need about 200), then start again",
  );
}
