/** Conditions of a request (RFC 9110, section 13): the tags that its If-Match and If-None-Match name. */
import { VaultError } from "../errors.js";

/** Tags without their quotes, or `*`: any. */
export type Tags = "*" | readonly string[];

/** Null: no condition. */
export type Condition = { readonly ifMatch: Tags | null; readonly ifNoneMatch: Tags | null };

export const unconditional: Condition = { ifMatch: null, ifNoneMatch: null };

export function isConditional({ ifMatch, ifNoneMatch }: Condition): boolean {
  return ifMatch !== null || ifNoneMatch !== null;
}

/** `tag`: of the present secret; null when there is none. */
export function includesTag(tags: Tags, tag: string | null): boolean {
  return tag !== null && (tags === "*" || tags.includes(tag));
}

/** @throws VaultError PRECONDITION_FAILED */
export function requireCondition({ ifMatch, ifNoneMatch }: Condition, path: string, tag: string | null): void {
  if (ifMatch !== null && !includesTag(ifMatch, tag)) throw preconditionFailed(path);
  if (ifNoneMatch !== null && includesTag(ifNoneMatch, tag)) throw preconditionFailed(path);
}

export function preconditionFailed(path: string): VaultError {
  const problem = `the secret at ${path} is not in the state that the request requires`;
  return new VaultError("PRECONDITION_FAILED", `${problem}: get it, then decide again`);
}
