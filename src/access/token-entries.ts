/** Entries of client tokens: the texts that authenticate, and for 30 days those that have ended. */
import { rangesOf } from "../paths/path-scope.js";
import { type ClientEntry, rememberedMs } from "./credentials.js";
import type { EndedToken, TokenDocument, TokenRecord } from "./token-record.js";

const maxEnded = 10_000;

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
