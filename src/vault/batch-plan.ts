/** Operations of a batch, checked: canonical paths, conditions, and no path changed twice. */
import type { PlannedOperation, SharedBytes } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { canonicalPath } from "../paths/secret-path.js";
import { type Condition, type Tags, unconditional } from "./conditions.js";

/** `condition` is on the secret at `path`; `target` is the path that a put, move or copy writes. */
type Common = { readonly index: number; readonly path: string; readonly condition: Condition };
type GetStep = Common & { readonly kind: "get" };
export type PutStep = Common & { readonly kind: "put"; readonly body: SharedBytes };
export type DeleteStep = Common & { readonly kind: "delete" };
export type TrashStep = Common & { readonly kind: "trash" };
export type MoveStep = Common & {
  readonly kind: "move" | "copy";
  readonly to: string;
  readonly toCondition: Condition;
  /** Whether a secret at the target goes to the trash. */
  readonly trashReplaced: boolean;
};
export type Step = GetStep | PutStep | DeleteStep | TrashStep | MoveStep;

/** Permissions of a batch's sender: `kind` and `path` throw VaultError FORBIDDEN. */
export type BatchPermit = {
  readonly kind: (kind: PlannedOperation["kind"]) => void;
  readonly path: (path: string) => void;
  /** Called with each operation that it may do, before it is carried out; throws nothing. */
  readonly permitted: (step: Step) => void;
  /** Called in the turn of the paths, and between slices of reads: throws when the caller's token has ended. */
  readonly still: () => void;
};

/** Codes with which one operation is refused; with any other the whole request fails. */
const refusals: readonly string[] = ["BAD_REQUEST", "FORBIDDEN", "NOT_FOUND", "PRECONDITION_FAILED", "INTEGRITY"];

export function isRefusal(error: unknown): error is VaultError {
  return error instanceof VaultError && refusals.includes(error.code);
}

/** Names the operation that is refused. */
export function refusedAt(index: number, error: unknown): unknown {
  if (!isRefusal(error)) return error;
  const { code, message, cause } = error;
  return new VaultError(code, message, { cause, index });
}

/** Returns why the operation is invalid instead of throwing it. */
export function stepOrRefusal(
  operation: PlannedOperation,
  index: number,
  body: SharedBytes,
  permit: BatchPermit,
): Step | VaultError {
  try {
    const step = planStep(operation, index, body);
    permit.path(step.path);
    permit.permitted(step);
    return step;
  } catch (error) {
    if (error instanceof VaultError) return error;
    throw error;
  }
}

/** @throws VaultError BAD_REQUEST */
function planStep(operation: PlannedOperation, index: number, body: SharedBytes): Step {
  const { kind, trashReplaced, ifMatch, ifNoneMatch, start, end } = operation;
  const path = canonicalPath(operation.path);
  const onPath = { ...unconditional, ifMatch: parseTags(ifMatch) };
  const absent = { ...unconditional, ifNoneMatch: parseTags(ifNoneMatch) };
  if (kind === "move" || kind === "copy") {
    const to = canonicalPath(operation.to ?? "");
    if (to === path) throw new VaultError("BAD_REQUEST", "path and target are the same: name another target");
    return { kind, index, path, condition: onPath, to, toCondition: absent, trashReplaced };
  }
  const condition = { ifMatch: onPath.ifMatch, ifNoneMatch: absent.ifNoneMatch };
  if (kind === "put") return { kind, index, path, condition, body: body.subarray(start, end) };
  return { kind, index, path, condition };
}

function parseTags(text: string | null): Tags | null {
  return text === null || text === "*" ? text : [text];
}

/** @throws VaultError BAD_REQUEST with the index of an operation that changes a path again. */
export function planSteps(operations: readonly PlannedOperation[], body: SharedBytes): Step[] {
  const changed = new Set<string>();
  return operations.map((operation, index) => {
    try {
      const step = planStep(operation, index, body);
      for (const path of changedBy(step)) {
        if (changed.has(path))
          throw new VaultError("BAD_REQUEST", `the path ${path} is changed twice: send two batches`);
        changed.add(path);
      }
      return step;
    } catch (error) {
      throw refusedAt(index, error);
    }
  });
}

function changedBy(step: Step): string[] {
  if (step.kind === "get") return [];
  if (step.kind === "copy") return [step.to];
  return step.kind === "move" ? [step.path, step.to] : [step.path];
}

/** @throws VaultError FORBIDDEN with the index of the operation */
export function mustPermitKinds(operations: readonly PlannedOperation[], permit: BatchPermit): void {
  for (const [index, { kind }] of operations.entries()) {
    try {
      permit.kind(kind);
    } catch (error) {
      throw refusedAt(index, error);
    }
  }
}

/** @throws VaultError FORBIDDEN with the index of the operation */
export function mustPermitPaths(steps: readonly Step[], permit: BatchPermit): void {
  for (const step of steps) {
    try {
      for (const path of stepPaths([step])) permit.path(path);
    } catch (error) {
      throw refusedAt(step.index, error);
    }
  }
  for (const step of steps) permit.permitted(step);
}

/** Returns the paths that the steps read or change, each once. */
export function stepPaths(steps: readonly Step[]): string[] {
  return [...new Set(steps.flatMap((step) => ("to" in step ? [step.path, step.to] : [step.path])))];
}
