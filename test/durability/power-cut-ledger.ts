/** Ledger of acknowledged writes: the values that each secret may have after a power cut. */
import { expect } from "chai";
import type { TestServer } from "../../tools/rig/server.js";
import { type ApiResponse, type Json, mustList, secretTarget, send } from "../../tools/rig/test-client.js";

/** A value; null when there is no such secret. */
type State = string | null;

const directories = ["a", "b/c", "b/d", "e/f/g/h"];
const writersAtMost = 6;
const secretsOfWriter = 100;
/** Single puts and deletes meet on few secrets, and batches change any of them. */
const secretsOfSingles = 12;
const batchShare = 0.2;

type Changes = ReadonlyMap<string, State>;

export class Ledger {
  /** Operations that were acknowledged. */
  acknowledged = 0;
  readonly #states = new Map<string, State>();
  readonly #underWay = new Map<string, State>();
  /** Batches at the moment of the cut, each with the states before it. */
  #cutBatches: readonly { readonly changes: Changes; readonly before: Changes }[] = [];
  readonly #batches = new Set<Changes>();
  readonly #withBatches: boolean;
  #possible = new Map<string, readonly State[]>();
  #over = false;
  #resting = false;
  #serial = 0;

  constructor(withBatches = true) {
    this.#withBatches = withBatches;
  }

  /** Puts, deletes and batches at random, one at a time, until `rest` or `close`. Each writer has its own secrets. */
  async write(server: TestServer, writer: number): Promise<void> {
    while (!this.#over && !this.#resting) {
      const isBatch = this.#withBatches && Math.random() < batchShare;
      await this.#change(server, isBatch ? this.#batchOf(writer) : this.#singleOf(writer), isBatch);
    }
  }

  async #change(server: TestServer, changes: Changes, isBatch: boolean): Promise<void> {
    for (const [path, state] of changes) this.#underWay.set(path, state);
    if (isBatch) this.#batches.add(changes);
    const answer = await request(server, changes, isBatch).catch((error: unknown) => this.#unlessOver(error));
    if (this.#over || answer === null) return;
    const isDelete = !isBatch && [...changes.values()].includes(null);
    expect(answer.status, answer.text).to.be.oneOf(isDelete ? [200, 404] : [200]);
    for (const [path, state] of changes) {
      this.#states.set(path, state);
      this.#underWay.delete(path);
    }
    this.#batches.delete(changes);
    this.acknowledged++;
  }

  #singleOf(writer: number): Changes {
    return new Map([[randomOf(pathsOf(writer).slice(0, secretsOfSingles)), this.#nextState()]]);
  }

  /** From 2 to 100 changes. A batch deletes only what is there. */
  #batchOf(writer: number): Changes {
    const paths = pathsOf(writer);
    const first = Math.floor(Math.random() * paths.length);
    const chosen = [...paths.slice(first), ...paths.slice(0, first)].slice(0, 2 + Math.random() * (paths.length - 1));
    const isThere = (path: string) => (this.#states.get(path) ?? null) !== null;
    return new Map(chosen.map((path) => [path, isThere(path) ? this.#nextState() : this.#nextValue()]));
  }

  #nextState(): State {
    return Math.random() < 0.3 ? null : this.#nextValue();
  }

  /** Waits until every writer has finished its current operation. */
  async rest(writing: Promise<unknown>): Promise<void> {
    this.#resting = true;
    await writing;
  }

  /** Later acknowledgements do not count. Call in the same turn of the event loop as the power cut. */
  close(): void {
    this.#over = true;
    this.#possible = new Map(allPaths.map((path) => [path, this.#possibleAt(path)]));
    this.#cutBatches = [...this.#batches].map((changes) => {
      return { changes, before: new Map([...changes.keys()].map((path) => [path, this.#states.get(path) ?? null])) };
    });
    this.#batches.clear();
  }

  /** Returns every violation; then records what is there. */
  async compare(server: TestServer): Promise<string[]> {
    const losses: string[] = [];
    this.#underWay.clear();
    for (const [path, possible] of this.#possible) {
      const found = await stateOf(server, path);
      const kept = typeof found === "number" ? false : possible.includes(found);
      if (!kept) losses.push(`${path}: ${shorten(found)} instead of ${possible.map(shorten).join(" or ")}`);
      this.#states.set(path, typeof found === "number" ? null : found);
    }
    for (const { changes, before } of this.#cutBatches) {
      if (!this.#isNow(changes) && !this.#isNow(before)) losses.push(`a part of a batch of ${changes.size} changes`);
    }
    this.#over = this.#resting = false;
    const present = [...this.#states].flatMap(([path, state]) => (state === null ? [] : [path]));
    const listed = (await mustList(server)).map(({ path }) => path);
    if (losses.length === 0) expect(listed).to.have.members(present);
    return losses;
  }

  #isNow(states: Changes): boolean {
    return [...states].every(([path, state]) => this.#states.get(path) === state);
  }

  #possibleAt(path: string): readonly State[] {
    const states = [this.#states.get(path) ?? null];
    const next = this.#underWay.get(path);
    return next === undefined ? states : [...states, next];
  }

  /** Unique values, some longer than a block. */
  #nextValue(): string {
    return `${++this.#serial} ${"x".repeat(Math.random() < 0.2 ? 9_000 : 100)}`;
  }

  /** A power cut ends connections as well. */
  #unlessOver(error: unknown): null {
    if (!this.#over) throw error;
    return null;
  }
}

function request(server: TestServer, changes: Changes, isBatch: boolean): Promise<ApiResponse> {
  if (isBatch) {
    const operations = [...changes].map(([path, state]) =>
      state === null ? { delete: path } : { put: path, value: state },
    );
    return send(server, { method: "POST", path: "/v1/batch", body: { operations } });
  }
  const [[path, state] = ["", null]] = changes;
  const target = { path: secretTarget(path) };
  return state === null
    ? send(server, { ...target, method: "DELETE" })
    : send(server, { ...target, method: "PUT", body: { value: state } });
}

/** Returns the status when it shows neither a value nor its absence. */
async function stateOf(server: TestServer, path: string): Promise<State | number> {
  const { status, json }: { status: number; json: Json } = await send(server, { path: secretTarget(path) });
  if (status === 200) return String(json["value"]);
  return status === 404 ? null : status;
}

/** Writers share directories, so that one's delete prunes what another's put has just made. */
function pathsOf(writer: number): readonly string[] {
  return Array.from({ length: secretsOfWriter }, (_, n) => `${directories[n % directories.length]}/${writer}-${n}`);
}

const allPaths = Array.from({ length: writersAtMost }, (_, writer) => pathsOf(writer)).flat();

function randomOf<T>(choices: readonly T[]): T {
  return choices[Math.floor(Math.random() * choices.length)] as T;
}

function shorten(state: State | number): string {
  if (state === null) return "nothing";
  return typeof state === "number" ? `status ${state}` : `value ${state.split(" ")[0]}`;
}
