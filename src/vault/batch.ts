/**
 * Batches of operations: each get by itself or, with any change among them, all or nothing. Every operation of a batch sees
 * the secrets as they were before it.
 */
import type { Bytes, PlannedOperation, SharedBytes } from "../../workers/protocol.js";
import { copySecret } from "../../workers/registers.js";
import { VaultError } from "../errors.js";
import { Mutex } from "../locks.js";
import type { Log } from "../log.js";
import type { Change, Expected, ReadVersion } from "../storage/secret-store.js";
import {
  type BatchPermit,
  type DeleteStep,
  isRefusal,
  type MoveStep,
  mustPermitKinds,
  mustPermitPaths,
  type PutStep,
  planSteps,
  refusedAt,
  type Step,
  stepOrRefusal,
  stepPaths,
  type TrashStep,
} from "./batch-plan.js";
import type { CachedBlob, CachedStore, SealedBlob } from "./cache.js";
import {
  conflictAt,
  expectedAs,
  isConditional,
  notFound,
  requireCondition,
  type TaggedResponse,
  tagOrNone,
  unconditional,
} from "./conditions.js";
import type { Made, SealedSpace } from "./space.js";
import type { VaultTrash } from "./trash.js";

/** Most bytes of ciphertext that a batch writes: the journal of a batch is in memory as a whole. */
const maxSealedBytes = 256 * 2 ** 20;

/** Bounds the memory for blobs beside those of the batch itself, and lets other requests have their turn. */
const stepsAtOnce = 32;

/** Results of larger blobs are made one after the other, within the budget. */
const smallBytes = 16 * 1024;

type BatchesOptions = {
  readonly cached: CachedStore;
  readonly space: SealedSpace;
  readonly trash: VaultTrash;
  readonly log: Log;
  /** Most bytes of responses to gets. */
  readonly maxBatchBytes: number;
};

/** `response`: to the operation. `changes`: what its commit makes. `sealed`: the blob among them. `basis`: what it has read. */
type StepResult = {
  readonly response: Bytes;
  readonly changes: readonly Change[];
  readonly sealed?: SealedBlob;
  /** Bytes of the blobs that the step moves to the trash. */
  readonly sealedBytes?: number;
  readonly basis?: ReadVersion;
};

export class Batches {
  readonly #cached: CachedStore;
  readonly #space: SealedSpace;
  readonly #trash: VaultTrash;
  readonly #log: Log;
  readonly #maxResponseBytes: number;

  constructor({ cached, space, trash, log, maxBatchBytes }: BatchesOptions) {
    this.#cached = cached;
    this.#space = space;
    this.#trash = trash;
    this.#log = log;
    this.#maxResponseBytes = maxBatchBytes;
  }

  /** Returns the response. */
  async run(body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    const { operations } = await this.#space.ask({ op: "plan", body });
    mustPermitKinds(operations, permit);
    if (operations.every(({ kind }) => kind === "get")) return this.#read(operations, body, permit);
    const steps = planSteps(operations, body);
    mustPermitPaths(steps, permit);
    return this.#space.turns.run(stepPaths(steps), async () => {
      permit.still();
      return this.#space.repeatingIfShared(() => this.#change(steps));
    });
  }

  async #read(operations: readonly PlannedOperation[], body: SharedBytes, permit: BatchPermit): Promise<Bytes> {
    const budget = new ResponseBudget(this.#maxResponseBytes);
    const results = await inSlices(operations, (slice, from) => {
      permit.still();
      return this.#readSlice(
        slice.map((operation, i) => stepOrRefusal(operation, from + i, body, permit)),
        budget,
      );
    });
    return response(results);
  }

  async #readSlice(
    steps: readonly (Step | VaultError)[],
    budget: ResponseBudget,
  ): Promise<PromiseSettledResult<StepResult>[]> {
    const wanted = steps.map((step) => (step instanceof VaultError ? step : (budget.refusal() ?? step)));
    const paths = wanted.flatMap((step) => (step instanceof VaultError ? [] : [step.path]));
    const opened = (await this.#space.useAll(paths, (path, found) => this.#openWithin(budget, path, found))).values();
    const results = wanted.map(async (step) => {
      try {
        if (step instanceof VaultError) throw step;
        return await this.#gotten(step, settled(opened.next().value));
      } catch (error) {
        if (isRefusal(error)) return this.#failed(error);
        throw error;
      }
    });
    return Promise.allSettled(results);
  }

  /**
   * Opens the current version; large ones are opened one after the other. DANGER: in the order of the steps, whichever is read
   * first: a client that is refused what is beyond the budget asks again from there on, and needs the first one in any case.
   */
  async #openWithin(budget: ResponseBudget, path: string, found: CachedBlob | null): Promise<TaggedResponse> {
    const open = () => this.#space.openFound(path, found);
    if (found !== null && found.currentLength > smallBytes) return budget.take(open);
    const opened = await open();
    budget.spend(opened.response);
    return opened;
  }

  async #change(steps: readonly Step[]): Promise<Bytes> {
    const budget = new ResponseBudget(this.#maxResponseBytes);
    let sealedBytes = 0;
    const one = async (step: Step) => {
      try {
        const make = () => this.#prepare(step);
        const result = await (step.kind === "get" ? budget.take(make) : make());
        sealedBytes += (result.sealed?.blob.length ?? 0) + (result.sealedBytes ?? 0);
        if (sealedBytes > maxSealedBytes) throw tooMuchWritten();
        return result;
      } catch (error) {
        throw refusedAt(step.index, error);
      }
    };
    const results = await inSlices(steps, (slice) => Promise.allSettled(slice.map(one)));
    return wipingOnFailure(results, async () => {
      await this.#commit(steps, results);
      return response(results);
    });
  }

  async #commit(steps: readonly Step[], results: readonly StepResult[]): Promise<void> {
    const { changes, bases } = this.#cached.isShared
      ? basedCommit(steps, results)
      : { changes: collectChanges(steps, results), bases: [] };
    const sealed = results.flatMap((result) => result.sealed ?? []);
    const committed = await this.#cached.commit(
      changes.map(({ change }) => change),
      sealed,
      bases.map(({ change }) => change),
    );
    if (committed.committed) return;
    const { change, step } = [...changes, ...bases][committed.refused] ?? {};
    if (change === undefined || step === undefined) throw new Error("the store refused a change that is not there");
    if ("blob" in change && change.blob === null && change.expected === "present")
      throw refusedAt(step.index, notFound(change.path));
    throw conflictAt(step.condition, change.path, step.index);
  }

  /** Changes nothing yet. @throws VaultError as the operation alone */
  #prepare(step: Step): Promise<StepResult> {
    if (step.kind === "get") return this.#gotten(step, this.#space.open(step.path));
    if (step.kind === "put") return this.#put(step);
    if (step.kind === "delete") return this.#delete(step);
    return step.kind === "trash" ? this.#moveToTrash(step) : this.#moveOrCopy(step);
  }

  /** Returns the result of a get whose secret is being opened; wipes the response when the condition does not hold. */
  async #gotten({ path, condition }: Step, opened: Promise<TaggedResponse>): Promise<StepResult> {
    const { response, tag } = await opened.catch((error: unknown) => {
      if (error instanceof VaultError && error.code === "NOT_FOUND") requireCondition(condition, path, null);
      throw error;
    });
    const result: StepResult = { response, changes: [], basis: { path, tag } };
    return wipingOnFailure([result], async () => {
      requireCondition(condition, path, tag);
      return result;
    });
  }

  async #put({ path, condition, body }: PutStep): Promise<StepResult> {
    const { result, previous } = await this.#space.make(path, { kind: "put", body }, condition, true);
    const isBased = this.#cached.isShared || isConditional(condition);
    return written(path, result, isBased ? expectedAs(previous) : undefined);
  }

  async #delete({ path, condition }: DeleteStep): Promise<StepResult> {
    const response = json({ ok: true, path, message: "the secret is deleted" });
    if (!isConditional(condition)) return { response, changes: [{ path, blob: null, expected: "present" }] };
    const tag = tagOrNone(await this.#space.head(path));
    requireCondition(condition, path, tag);
    return { response, changes: [{ path, blob: null, expected: tag === null ? "present" : { tag } }] };
  }

  async #moveToTrash({ path, condition }: TrashStep): Promise<StepResult> {
    const { changes, sealedBytes } = await this.#trash.changesFor(path, condition);
    return { response: json({ ok: true, path, message: "the secret is in the trash" }), changes, sealedBytes };
  }

  async #moveOrCopy({ kind, path, condition, to, toCondition, trashReplaced }: MoveStep): Promise<StepResult> {
    const { result, previous } = await this.#space.make(path, { kind, to }, condition);
    if (isConditional(toCondition)) requireCondition(toCondition, to, tagOrNone(await this.#space.head(to)));
    const expected = isConditional(toCondition) ? "absent" : undefined;
    if (kind === "copy") return { ...written(to, result, expected), basis: { path, tag: tagOrNone(previous) ?? "" } };
    const replaced = trashReplaced && expected === undefined ? await this.#trash.changesOfReplaced(to) : null;
    const made = written(to, result, replaced?.expected ?? expected);
    const removed = { path, blob: null, expected: expectedAs(previous) };
    const changes = [removed, ...made.changes, ...(replaced?.changes ?? [])];
    return { ...made, changes, sealedBytes: replaced?.sealedBytes ?? 0 };
  }

  /** The result of a get that is refused. */
  #failed(error: VaultError): StepResult {
    const { code, message } = error;
    if (code === "INTEGRITY") this.#log.error({ event: "damaged-secret", code, error });
    return { response: json({ code, error: message }), changes: [] };
  }
}

function written(path: string, made: Made["result"], expected: Expected | undefined): StepResult {
  if (made.blob === null) throw new Error("a step of a batch has made no blob");
  const { blob, response } = made;
  const changes = [{ path, blob, ...(expected && { expected }) }];
  return { response, changes, sealed: { path, blob } };
}

function tooMuchWritten(): VaultError {
  const problem = `the batch writes more than ${maxSealedBytes} bytes with the histories`;
  return new VaultError("BAD_REQUEST", `${problem}: send two batches`);
}

type OfStep<C> = { readonly change: C; readonly step: Step | undefined };

/** Changes and read versions, each with its operation. */
type BasedCommit = { readonly changes: readonly OfStep<Change>[]; readonly bases: readonly OfStep<ReadVersion>[] };

/**
 * Blobs that a batch has read must be unchanged when it commits, as other servers may change them: a path that is read
 * and changed is expected as it was read. @throws Conflict when it changed between two reads
 */
function basedCommit(steps: readonly Step[], results: readonly StepResult[]): BasedCommit {
  const read = results.flatMap(({ basis }, i) => (basis === undefined ? [] : [{ change: basis, step: steps[i] }]));
  const tags = new Map(read.map(({ change: { path, tag } }) => [path, tag]));
  const changed = collectChanges(steps, results);
  const paths = new Set(changed.map(({ change }) => change.path));
  const changes = changed.map(({ change, step }) => {
    const tag = change.space === undefined ? tags.get(change.path) : undefined;
    return { change: expectedAsRead(change, tag), step };
  });
  return { changes, bases: read.filter(({ change }) => !paths.has(change.path)) };
}

function collectChanges(steps: readonly Step[], results: readonly StepResult[]): OfStep<Change>[] {
  return results.flatMap(({ changes }, i) => changes.map((change) => ({ change, step: steps[i] })));
}

function expectedAsRead(change: Change, tag: string | undefined): Change {
  if (tag === undefined) return change;
  const { path, expected } = change;
  const isOther = expected === "absent" || (typeof expected === "object" && expected.tag !== tag);
  if (isOther) throw conflictAt(unconditional, path);
  return typeof expected === "object" ? change : { ...change, expected: { tag } };
}

/** Returns the result, as a promise of it, of work that has ended. */
async function settled<T>(result: PromiseSettledResult<T> | undefined): Promise<T> {
  if (result?.status !== "fulfilled") throw result?.reason;
  return result.value;
}

/** Bytes that the gets of a batch may return: those beyond are refused. */
class ResponseBudget {
  readonly #most: number;
  readonly #turns = new Mutex();
  #spent = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Counts a response that has been made. */
  spend(response: Bytes): void {
    this.#spent += response.length;
  }

  /** Returns the error once more than the budget is spent, else null. */
  refusal(): VaultError | null {
    if (this.#spent <= this.#most) return null;
    const problem = `the secrets of this batch have more than ${this.#most} bytes`;
    return new VaultError("BAD_REQUEST", `${problem}: read the rest in another batch`);
  }

  /**
   * Makes a response that may be large, after those before it: together, responses whose values have to be escaped fill the memory.
   * @throws VaultError BAD_REQUEST
   */
  take<R extends { readonly response: Bytes }>(make: () => Promise<R>): Promise<R> {
    return this.#turns.run(async () => {
      const refusal = this.refusal();
      if (refusal !== null) throw refusal;
      const made = await make();
      this.spend(made.response);
      return made;
    });
  }
}

/** Runs work on all items, a slice at a time, and when any fails, wipes what the others returned. */
async function inSlices<T>(
  items: readonly T[],
  work: (slice: readonly T[], from: number) => Promise<PromiseSettledResult<StepResult>[]>,
): Promise<StepResult[]> {
  const done: StepResult[] = [];
  return wipingOnFailure(done, async () => {
    for (let from = 0; from < items.length; from += stepsAtOnce) {
      const settled = await work(items.slice(from, from + stepsAtOnce), from);
      done.push(...settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
      const failure = settled.find((one) => one.status === "rejected");
      if (failure !== undefined) throw failure.reason;
    }
    return done;
  });
}

/** Runs work, and wipes the responses when it fails. */
async function wipingOnFailure<T>(results: readonly StepResult[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    for (const { response } of results) response.fill(0);
    throw error;
  }
}

const begin = text('{"ok":true,"results":[');
const comma = text(",");
const end = text("]}");

/** Returns the response in one piece, because a write to the connection costs more than a copy; wipes the responses. */
function response(results: readonly StepResult[]): Bytes {
  const parts = results.flatMap(({ response }, i) => (i > 0 ? [comma, response] : [response]));
  const pieces = [begin, ...parts, end];
  const joined = new Uint8Array(new ArrayBuffer(pieces.reduce((sum, piece) => sum + piece.length, 0)));
  let at = 0;
  for (const piece of pieces) {
    copySecret(joined, piece, at);
    at += piece.length;
  }
  for (const { response } of results) response.fill(0);
  return joined;
}

function json(value: object): Bytes {
  return text(JSON.stringify(value));
}

function text(characters: string): Bytes {
  return new TextEncoder().encode(characters);
}
