/**
 * Mutual exclusion by key: work under one key runs in order, work under different keys concurrently. Work under several keys
 * takes its place under all of them at once, so two such never wait for each other.
 */

export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const previous = this.#last.get(key) ?? Promise.resolve();
    return this.#holding([key], previous.then(work, work));
  }

  runAll<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const previous = keys.map((key) => this.#last.get(key));
    return this.#holding(keys, Promise.allSettled(previous).then(work));
  }

  async #holding<T>(keys: readonly string[], current: Promise<T>): Promise<T> {
    for (const key of keys) this.#last.set(key, current);
    try {
      return await current;
    } finally {
      for (const key of keys) if (this.#last.get(key) === current) this.#last.delete(key);
    }
  }
}
