/**
 * Model of what a vault may hold while it changes. The vault has parts; in the lane of a part one change follows the other, and all
 * lanes run side by side. A lane has every state that its part may be in: a change that was not answered has happened as a whole or
 * not at all, and a forced init beside a change came before it or after it.
 */
import { AssertionError } from "chai";
import type { ApiResponse, Json, Send } from "../../tools/rig/test-client.js";
import type { Random } from "../support/random.js";

/** `status`: 200 for every success. */
export type Outcome<S> = { readonly status: number; readonly state: S };

export type Change<S> = {
  readonly request: Send;
  /** Returns what may come of the request. `response`: null when none has come. */
  readonly outcomes: (state: S, response: Json | null) => readonly Outcome<S>[];
};

export type Part<S, Found> = {
  readonly name: string;
  /** State in a new vault. */
  readonly empty: S;
  /** Returns null where there is nothing to change now. */
  readonly choose: (state: S, random: Random) => Change<S> | null;
  /** Whether a vault in which this was found is in the state. */
  readonly matches: (state: S, found: Found) => boolean;
  /** Returns the found state for a message. */
  readonly describe: (found: Found) => unknown;
  /** Returns states that may follow without a request. */
  readonly drifts?: (state: S) => readonly S[];
};

/** Returns null when the server is gone: then the change may have happened. */
export type Ask = (request: Send) => Promise<ApiResponse | null>;

export class Lane<S, Found> {
  readonly part: Part<S, Found>;
  #states: readonly S[];
  /** States of the vault that a running init replaces. */
  #before: readonly S[] | null = null;
  /** States of vaults that were replaced while the open change was under way, and where it may have gone. */
  #replaced: readonly S[] = [];
  #open: Change<S> | null = null;

  constructor(part: Part<S, Found>) {
    this.part = part;
    this.#states = [part.empty];
  }

  /** All states that are possible now. */
  get states(): readonly S[] {
    return [...this.#states, ...(this.#before ?? [])];
  }

  /** Chooses a change and makes it, where it is wanted. Returns false when the server is gone. */
  async step(random: Random, ask: Ask, isWanted: (request: Send) => boolean = () => true): Promise<boolean> {
    this.#states = this.#drifted(this.#states);
    const [first = this.part.empty, ...others] = this.states;
    const change = this.part.choose(random.pick([first, ...others]), random);
    return change === null || !isWanted(change.request) || this.make(change, ask);
  }

  async make(change: Change<S>, ask: Ask): Promise<boolean> {
    this.begin(change);
    const answer = await ask(change.request);
    if (answer !== null) this.answer(answer);
    return answer !== null;
  }

  begin(change: Change<S>): void {
    if (this.#open !== null) throw new Error(`two changes at once in ${this.part.name}`);
    this.#open = change;
  }

  /** Takes the response to the open change. @throws AssertionError for one that no possible state gives */
  answer({ status, json }: Pick<ApiResponse, "status" | "json">): void {
    const { request, outcomes } = this.#ended();
    const known = status >= 200 && status < 300 ? 200 : status;
    const after = (states: readonly S[]) =>
      states.flatMap((state) =>
        outcomes(state, json).flatMap((outcome) => (outcome.status === known ? [outcome.state] : [])),
      );
    // A change that came before an init has left nothing in the vault that the init made, nor have the lane's earlier ones.
    const ifReplaced = after(this.#replaced).length > 0 ? [this.part.empty] : [];
    const before = this.#before === null ? null : [...ifReplaced, ...after(this.#before)];
    const ifBefore = before === null ? ifReplaced : before.length > 0 ? [this.part.empty] : [];
    const states = [...ifBefore, ...after(this.#states)];
    if (states.length === 0)
      throw new AssertionError(
        `${this.part.name}: ${request.method ?? "GET"} ${request.path} was answered with ${status} ${JSON.stringify(json)}`,
      );
    this.#states = unique(states);
    this.#before = before;
    this.#replaced = [];
  }

  /** The open change has happened, or it has not. */
  leaveOpen(): void {
    const { outcomes } = this.#ended();
    const withIt = (states: readonly S[]) =>
      unique([...states, ...states.flatMap((state) => outcomes(state, null).map((outcome) => outcome.state))]);
    this.#states = withIt(this.#states);
    if (this.#before !== null) this.#before = withIt(this.#before);
    this.#replaced = [];
  }

  beginInit(): void {
    this.#before = this.#states;
    this.#states = [this.part.empty];
  }

  /** `isNew`: the init has happened. */
  endInit(isNew: boolean): void {
    const before = this.#before ?? [];
    if (!isNew) this.#states = before;
    else if (this.#open !== null) this.#replaced = [...this.#replaced, ...before];
    this.#before = null;
  }

  /** The server has ended. `isNew`: where an init was under way, it has happened. */
  crash(isNew: boolean): void {
    if (this.#open !== null) this.leaveOpen();
    if (this.#before !== null) this.endInit(isNew);
  }

  /** @throws AssertionError where no possible state was found, which is the only one from now on */
  settle(found: Found): void {
    const possible = this.#drifted(this.#states);
    const [state] = possible.filter((each) => this.part.matches(each, found));
    if (state === undefined) {
      const allowed = possible.map((each) => brief(each)).join("\n or ");
      throw new AssertionError(`${this.part.name} is ${brief(this.part.describe(found))}\nallowed is ${allowed}`);
    }
    this.#states = [state];
  }

  /** Replaces the only possible state. */
  revise(after: (state: S) => S): void {
    const [state, another] = this.#states;
    if (state !== undefined && another === undefined) this.#states = [after(state)];
  }

  #ended(): Change<S> {
    const open = this.#open;
    if (open === null) throw new Error(`no change is open in ${this.part.name}`);
    this.#open = null;
    return open;
  }

  #drifted(states: readonly S[]): readonly S[] {
    const { drifts } = this.part;
    return drifts === undefined ? states : unique(states.flatMap((state) => [state, ...drifts(state)]));
  }
}

function unique<S>(states: readonly S[]): readonly S[] {
  return states.length < 2 ? states : [...new Map(states.map((state) => [canonical(state), state])).values()];
}

/** JSON with sorted names. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === "object" && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}

function brief(value: unknown): string {
  const text = JSON.stringify(value, (_, one: unknown) =>
    typeof one === "string" && one.length > 60 ? `${one.slice(0, 40)}… (${one.length} characters)` : one,
  );
  return text.length > 4_000 ? `${text.slice(0, 4_000)}…` : text;
}
