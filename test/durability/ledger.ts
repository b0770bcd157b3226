/**
 * Ledger of requested and acknowledged writes: what the vault may contain after a crash. Each path has one writer at a
 * time; a forced init may run beside writes. An unacknowledged operation, also a batch of changes, has happened as a whole
 * or not at all.
 */

/** A path's content; null when there is no secret. */
export type Text = string | null;

/** `text`: the path's content afterwards. */
export type TextChange = { readonly path: string; readonly text: Text };

export type Operation = {
  readonly changes: readonly TextChange[];
  /** An init was acknowledged while it ran: this operation may have come before or after it. */
  crossedInit: boolean;
};

type States = Map<string, ReadonlySet<Text>>;

export class Ledger {
  /** Values that each path of the current vault may have; a missing path has no secret. */
  #now: States = new Map();
  /** The same for the vault that a running init will make current; it begins empty. */
  #next: States | null = null;
  readonly #open = new Set<Operation>();
  /** Changes that were not acknowledged before the crash, with the values that each path may have without them. */
  #broken: readonly (readonly (TextChange & { readonly before: ReadonlySet<Text> })[])[] = [];

  get initUnderWay(): boolean {
    return this.#next !== null;
  }

  /** Whether there may be a secret at the path, and whether there may be none. */
  mayHold(path: string): { readonly something: boolean; readonly nothing: boolean } {
    const states = [...statesOf(this.#now, path), ...(this.#next ? statesOf(this.#next, path) : [])];
    return { something: states.some((text) => text !== null), nothing: states.includes(null) };
  }

  /** Every path that was written in the current vault. */
  paths(): Iterable<string> {
    return this.#now.keys();
  }

  /** The text that a path certainly contains; null when that is not certain, or there is none. */
  certainText(path: string): Text {
    const [text = null, another] = statesOf(this.#now, path);
    return another === undefined && this.#next === null ? text : null;
  }

  begin(path: string, text: Text): Operation {
    return this.beginBatch([{ path, text }]);
  }

  beginBatch(changes: readonly TextChange[]): Operation {
    const busy = new Set([...this.#open].flatMap((open) => open.changes.map(({ path }) => path)));
    for (const { path } of changes) if (busy.has(path)) throw new Error(`two operations at once on ${path}`);
    const operation = { changes, crossedInit: false };
    this.#open.add(operation);
    return operation;
  }

  acknowledge(operation: Operation): void {
    const { changes, crossedInit } = operation;
    this.#open.delete(operation);
    for (const { path, text } of changes) {
      this.#now.set(path, new Set(crossedInit ? [text, null] : [text]));
      this.#next?.set(path, new Set([text, null]));
    }
  }

  /** The response says that nothing has happened. */
  refuse(operation: Operation): void {
    this.#open.delete(operation);
  }

  beginInit(): void {
    this.#next = new Map();
  }

  acknowledgeInit(): void {
    this.#now = this.#next ?? new Map();
    this.#next = null;
    for (const operation of this.#open) operation.crossedInit = true;
  }

  /** The server was killed. `newVault`: the running init has happened. */
  crash(newVault: boolean): void {
    const left = (newVault ? this.#next : this.#now) ?? new Map();
    const changes = [...this.#open].map((open) => open.changes);
    this.#broken = changes.map((all) => all.map((one) => ({ ...one, before: statesOf(left, one.path) })));
    for (const { path, text } of changes.flat()) {
      for (const states of [this.#now, this.#next]) states?.set(path, new Set([...statesOf(states, path), text]));
    }
    this.#open.clear();
    if (newVault) this.acknowledgeInit();
    this.#next = null;
  }

  /** Describes a violation; null when what was found is allowed. */
  violations(found: ReadonlyMap<string, string>): string[] {
    const wrong = [...new Set([...this.#now.keys(), ...found.keys()])].flatMap((path) => {
      const allowed = statesOf(this.#now, path);
      const text = found.get(path) ?? null;
      return allowed.has(text)
        ? []
        : [`${path} holds ${brief(text)}, allowed is ${[...allowed].map(brief).join(" or ")}`];
    });
    return [...wrong, ...this.#mixtures(found)];
  }

  /** Batches of which a part has happened. */
  #mixtures(found: ReadonlyMap<string, string>): string[] {
    return this.#broken.flatMap((changes) => {
      const isAfter = changes.every(({ path, text }) => (found.get(path) ?? null) === text);
      const isBefore = changes.every(({ path, before }) => before.has(found.get(path) ?? null));
      const paths = changes.map(({ path }) => path);
      return isAfter || isBefore ? [] : [`a part of a batch has happened: ${paths.join(", ")}`];
    });
  }

  /** Records what was found as certain. */
  settle(found: ReadonlyMap<string, string>): void {
    this.#now = new Map([...found].map(([path, text]) => [path, new Set([text])]));
    this.#broken = [];
  }
}

const nothing: ReadonlySet<Text> = new Set([null]);

function statesOf(states: States, path: string): ReadonlySet<Text> {
  return states.get(path) ?? nothing;
}

function brief(text: Text): string {
  if (text === null) return "nothing";
  return text.length <= 60 ? text : `${text.slice(0, 40)}… (${text.length} characters)`;
}
