/**
 * Locks of the main thread: read-write lock, mutex, mutex by key, semaphore and shared runs. Which may be held while taking which:
 * docs/inside/locks-and-threads.md.
 */

/** Any number of shared holders, or one exclusive holder, who goes first. */
export class ReadWriteLock {
  #holders = 0;
  #exclusive: Promise<void> = Promise.resolve();
  #closed = false;
  #emptied: (() => void) | null = null;

  /** Becomes a shared holder at once, unless there is an exclusive one. Returns whether it did; `leave` ends it. */
  tryEnter(): boolean {
    if (this.#closed) return false;
    this.#holders++;
    return true;
  }

  /** Becomes a shared holder; `leave` ends it. */
  async enter(): Promise<void> {
    while (!this.tryEnter()) await this.#exclusive;
  }

  leave(): void {
    this.#holders--;
    if (this.#holders === 0) this.#emptied?.();
  }

  async shared<T>(work: () => Promise<T>): Promise<T> {
    if (!this.tryEnter()) await this.enter();
    try {
      return await work();
    } finally {
      this.leave();
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

/**
 * Mutual exclusion by key: work under one key runs in order, work under different keys concurrently. Work under several keys
 * takes its place under all of them at once, so two such never wait for each other.
 */
export class KeyedMutex {
  /** Resolves when the last one in the key's queue has ended. */
  readonly #last = new Map<string, Promise<void>>();

  async run<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const previous = keys.flatMap((key) => this.#last.get(key) ?? []);
    let end: () => void = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    for (const key of keys) this.#last.set(key, ended);
    if (previous.length > 0) await Promise.all(previous);
    try {
      return await work();
    } finally {
      end();
      for (const key of keys) if (this.#last.get(key) === ended) this.#last.delete(key);
    }
  }
}

/** Runs work one at a time, in order. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const current = this.#last.then(work, work);
    this.#last = current.catch(() => {});
    return current;
  }
}

/** Limit on how many operations run at once; the others wait in order. */
export class Semaphore {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  /** `slots`: how many may run at once. */
  constructor(slots: number) {
    this.#free = slots;
  }

  /** Waits for a slot. Call `release` once the operation has ended. */
  acquire(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free--;
      return undefined;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }

  /** Runs an operation in a slot. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.acquire();
    try {
      return await work();
    } finally {
      this.release();
    }
  }
}

/** Returns a function that runs the work for each call, or once for all calls that wait for the previous run to end. */
export function sharedRuns(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<void> | null = null;
  const begin = () => {
    next = null;
    const run = work();
    running = run.catch(() => {}); // its callers get the error
    return run;
  };
  return () => {
    next ??= running.then(begin);
    return next;
  };
}
