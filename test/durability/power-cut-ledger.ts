/** Owns what writers were promised: which value each secret must have after a power cut, or may have. */
import { expect } from "chai";
import type { TestServer } from "../support/server.js";
import { type Answer, type Json, mustList, secretTarget, send } from "../support/test-client.js";

/** A value, or null: there is no such secret. */
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

  /** Puts and deletes at random, one after the other, until `rest` or `close`. Every writer has secrets of its own. */
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

  /** Lets every writer end what it has begun. */
  async rest(writing: Promise<unknown>): Promise<void> {
    this.#resting = true;
    await writing;
  }

  /** From here on nothing counts as acknowledged. To be called in the same turn as the power is cut. */
  close(): void {
    this.#over = true;
    this.#possible = new Map(allPaths.map((path) => [path, this.#possibleAt(path)]));
  }

  /** What is not as promised; then goes on with what is there. */
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

  /** No two values are alike; some are longer than a block. */
  #nextValue(): string {
    return `${++this.#serial} ${"x".repeat(Math.random() < 0.2 ? 9_000 : 100)}`;
  }

  /** When the power goes, connections go too. */
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

/** The status, when it tells neither of a value nor of its absence. */
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
