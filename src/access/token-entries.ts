/** Entries of client tokens: the texts that authenticate, and for 30 days those that have ended. */
import { VaultError } from "../errors.js";
import { rangesOf } from "../paths/path-scope.js";
import { type ClientEntry, rememberedMs } from "./credentials.js";
import type { EndedToken, FormerText, TokenDocument, TokenRecord } from "./token-record.js";

const maxEnded = 10_000;

/** Earlier texts that a record keeps. */
const maxFormer = 8;

/** `end`: milliseconds since 1970; null: never. */
export function isForgotten(end: number | null, now: number): boolean {
  return end !== null && now >= end + rememberedMs;
}

/** Adds the ended texts to those of the document, and drops their tokens and what is forgotten. */
export function withEnded(document: TokenDocument, ended: readonly EndedToken[], now: number): TokenDocument {
  const known = new Map([...document.ended, ...ended].map((one) => [one.digest, one]));
  const remembered = [...known.values()].filter(({ at }) => !isForgotten(at, now)).slice(-maxEnded);
  const isLive = ({ digest, expiresAt }: TokenRecord) => !known.has(digest) && !isForgotten(expiresAt, now);
  return { ...document, tokens: document.tokens.filter(isLive), ended: remembered };
}

export function entriesOf({ tokens, ended }: TokenDocument): ClientEntry[] {
  return [...tokens.flatMap(entriesOfToken), ...ended.map(entryOfEnded)];
}

function entriesOfToken(token: TokenRecord): ClientEntry[] {
  const owner = { token, ranges: rangesOf(token.paths) };
  const former = token.former.map((one) => ({ ...one, owner, ending: "rotated" as const }));
  return [...former, { digest: token.digest, owner, until: token.expiresAt, ending: "expired" }];
}

function entryOfEnded({ digest, at, reason }: EndedToken): ClientEntry {
  return { digest, owner: null, until: at, ending: reason };
}

/**
 * Returns the texts that a record keeps of those that rotations have replaced: first those that are still valid, then the
 * newest of the others; and those that it has no place for.
 * @throws VaultError BAD_REQUEST when too many are still valid
 */
export function formerTexts(all: readonly FormerText[], name: string, now: number): [FormerText[], EndedToken[]] {
  const valid = all.filter(({ until }) => until > now);
  if (valid.length > maxFormer) throw tooManyOverlaps(name, valid.slice(1)); // without the one that is to be added
  const ended = all.filter(({ until }) => until <= now && !isForgotten(until, now));
  const former = [...valid, ...ended];
  const dropped = former.slice(maxFormer).map(({ digest }) => ({ digest, name, reason: "rotated" as const, at: now }));
  return [former.slice(0, maxFormer), dropped];
}

function tooManyOverlaps(name: string, valid: readonly FormerText[]): VaultError {
  const next = new Date(Math.min(...valid.map(({ until }) => until))).toISOString();
  const problem = `the token ${name} has ${valid.length} earlier texts that are still valid`;
  return new VaultError(
    "BAD_REQUEST",
    `${problem}: wait until ${next}, when one ends, or rotate it without an overlap`,
  );
}
