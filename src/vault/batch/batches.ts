/**
 * Batches of operations: gets each for itself or, with any change among them, all or nothing. Every operation of a batch sees
 * the secrets as they were before it.
 */
import type { Bytes, PlannedOperation, SharedBytes } from "../../../workers/protocol.js";
import { VaultError } from "../../errors.js";
import type { Log } from "../../log.js";
import type { CachedStore } from "../cached-store.js";
import { changedMeanwhile, notFound } from "../condition.js";
import type { KeyState } from "../key-state.js";
import type { Opener } from "../opener.js";
import { repeatingWith, sharedCopyOf } from "../shared/repeating.js";
import type { KeyedMutex } from "../sync/keyed-mutex.js";
import { basedCommit, changesOf } from "./batch-bases.js";
import { inSlices, json, type Outcome, response, wipingOnFailure } from "./batch-outcomes.js";
import {
  type BatchPermit,
  isRefusal,
  mustPermitKinds,
  mustPermitPaths,
  pathsOf,
  refusedAt,
  type Step,
  stepOrRefusal,
  stepsOf,
} from "./batch-plan.js";
import { ReplyBudget } from "./reply-budget.js";
import { StepOutcomes, type StepOutcomesOptions } from "./step-outcomes.js";

/** Most bytes of ciphertext that a batch writes: the journal of a batch is in memory as a whole. */
const maxSealedBytes = 256 * 2 ** 20;

type BatchesOptions = StepOutcomesOptions & {
  readonly log: Log;
  readonly paths: KeyedMutex;
  /** Most bytes of replies to gets. */
  readonly maxBatchBytes: number;
};

export class Batches {
  readonly #cached: CachedStore;
  readonly #keyState: KeyState;
  readonly #outcomes: StepOutcomes;
  readonly #log: Log;
  readonly #paths: KeyedMutex;
  readonly #opener: Opener;
  readonly #maxReplyBytes: number;

  constructor(options: BatchesOptions) {
    const { cached, keyState, log, paths, opener, maxBatchBytes } = options;
    this.#cached = cached;
    this.#keyState = keyState;
    this.#outcomes = new StepOutcomes(options);
    this.#log = log;
    this.#paths = paths;
    this.#opener = opener;
    this.#maxReplyBytes = maxBatchBytes;
  }

  /** Returns the response. */
  async run(body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    const { operations } = await this.#keyState.ask({ op: "plan", body });
    mustPermitKinds(operations, permit);
    if (operations.every(({ kind }) => kind === "get")) return this.#read(operations, body, permit);
    const steps = stepsOf(operations, body);
    mustPermitPaths(steps, permit);
    const change = (given: SharedBytes) => this.#change(stepsOf(operations, given));
    return this.#paths.runAll(pathsOf(steps), () =>
      this.#cached.isShared ? repeatingWith(body, sharedCopyOf, change) : this.#change(steps),
    );
  }

  async #read(operations: readonly PlannedOperation[], body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    const budget = new ReplyBudget(this.#maxReplyBytes);
    const outcomes = await inSlices(operations, (slice, from) =>
      this.#readSlice(
        slice.map((operation, i) => stepOrRefusal(operation, from + i, body, permit)),
        budget,
      ),
    );
    return response(outcomes);
  }

  async #readSlice(
    steps: readonly (Step | VaultError)[],
    budget: ReplyBudget,
  ): Promise<PromiseSettledResult<Outcome>[]> {
    const paths = steps.flatMap((step) => (step instanceof VaultError ? [] : [step.path]));
    const opened = (await this.#opener.many(paths, budget)).values();
    const results = steps.map(async (step) => {
      try {
        if (step instanceof VaultError) throw step;
        return await this.#outcomes.judged(step, resultOf(opened.next().value));
      } catch (error) {
        if (isRefusal(error)) return this.#failed(error);
        throw error;
      }
    });
    return Promise.allSettled(results);
  }

  async #change(steps: readonly Step[]): Promise<Bytes> {
    const budget = new ReplyBudget(this.#maxReplyBytes);
    let sealedBytes = 0;
    const one = async (step: Step) => {
      try {
        const make = () => this.#outcomes.of(step);
        const outcome = await (step.kind === "get" ? budget.take(make) : make());
        sealedBytes += outcome.sealed?.blob.length ?? 0;
        if (sealedBytes > maxSealedBytes) throw tooMuchWritten();
        return outcome;
      } catch (error) {
        throw refusedAt(step.index, error);
      }
    };
    const outcomes = await inSlices(steps, (slice) => Promise.allSettled(slice.map(one)));
    return wipingOnFailure(outcomes, async () => {
      await this.#commit(steps, outcomes);
      return response(outcomes);
    });
  }

  async #commit(steps: readonly Step[], outcomes: readonly Outcome[]): Promise<void> {
    const { changes, bases } = this.#cached.isShared
      ? basedCommit(steps, outcomes)
      : { changes: changesOf(steps, outcomes), bases: [] };
    const sealed = outcomes.flatMap((outcome) => outcome.sealed ?? []);
    const result = await this.#cached.commit(
      changes.map(({ change }) => change),
      sealed,
      bases.map(({ change }) => change),
    );
    if (result.committed) return;
    const { change, step } = [...changes, ...bases][result.refused] ?? {};
    if (change === undefined || step === undefined) throw new Error("the store refused a change that is not there");
    if ("blob" in change && change.blob === null && change.expected === "present")
      throw refusedAt(step.index, notFound(change.path));
    throw changedMeanwhile(step.condition, change.path, step.index);
  }

  /** The result of a get that is refused. */
  #failed(error: VaultError): Outcome {
    const { code, message } = error;
    if (code === "INTEGRITY") this.#log.error({ event: "damaged-secret", code, error });
    return { reply: json({ code, error: message }), changes: [] };
  }
}

async function resultOf<T>(result: PromiseSettledResult<T> | undefined): Promise<T> {
  if (result?.status !== "fulfilled") throw result?.reason;
  return result.value;
}

function tooMuchWritten(): VaultError {
  const problem = `the batch writes more than ${maxSealedBytes} bytes with the histories`;
  return new VaultError("BAD_REQUEST", `${problem}: send two batches`);
}
