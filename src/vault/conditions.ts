/**
 * Conditions of a change (RFC 9110, section 13): the etags that its If-Match and If-None-Match name, and what storage must
 * still hold when it is committed.
 */
import type { Bytes, Head } from "../../workers/protocol.js";
import { VaultError } from "../errors.js";
import { blobTag, tagHeadBytes } from "../storage/blob-tag.js";
import type { Expected } from "../storage/secret-store.js";

/** Etags without their quotes, or `*`: any. */
export type Tags = "*" | readonly string[];

export type Condition = { readonly ifMatch: Tags | null; readonly ifNoneMatch: Tags | null };

/** `tag`: the etag of the current secret. */
export type TaggedResponse = { readonly response: Bytes; readonly tag: string };
export type MaybeResponse = { readonly response: Bytes | null; readonly tag: string };

export const unconditional: Condition = { ifMatch: null, ifNoneMatch: null };

/** Throws when a request must no longer be carried out. */
export type Permit = () => void;

export const always: Permit = () => {};

export function isConditional({ ifMatch, ifNoneMatch }: Condition): boolean {
  return ifMatch !== null || ifNoneMatch !== null;
}

/** `etag`: of the current secret; null when there is none. */
export function includesTag(tags: Tags, etag: string | null): boolean {
  return etag !== null && (tags === "*" || tags.includes(etag));
}

/** Returns the etag of the current secret, by its blob or head; null when there is none. */
export function tagOrNone(blob: Bytes | Head | null): string | null {
  if (blob === null) return null;
  return blobTag(typeof blob === "string" ? Buffer.from(blob.slice(0, tagHeadBytes), "latin1") : blob);
}

/** Returns what a change expects that is made of this blob or head; null: there was none. */
export function expectedAs(previous: Bytes | Head | null): Expected {
  const tag = tagOrNone(previous);
  if (previous === null || tag === null) return "absent";
  return typeof previous === "string" ? { tag } : { tag, whole: previous };
}

/** @throws VaultError PRECONDITION_FAILED */
export function requireCondition({ ifMatch, ifNoneMatch }: Condition, path: string, etag: string | null): void {
  if (ifMatch !== null && !includesTag(ifMatch, etag)) throw preconditionFailed(path);
  if (ifNoneMatch !== null && includesTag(ifNoneMatch, etag)) throw preconditionFailed(path);
}

/** Like `requireCondition`, by the blob or head of the current secret. */
export function requireCurrent(condition: Condition, path: string, current: Bytes | Head | null): void {
  if (isConditional(condition)) requireCondition(condition, path, tagOrNone(current));
}

function preconditionFailed(path: string): VaultError {
  return new VaultError("PRECONDITION_FAILED", `the secret at ${path} has changed: fetch it again and retry`);
}

export function notFound(path: string): VaultError {
  return new VaultError("NOT_FOUND", `there is no secret at ${path}`);
}

/** Another program has changed what a change is based on. */
export class Conflict extends VaultError {}

/** The condition no longer holds, or the caller, which set none, tries again. `index`: of the operation in a batch. */
export function conflictAt(condition: Condition, path: string, index?: number): Conflict {
  const { code, message } = preconditionFailed(path);
  if (isConditional(condition)) return new Conflict(code, message, { index });
  return new Conflict("UNAVAILABLE", `another program keeps changing the secret at ${path}: try again`);
}

/** One of the servers that compete for a path always succeeds: for 4, the chance of 200 losses in a row is 10^-25. */
const mostAttempts = 200;

/** Runs a change until no other server's change comes in between. @throws Conflict after too many attempts */
export async function repeating<T>(change: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await change();
    } catch (error) {
      if (!(error instanceof Conflict) || attempt === mostAttempts) throw error;
    }
  }
}
