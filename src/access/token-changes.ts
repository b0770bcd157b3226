/**
 * Format of the document of changes of the client tokens since the tokens' document was written. It is JSON:
 *
 *   {"format":"strongroom token changes","version":1,"after":"…","closed":false,"tokens":[…],"gone":["NAME",…],"ended":[…]}
 *
 *   after   the `id` of the tokens' document that it changes; ignore the changes if a later document has replaced that
 *   closed  true once a server is about to replace the tokens' document: no further change may be added
 *   tokens  new and changed tokens, in the form that they have there
 *   gone    names of removed tokens
 *   ended   new entries of `ended`
 */
import {
  type EndedToken,
  endedJson,
  isEnded,
  parseMembers,
  readEntries,
  type TokenDocument,
  type TokenRecord,
  tokenJson,
  withPaths,
} from "./token-record.js";

export const changesName = "token-changes";

type TokenChanges = {
  readonly after: string;
  readonly isClosed: boolean;
  readonly gone: readonly string[];
  readonly ended: readonly EndedToken[];
} & ReturnType<typeof readEntries>;

const header = { format: "strongroom token changes", version: 1 };

/** Returns null for a document that this program did not write. The MACs are not checked. */
export function readChanges(bytes: Uint8Array): TokenChanges | null {
  const { format, version, after, closed, tokens, gone, ended } = parseMembers(bytes);
  if (format !== header.format || version !== header.version) return null;
  if (typeof after !== "string" || typeof closed !== "boolean") return null;
  if (!Array.isArray(tokens) || !Array.isArray(gone) || !Array.isArray(ended)) return null;
  const names = gone.filter((name) => typeof name === "string");
  return { after, isClosed: closed, ...readEntries(tokens), gone: names, ended: ended.filter(isEnded) };
}

/** Returns the members from `tokens` on as text; null for a difference that they cannot express. */
export function changesText(before: TokenDocument, now: TokenDocument): string | null {
  const refused = difference(before.refused, now.refused, JSON.stringify);
  if (refused.gone.length + refused.added.length > 0) return null;
  const tokens = difference(before.tokens, now.tokens, recordKey);
  const ended = difference(before.ended, now.ended, endedKey).added;
  const changed = new Set(tokens.added.map(({ name }) => name));
  const gone = tokens.gone.flatMap(({ name }) => (changed.has(name) ? [] : name));
  const records = tokens.added.map((record) => tokenJson(record, now.lastUsed));
  return `"tokens":[${records.join()}],"gone":${JSON.stringify(gone)},"ended":${endedJson(ended)}`;
}

export function writeChanges(members: string, after: string): string {
  return `${JSON.stringify({ ...header, after, closed: false }).slice(0, -1)},${members}}\n`;
}

export function closedText(text: string): string {
  return text.replace('"closed":false', '"closed":true');
}

export function withChanges(document: TokenDocument, { records, refused, lastUsed, gone, ended }: TokenChanges) {
  const names = new Set([...gone, ...records.map(({ name }) => name)]);
  return withPaths({
    tokens: [...document.tokens.filter(({ name }) => !names.has(name)), ...records],
    refused: [...document.refused, ...refused],
    ended: [...document.ended, ...ended],
    lastUsed: new Map([...document.lastUsed, ...lastUsed]),
  });
}

/** The MACs cover all other members. */
function recordKey({ name, mac, nextMac }: TokenRecord): string {
  return [name, mac, nextMac].join();
}

function endedKey({ digest, reason, at }: EndedToken): string {
  return [digest, reason, at].join();
}

/** Compares lists of immutable objects by identity. Most changes add one at the end: an equal start costs little. */
export function changed<T>(
  before: readonly T[],
  after: readonly T[],
): { readonly gone: readonly T[]; readonly added: readonly T[] } {
  let same = 0;
  while (same < before.length && before[same] === after[same]) same++;
  const [old, current] = [new Set(before.slice(same)), new Set(after.slice(same))];
  return { gone: [...old].filter((one) => !current.has(one)), added: [...current].filter((one) => !old.has(one)) };
}

/** Like `changed`, but objects with the same key are equal. */
function difference<T>(before: readonly T[], after: readonly T[], key: (one: T) => string) {
  const { gone, added } = changed(before, after);
  const [old, current] = [new Set(gone.map(key)), new Set(added.map(key))];
  return { gone: gone.filter((one) => !current.has(key(one))), added: added.filter((one) => !old.has(key(one))) };
}
