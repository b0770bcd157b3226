/**
 * Batches of operations: gets each for itself or, with any change among them, all or nothing. Every operation of a batch sees
 * the secrets as they were before it.
 */
import type { Bytes, PlannedOperation, SealReply, SharedBytes } from "../../workers/protocol.js";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import type { Change, Expected } from "../storage/secret-store.js";
import {
  type BatchPermit,
  type DeleteStep,
  type GetStep,
  isRefusal,
  type MoveStep,
  mustPermitKinds,
  mustPermitPaths,
  type PutStep,
  pathsOf,
  refusedAt,
  type Step,
  stepOf,
  stepsOf,
} from "./batch-plan.js";
import type { CachedStore, SealedBlob } from "./cached-store.js";
import {
  changedMeanwhile,
  isConditional,
  notFound,
  requireCondition,
  type TaggedReply,
  tagOrNone,
} from "./condition.js";
import type { KeyState } from "./key-state.js";
import type { KeyedMutex } from "./sync/keyed-mutex.js";

/** Bounds the memory for blobs beside those of the batch itself, and lets other requests have their turn. */
const stepsAtOnce = 32;

/** Most bytes of ciphertext that a batch writes: the journal of a batch is in memory as a whole. */
const maxSealedBytes = 256 * 2 ** 20;

export type BatchesOptions = {
  readonly cached: CachedStore;
  readonly keyState: KeyState;
  readonly clock: Clock;
  readonly log: Log;
  readonly paths: KeyedMutex;
  readonly get: (path: string) => Promise<TaggedReply>;
  /** Most bytes of replies to gets. */
  readonly maxBatchBytes: number;
};

/** `reply`: to the operation. `changes`: what its commit makes. `sealed`: the blob among them. */
type Outcome = { readonly reply: Bytes; readonly changes: readonly Change[]; readonly sealed?: SealedBlob };

export class Batches {
  readonly #cached: CachedStore;
  readonly #keyState: KeyState;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #paths: KeyedMutex;
  readonly #get: (path: string) => Promise<TaggedReply>;
  readonly #maxReplyBytes: number;

  constructor({ cached, keyState, clock, log, paths, get, maxBatchBytes }: BatchesOptions) {
    this.#cached = cached;
    this.#keyState = keyState;
    this.#clock = clock;
    this.#log = log;
    this.#paths = paths;
    this.#get = get;
    this.#maxReplyBytes = maxBatchBytes;
  }

  /** Returns the response. */
  async run(body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    const { operations } = await this.#keyState.ask({ op: "plan", body });
    mustPermitKinds(operations, permit);
    if (operations.every(({ kind }) => kind === "get")) return this.#read(operations, body, permit);
    const steps = stepsOf(operations, body);
    mustPermitPaths(steps, permit);
    return this.#paths.runAll(pathsOf(steps), () => this.#change(steps));
  }

  async #read(operations: readonly PlannedOperation[], body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    let replied = 0;
    const outcomes = await inSlices(operations, async (operation, index) => {
      try {
        const step = stepOf(operation, index, body) as GetStep;
        permit.path(step.path);
        if (replied > this.#maxReplyBytes) throw tooMuchRead(this.#maxReplyBytes);
        const outcome = await this.#getOne(step);
        replied += outcome.reply.length;
        return outcome;
      } catch (error) {
        if (isRefusal(error)) return this.#failed(error);
        throw error;
      }
    });
    return response(outcomes);
  }

  async #change(steps: readonly Step[]): Promise<Bytes> {
    let replied = 0;
    let sealedBytes = 0;
    const outcomes = await inSlices(steps, async (step, index) => {
      try {
        if (replied > this.#maxReplyBytes) throw tooMuchRead(this.#maxReplyBytes);
        const outcome = await this.#outcome(step);
        if (step.kind === "get") replied += outcome.reply.length;
        sealedBytes += outcome.sealed?.blob.length ?? 0;
        if (sealedBytes > maxSealedBytes) throw tooMuchWritten();
        return outcome;
      } catch (error) {
        throw refusedAt(index, error);
      }
    });
    return wipingOnFailure(outcomes, async () => {
      await this.#commit(steps, outcomes);
      return response(outcomes);
    });
  }

  async #commit(steps: readonly Step[], outcomes: readonly Outcome[]): Promise<void> {
    const changes = outcomes.flatMap(({ changes }, i) => changes.map((change) => ({ change, step: steps[i] })));
    const sealed = outcomes.flatMap((outcome) => outcome.sealed ?? []);
    const result = await this.#cached.commit(
      changes.map(({ change }) => change),
      sealed,
    );
    if (result.committed) return;
    const { change, step } = changes[result.refused] ?? {};
    if (change === undefined || step === undefined) throw new Error("the store refused a change that is not there");
    const isMissing = change.blob === null && change.expected === "present";
    throw refusedAt(step.index, isMissing ? notFound(change.path) : changedMeanwhile(step.condition, change.path));
  }

  #outcome(step: Step): Promise<Outcome> {
    if (step.kind === "get") return this.#getOne(step);
    if (step.kind === "put") return this.#put(step);
    return step.kind === "delete" ? this.#delete(step) : this.#moveOrCopy(step);
  }

  async #getOne({ path, condition }: GetStep): Promise<Outcome> {
    const got = await this.#get(path).catch((error: unknown) => {
      if (error instanceof VaultError && error.code === "NOT_FOUND") requireCondition(condition, path, null);
      throw error;
    });
    const outcome: Outcome = { reply: got.reply, changes: [] };
    return wipingOnFailure([outcome], async () => {
      requireCondition(condition, path, got.tag);
      return outcome;
    });
  }

  async #put({ path, condition, body }: PutStep): Promise<Outcome> {
    const previous = await this.#cached.previous(path);
    const tag = tagOrNone(previous);
    requireCondition(condition, path, tag);
    const sealed = await this.#keyState.ask({ op: "seal", path, body, previous, now: this.#clock.now() });
    const expected: Expected = tag === null ? "absent" : { tag };
    return written(path, sealed, isConditional(condition) ? expected : undefined);
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
    if (kind === "copy")
      return written(to, await this.#keyState.ask({ op: "copy", path, to, blob, now: this.#clock.now() }), expected);
    const moved = written(to, await this.#keyState.ask({ op: "move", path, to, blob }), expected);
    return { ...moved, changes: [{ path, blob: null, expected: { tag } }, ...moved.changes] };
  }

  /** The result of a get that is refused. */
  #failed(error: VaultError): Outcome {
    const { code, message } = error;
    if (code === "INTEGRITY") this.#log.error({ event: "damaged-secret", code, error });
    return { reply: json({ code, error: message }), changes: [] };
  }
}

function written(path: string, { blob, headLength, reply }: SealReply, expected: Expected | undefined): Outcome {
  return { reply, changes: [{ path, blob, ...(expected && { expected }) }], sealed: { path, blob, headLength } };
}

/** Runs work on all items, and when it fails on any, waits for what is running and wipes what the others replied. */
async function inSlices<T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<Outcome>,
): Promise<Outcome[]> {
  const done: Outcome[] = [];
  return wipingOnFailure(done, async () => {
    for (let from = 0; from < items.length; from += stepsAtOnce) {
      const running = items.slice(from, from + stepsAtOnce).map((item, i) => work(item, from + i));
      const settled = await Promise.allSettled(running);
      done.push(...settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
      const failure = settled.find((one) => one.status === "rejected");
      if (failure !== undefined) throw failure.reason;
    }
    return done;
  });
}

async function wipingOnFailure<T>(outcomes: readonly Outcome[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    for (const { reply } of outcomes) reply.fill(0);
    throw error;
  }
}

const begin = text('{"ok":true,"results":[');
const comma = text(",");
const end = text("]}");

/** One piece, because a write to the connection costs more than a copy; wipes the replies. */
function response(outcomes: readonly Outcome[]): Bytes {
  const results = outcomes.flatMap(({ reply }, i) => (i > 0 ? [comma, reply] : [reply]));
  const pieces = [begin, ...results, end];
  const joined = new Uint8Array(new ArrayBuffer(pieces.reduce((sum, piece) => sum + piece.length, 0)));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  for (const { reply } of outcomes) reply.fill(0);
  return joined;
}

function tooMuchRead(limit: number): VaultError {
  const problem = `the secrets of this batch have more than ${limit} bytes`;
  return new VaultError("BAD_REQUEST", `${problem}: read the rest in another batch`);
}

function tooMuchWritten(): VaultError {
  const problem = `the batch writes more than ${maxSealedBytes} bytes with the histories`;
  return new VaultError("BAD_REQUEST", `${problem}: send two batches`);
}

function json(value: object): Bytes {
  return text(JSON.stringify(value));
}

function text(characters: string): Bytes {
  return new TextEncoder().encode(characters);
}
