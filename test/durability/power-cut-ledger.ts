/** Ledger of acknowledged writes: the values that each secret may have after a power cut. */
import { expect } from "chai";
import type { TestServer } from "../support/server.js";
import { type Answer, type Json, mustList, secretTarget, send } from "../support/test-client.js";

/** A value; null when there is no such secret. */
type State = string | null;

const directories = ["a", "b/c", "b/d", "e/f/g/h"];
const writersAtMost = 6;
const secretsOfWriter = 12;

export class Ledger {
  /** Operations that were acknowledged. */
  acknowledged = 0;
  readonly #states = new Map<string, State>();
  readonly #underWay = new Map<string, State>();
  #possible = new Map<string, readonly State[]>();
  #over = false;
  #resting = false;
  #serial = 0;

  /** Puts and deletes at random, one at a time, until `rest` or `close`. Each writer has its own secrets. */
  async write(server: TestServer, writer: number): Promise<void> {
    while (!this.#over && !this.#resting) {
      const path = randomOf(pathsOf(writer));
      const state = Math.random() < 0.3 ? null : this.#nextValue();
      this.#underWay.set(path, state);
      const answer = await request(server, path, state).catch((error: unknown) => this.#unlessOver(error));
      if (this.#over || answer === null) return;
      expect(answer.status, answer.text).to.be.oneOf(state === null ? [200, 404] : [200]);
      this.#states.set(path, state);
      this.#underWay.delete(path);
      this.acknowledged++;
    }
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
    this.#over = this.#resting = false;
    const present = [...this.#states].flatMap(([path, state]) => (state === null ? [] : [path]));
    const listed = (await mustList(server)).map(({ path }) => path);
    if (losses.length === 0) expect(listed).to.have.members(present);
    return losses;
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

function request(server: TestServer, path: string, state: State): Promise<Answer> {
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
