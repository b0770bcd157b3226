/** Conditions of a request (RFC 9110, section 13): the tags that its If-Match and If-None-Match name. */
import type { Bytes, Head } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { tagHeadBytes, tagOf } from "../storage/blob-tag.js";
import type { Expected } from "../storage/secret-store.js";

/** Tags without their quotes, or `*`: any. */
export type Tags = "*" | readonly string[];

/** Null: no condition. */
export type Condition = { readonly ifMatch: Tags | null; readonly ifNoneMatch: Tags | null };

/** `tag`: of the present secret. */
export type TaggedReply = { readonly reply: Bytes; readonly tag: string };
export type MaybeReply = { readonly reply: Bytes | null; readonly tag: string };

export const unconditional: Condition = { ifMatch: null, ifNoneMatch: null };

export function isConditional({ ifMatch, ifNoneMatch }: Condition): boolean {
  return ifMatch !== null || ifNoneMatch !== null;
}

/** `tag`: of the present secret; null when there is none. */
export function includesTag(tags: Tags, tag: string | null): boolean {
  return tag !== null && (tags === "*" || tags.includes(tag));
}

/** Returns the tag of the present secret, by its blob or head. */
export function tagOrNone(blob: Bytes | Head | null): string | null {
  if (blob === null) return null;
  return tagOf(typeof blob === "string" ? Buffer.from(blob.slice(0, tagHeadBytes), "latin1") : blob);
}

/** Returns what a change expects that is made of this blob or head; null: there was none. */
export function expectedAs(previous: Bytes | Head | null): Expected {
  const tag = tagOrNone(previous);
  if (previous === null || tag === null) return "absent";
  return typeof previous === "string" ? { tag } : { tag, whole: previous };
}

/** @throws VaultError PRECONDITION_FAILED */
export function requireCondition({ ifMatch, ifNoneMatch }: Condition, path: string, tag: string | null): void {
  if (ifMatch !== null && !includesTag(ifMatch, tag)) throw preconditionFailed(path);
  if (ifNoneMatch !== null && includesTag(ifNoneMatch, tag)) throw preconditionFailed(path);
}

function preconditionFailed(path: string): VaultError {
  const problem = `the secret at ${path} is not in the state that the request requires`;
  return new VaultError("PRECONDITION_FAILED", `${problem}: get it, then decide again`);
}

export function notFound(path: string): VaultError {
  return new VaultError("NOT_FOUND", `there is no secret at ${path}`);
}

/** What a change is based on is not current any more. */
export class ChangedMeanwhile extends VaultError {}

/**
 * Another program has changed what a change is based on: the condition does not hold, or the caller tries again. `index`:
 * of the operation in a batch.
 */
export function changedMeanwhile(condition: Condition, path: string, index?: number): ChangedMeanwhile {
  const { code, message } = preconditionFailed(path);
  if (isConditional(condition)) return new ChangedMeanwhile(code, message, { index });
  return new ChangedMeanwhile(
    "UNAVAILABLE",
    `the secret at ${path} was changed meanwhile by another program: try again`,
  );
}
