/** Outcomes of a batch's operations, one by one: the reply, and the changes that the batch's commit will make. */
import type { SealReply } from "../../../workers/protocol.js";
import type { Clock } from "../../clock.js";
import { VaultError } from "../../errors.js";
import type { Expected } from "../../storage/secret-store.js";
import type { CachedStore } from "../cached-store.js";
import { expectedAs, isConditional, notFound, requireCondition, type TaggedReply, tagOrNone } from "../condition.js";
import type { KeyState } from "../key-state.js";
import type { Opener } from "../opener.js";
import { json, type Outcome, wipingOnFailure } from "./batch-outcomes.js";
import type { DeleteStep, MoveStep, PutStep, Step } from "./batch-plan.js";

export type StepOutcomesOptions = {
  readonly cached: CachedStore;
  readonly keyState: KeyState;
  readonly clock: Clock;
  readonly opener: Opener;
};

export class StepOutcomes {
  readonly #cached: CachedStore;
  readonly #keyState: KeyState;
  readonly #clock: Clock;
  readonly #opener: Opener;

  constructor({ cached, keyState, clock, opener }: StepOutcomesOptions) {
    this.#cached = cached;
    this.#keyState = keyState;
    this.#clock = clock;
    this.#opener = opener;
  }

  /** Changes nothing yet. @throws VaultError as the operation alone */
  of(step: Step): Promise<Outcome> {
    if (step.kind === "get") return this.judged(step, this.#opener.one(step.path));
    if (step.kind === "put") return this.#put(step);
    return step.kind === "delete" ? this.#delete(step) : this.#moveOrCopy(step);
  }

  /** Returns the outcome of a get whose secret is being opened; wipes the reply when the condition does not hold. */
  async judged({ path, condition }: Step, opened: Promise<TaggedReply>): Promise<Outcome> {
    const { reply, tag } = await opened.catch((error: unknown) => {
      if (error instanceof VaultError && error.code === "NOT_FOUND") requireCondition(condition, path, null);
      throw error;
    });
    const outcome: Outcome = { reply, changes: [], basis: { path, tag } };
    return wipingOnFailure([outcome], async () => {
      requireCondition(condition, path, tag);
      return outcome;
    });
  }

  async #put({ path, condition, body }: PutStep): Promise<Outcome> {
    const previous = await this.#cached.previous(path);
    requireCondition(condition, path, tagOrNone(previous));
    const sealed = await this.#keyState.ask({ op: "seal", path, body, previous, now: this.#clock.now() });
    const isBased = this.#cached.isShared || isConditional(condition);
    return written(path, sealed, isBased ? expectedAs(previous) : undefined);
  }

  async #delete({ path, condition }: DeleteStep): Promise<Outcome> {
    const reply = json({ ok: true, path, message: "the secret is deleted" });
    if (!isConditional(condition)) return { reply, changes: [{ path, blob: null, expected: "present" }] };
    const tag = tagOrNone(await this.#cached.head(path));
    requireCondition(condition, path, tag);
    return { reply, changes: [{ path, blob: null, expected: tag === null ? "present" : { tag } }] };
  }

  async #moveOrCopy({ kind, path, condition, to, toCondition }: MoveStep): Promise<Outcome> {
    const blob = await this.#cached.whole(path);
    const tag = tagOrNone(blob);
    requireCondition(condition, path, tag);
    if (blob === null || tag === null) throw notFound(path);
    if (isConditional(toCondition)) requireCondition(toCondition, to, tagOrNone(await this.#cached.head(to)));
    const expected = isConditional(toCondition) ? "absent" : undefined;
    if (kind === "copy") {
      const copy = await this.#keyState.ask({ op: "copy", path, to, blob, now: this.#clock.now() });
      return { ...written(to, copy, expected), basis: { path, tag } };
    }
    const moved = written(to, await this.#keyState.ask({ op: "move", path, to, blob }), expected);
    return { ...moved, changes: [{ path, blob: null, expected: expectedAs(blob) }, ...moved.changes] };
  }
}

function written(path: string, { blob, headLength, reply }: SealReply, expected: Expected | undefined): Outcome {
  return { reply, changes: [{ path, blob, ...(expected && { expected }) }], sealed: { path, blob, headLength } };
}
