/**
 * Owns what a vault may hold after a crash, told by what was asked of it and what was acknowledged. Each path has one
 * writer at a time; a forced init may happen beside writes. An operation that was never answered may have happened or
 * not, as a whole; nothing else is allowed.
 */

/** What a path holds; null is nothing. */
export type Text = string | null;

export type Operation = {
  readonly path: string;
  /** What the path holds once it is done. */
  readonly text: Text;
  /** An init was acknowledged meanwhile, so it may have come before or after it. */
  crossedInit: boolean;
};

type States = Map<string, ReadonlySet<Text>>;

export class Ledger {
  /** What each path may hold in the vault in force; one that is missing here holds nothing. */
  #now: States = new Map();
  /** The same for the vault that an init under way will put in force, which begins empty. */
  #next: States | null = null;
  readonly #open = new Set<Operation>();

  get initUnderWay(): boolean {
    return this.#next !== null;
  }

  /** Whether the path may hold something, or nothing, as far as can be told now. */
  mayHold(path: string): { readonly something: boolean; readonly nothing: boolean } {
    const states = [...statesOf(this.#now, path), ...(this.#next ? statesOf(this.#next, path) : [])];
    return { something: states.some((text) => text !== null), nothing: states.includes(null) };
  }

  /** Every path that was written to in the vault in force. */
  paths(): Iterable<string> {
    return this.#now.keys();
  }

  begin(path: string, text: Text): Operation {
    if ([...this.#open].some((open) => open.path === path)) throw new Error(`two operations at once on ${path}`);
    const operation = { path, text, crossedInit: false };
    this.#open.add(operation);
    return operation;
  }

  acknowledge(operation: Operation): void {
    const { path, text, crossedInit } = operation;
    this.#open.delete(operation);
    this.#now.set(path, new Set(crossedInit ? [text, null] : [text]));
    this.#next?.set(path, new Set([text, null]));
  }

  beginInit(): void {
    this.#next = new Map();
  }

  acknowledgeInit(): void {
    this.#now = this.#next ?? new Map();
    this.#next = null;
    for (const operation of this.#open) operation.crossedInit = true;
  }

  /** The server was killed. `newVault`: an init under way turned out to have happened. */
  crash(newVault: boolean): void {
    for (const { path, text } of this.#open) {
      for (const states of [this.#now, this.#next]) states?.set(path, new Set([...statesOf(states, path), text]));
    }
    this.#open.clear();
    if (newVault) this.acknowledgeInit();
    this.#next = null;
  }

  /** What is wrong with what was found; nothing, when it is one of the allowed outcomes. */
  violations(found: ReadonlyMap<string, string>): string[] {
    return [...new Set([...this.#now.keys(), ...found.keys()])].flatMap((path) => {
      const allowed = statesOf(this.#now, path);
      const text = found.get(path) ?? null;
      return allowed.has(text)
        ? []
        : [`${path} holds ${brief(text)}, allowed is ${[...allowed].map(brief).join(" or ")}`];
    });
  }

  /** What was found is certain from now on. */
  settle(found: ReadonlyMap<string, string>): void {
    this.#now = new Map([...found].map(([path, text]) => [path, new Set([text])]));
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
