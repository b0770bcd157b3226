/** Read-write lock: any number of shared holders, or one exclusive holder, who goes first. */

export class ReadWriteLock {
  #holders = 0;
  #exclusive: Promise<void> = Promise.resolve();
  #closed = false;
  #emptied: (() => void) | null = null;

  async shared<T>(work: () => Promise<T>): Promise<T> {
    while (this.#closed) await this.#exclusive;
    this.#holders++;
    try {
      return await work();
    } finally {
      this.#holders--;
      if (this.#holders === 0) this.#emptied?.();
    }
  }

  /** Blocks new holders, waits for the current ones, then runs alone. */
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
    if (this.#holders === 0) return;
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
    this.#emptied = null;
  }
}
