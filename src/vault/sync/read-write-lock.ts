/** Owns who may work on the vault at once: any number of shared passages, or one exclusive passage alone. */

export class ReadWriteLock {
  #inside = 0;
  #exclusive: Promise<void> = Promise.resolve();
  #closed = false;
  #emptied: (() => void) | null = null;

  async shared<T>(work: () => Promise<T>): Promise<T> {
    while (this.#closed) await this.#exclusive;
    this.#inside++;
    try {
      return await work();
    } finally {
      this.#inside--;
      if (this.#inside === 0) this.#emptied?.();
    }
  }

  /** Lets nobody in, waits until all are out, then works alone. */
  async exclusive<T>(work: () => Promise<T>): Promise<T> {
    while (this.#closed) await this.#exclusive;
    this.#closed = true;
    let open: () => void = () => {};
    this.#exclusive = new Promise((resolve) => {
      open = resolve;
    });
    try {
      await this.#empty();
      return await work();
    } finally {
      this.#closed = false;
      open();
    }
  }

  async #empty(): Promise<void> {
    if (this.#inside === 0) return;
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
    this.#emptied = null;
  }
}
