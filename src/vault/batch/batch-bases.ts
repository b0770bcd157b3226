/** Bases of a batch: what it has read must be unchanged when it is committed, since other servers may change it. */
import type { Basis, Change } from "../../storage/secret-store.js";
import { changedMeanwhile, unconditional } from "../condition.js";
import type { Outcome } from "./batch-outcomes.js";
import type { Step } from "./batch-plan.js";

type Of<C> = { readonly change: C; readonly step: Step | undefined };

/** Each with its operation. */
export type BasedCommit = { readonly changes: readonly Of<Change>[]; readonly bases: readonly Of<Basis>[] };

/** A path that is read and changed is expected as it was read. @throws ChangedMeanwhile when it changed between two reads. */
export function basedCommit(steps: readonly Step[], outcomes: readonly Outcome[]): BasedCommit {
  const read = outcomes.flatMap(({ basis }, i) => (basis === undefined ? [] : [{ change: basis, step: steps[i] }]));
  const tags = new Map(read.map(({ change: { path, tag } }) => [path, tag]));
  const changed = changesOf(steps, outcomes);
  const paths = new Set(changed.map(({ change }) => change.path));
  const changes = changed.map(({ change, step }) => ({ change: expectedAsRead(change, tags.get(change.path)), step }));
  return { changes, bases: read.filter(({ change }) => !paths.has(change.path)) };
}

export function changesOf(steps: readonly Step[], outcomes: readonly Outcome[]): Of<Change>[] {
  return outcomes.flatMap(({ changes }, i) => changes.map((change) => ({ change, step: steps[i] })));
}

function expectedAsRead(change: Change, tag: string | undefined): Change {
  if (tag === undefined) return change;
  const { path, expected } = change;
  const isOther = expected === "absent" || (typeof expected === "object" && expected.tag !== tag);
  if (isOther) throw changedMeanwhile(unconditional, path);
  return typeof expected === "object" ? change : { ...change, expected: { tag } };
}
