/**
 * Client token records, and the document that holds them.
 *
 * The document is JSON:
 *
 *   {"format":"strongroom tokens","version":1,"tokens":[…],"ended":[…]}
 *
 * or, if a document of changes may follow it (see `token-changes.ts`), so that a program which does not read those refuses it:
 *
 *   {"format":"strongroom tokens","version":2,"id":16 random bytes in base64url,"tokens":[…],"ended":[…]}
 *
 *   a token: {"name","can":[…],"paths":[…],"createdAt","ttlSeconds","expiresAt","digest","former":[{"digest","until"}…],
 *             "mac","lastUsedAt"}; a child token also has "parent":{"name","digest"}, and "inherits":true in place of "paths",
 *             which are its parent's; a program's token for its run has "session":true; while the master key is being
 *             rotated, "nextMac" is the MAC under the new key
 *   an ended token: {"digest","name","reason","at"}, and "child":true for a child token or a session
 *
 * Times are milliseconds since 1970, or null; digests are SHA-256 of the token's value, and with the MAC base64url. The MAC
 * is over the text of `signedText`: all of a token's members but the MACs and `lastUsedAt`. An entry that is not a
 * valid record is kept unchanged, and does not authenticate.
 */
import { scopes } from "../contract/names.js";
import { type EndReason, endReasons } from "../errors.js";
import type { Scope } from "./scopes.js";

export const tokenName = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** A value that a rotation has replaced, and how long it stays valid. */
export type FormerValue = { readonly digest: string; readonly until: number };

/** The token that made a child, and the SHA-256 of the value that it was made with: the child ends with that value. */
export type Parent = { readonly name: string; readonly digest: string };

export type UnsignedRecord = {
  readonly name: string;
  readonly can: readonly Scope[];
  /** Empty: all paths. */
  readonly paths: readonly string[];
  readonly createdAt: number;
  /** How long each value is valid; 0: without end. */
  readonly ttlSeconds: number;
  readonly expiresAt: number | null;
  readonly digest: string;
  /** Values that are still valid first, otherwise newest first. */
  readonly former: readonly FormerValue[];
  /** Only of child tokens. */
  readonly parent?: Parent;
  /** Whether a child token has its parent's `paths`, which are not stored: they may be longer than all the rest. */
  readonly inherits?: true;
  /** Whether a program has the token for its run: it is forgotten when it ends, as a child token is. */
  readonly session?: true;
};

/** `nextMac`: from the start of a rotation of the master key until the records are written again at its end. */
export type TokenRecord = UnsignedRecord & { readonly mac: string; readonly nextMac?: string };

export type EndedToken = {
  readonly digest: string;
  readonly name: string;
  readonly reason: EndReason;
  readonly at: number;
  readonly child?: true;
};

export type TokenDocument = {
  readonly tokens: readonly TokenRecord[];
  readonly ended: readonly EndedToken[];
  /** Entries of `tokens` that are not valid records. */
  readonly refused: readonly unknown[];
  /** Times of the last use by token name. */
  readonly lastUsed: ReadonlyMap<string, number>;
};

/** Whether it is forgotten when it ends: programs make such tokens by the thousand. */
export function isShortLived({ parent, session }: UnsignedRecord): boolean {
  return parent !== undefined || session === true;
}

export const noTokens: TokenDocument = { tokens: [], ended: [], refused: [], lastUsed: new Map() };

/** `id` null: no document of changes may follow it. */
type WholeDocument = TokenDocument & { readonly id: string | null };

export const documentName = "tokens";

const format = "strongroom tokens";

/** Returns the text under the MAC, which does not depend on the order of the members in the file. */
export function signedText(record: UnsignedRecord): string {
  const { name, can, paths, createdAt, ttlSeconds, expiresAt, digest, former, parent, inherits, session } = record;
  const texts = former.map((one) => [one.digest, one.until]);
  const members = [name, can, inherits ?? paths, createdAt, ttlSeconds, expiresAt, digest, texts];
  if (parent !== undefined) members.push([parent.name, parent.digest]);
  if (session) members.push("session");
  return JSON.stringify(["strongroom token 1", ...members]);
}

type VerifyRecords = (texts: readonly string[], macs: readonly string[]) => Promise<readonly boolean[]>;

/** Returns each record with only its valid MAC, or null where it has none. @throws VaultError VAULT_LOCKED */
export async function validRecords(
  records: readonly TokenRecord[],
  verify: VerifyRecords,
): Promise<readonly (TokenRecord | null)[]> {
  const claims = records.flatMap((one) => {
    const { nextMac, ...record } = one;
    return nextMac === undefined ? [one] : [record, { ...record, mac: nextMac }];
  });
  const macs = claims.map(({ mac }) => mac);
  const valid = await verify(claims.map(signedText), macs);
  const genuine = new Map(claims.flatMap((claim, i) => (valid[i] ? [[claim.name, claim] as const] : [])));
  return records.map(({ name }) => genuine.get(name) ?? null);
}

export function writeDocument(
  { tokens, ended, refused, lastUsed }: TokenDocument,
  id: string | null = null,
): Uint8Array<ArrayBuffer> {
  const header = id === null ? { format, version: 1 } : { format, version: 2, id };
  const all = [
    ...tokens.map((record) => tokenJson(record, lastUsed)),
    ...refused.map((entry) => JSON.stringify(entry)),
  ];
  const start = JSON.stringify(header).slice(0, -1);
  return new TextEncoder().encode(`${start},"tokens":[${all.join()}],"ended":${endedJson(ended)}}\n`);
}

/** Texts of records, which are immutable, with their last uses: a change of one token writes the others' again. */
const tokenTexts = new WeakMap<TokenRecord, { readonly lastUsedAt: number | null; readonly text: string }>();

export function tokenJson(record: TokenRecord, lastUsed: TokenDocument["lastUsed"]): string {
  const lastUsedAt = lastUsed.get(record.name) ?? null;
  const known = tokenTexts.get(record);
  if (known?.lastUsedAt === lastUsedAt) return known.text;
  const { paths, ...rest } = record;
  const text = JSON.stringify({ ...(record.inherits ? rest : record), lastUsedAt });
  tokenTexts.set(record, { lastUsedAt, text });
  return text;
}

/** Texts of ended values, and of lists of them, which never change. */
const endedTexts = new WeakMap<EndedToken | readonly EndedToken[], string>();

export function endedJson(ended: readonly EndedToken[]): string {
  return cachedJson(ended, () => `[${ended.map((one) => cachedJson(one, () => JSON.stringify(one))).join()}]`);
}

function cachedJson(value: EndedToken | readonly EndedToken[], make: () => string): string {
  const text = endedTexts.get(value) ?? make();
  endedTexts.set(value, text);
  return text;
}

/** Returns null for a document that this program did not write. The MACs are not checked. */
export function readDocument(bytes: Uint8Array): WholeDocument | null {
  const { format: found, version, id, tokens, ended } = parseMembers(bytes);
  const isKnown = found === format && (version === 1 ? id === undefined : version === 2 && typeof id === "string");
  if (!isKnown || !Array.isArray(tokens) || !Array.isArray(ended)) return null;
  const { records, refused, lastUsed } = readEntries(tokens);
  const document = withPaths({ tokens: records, refused, lastUsed, ended: ended.filter(isEnded) });
  return { ...document, id: typeof id === "string" ? id : null };
}

type Members = { readonly [name: string]: unknown };

/** Returns no members for what is not JSON. */
export function parseMembers(bytes: Uint8Array): Members {
  try {
    return entryMembers(JSON.parse(new TextDecoder("utf8", { fatal: true }).decode(bytes)));
  } catch {
    return {};
  }
}

/** Entries of a document. The paths of records that inherit them may still be missing. */
type Entries = Pick<TokenDocument, "refused" | "lastUsed"> & { readonly records: readonly TokenRecord[] };

export function readEntries(entries: readonly unknown[]): Entries {
  const tokens = new Map<string, TokenRecord>();
  const refused: unknown[] = [];
  const lastUsed = new Map<string, number>();
  for (const entry of entries) {
    if (!isRecord(entry) || tokens.has(entry.name)) {
      refused.push(entry);
      continue;
    }
    const { lastUsedAt, ...record } = entry;
    tokens.set(record.name, record);
    if (lastUsedAt !== null) lastUsed.set(record.name, lastUsedAt);
  }
  return { records: [...tokens.values()], refused, lastUsed };
}

/** Gives the records that inherit paths those of their parents, and refuses the others. */
export function withPaths(document: TokenDocument): TokenDocument {
  const { tokens, refused, lastUsed } = document;
  const found = inherited(tokens);
  const missing = tokens.filter(({ name }) => !found.has(name));
  const others = missing.map((record) => ({ ...record, lastUsedAt: lastUsed.get(record.name) ?? null }));
  return { ...document, tokens: [...found.values()], refused: [...refused, ...others] };
}

/**
 * Returns the records by name, with the paths that they inherit. Without a parent there is no record: the token has
 * ended, and DANGER: no paths would mean all of them. For the root token's children they do; its name is unique.
 */
function inherited(records: readonly TokenRecord[]): ReadonlyMap<string, TokenRecord> {
  const owners = new Map(records.flatMap((one) => [one, ...one.former].map(({ digest }) => [digest, one] as const)));
  const found = new Map<string, TokenRecord>();
  const inheritedPaths = (record: TokenRecord, depth: number): readonly string[] | null => {
    const { parent } = record;
    const paths: readonly string[] | undefined = record.paths; // missing from what was just read
    if (paths !== undefined || parent === undefined) return paths ?? null;
    if (parent.name === "root") return [];
    const owner = owners.get(parent.digest);
    return owner === undefined || depth === 0 ? null : inheritedPaths(owner, depth - 1);
  };
  for (const record of records) {
    const paths = inheritedPaths(record, maxDepth);
    if (paths !== null) found.set(record.name, paths === record.paths ? record : { ...record, paths });
  }
  return found;
}

/** A child of a child, and so on. */
export const maxDepth = 8;

const recordMembers = 10;

function isRecord(entry: unknown): entry is TokenRecord & { readonly lastUsedAt: number | null } {
  const members = entryMembers(entry);
  const { name, can, paths, createdAt, ttlSeconds, expiresAt, digest, former, mac, nextMac, lastUsedAt } = members;
  const { parent, inherits, session } = members;
  const optional = ["parent", "nextMac", "session"].filter((member) => member in members);
  return (
    Object.keys(members).length === recordMembers + optional.length &&
    (parent === undefined || isParent(parent)) &&
    (session === undefined || session === true) &&
    (paths === undefined ? inherits === true && parent !== undefined : inherits === undefined) &&
    isText(name, tokenName) &&
    isArrayWith(can, (one) => scopes.some((known) => known === one)) &&
    isArrayWith(paths ?? [], (one) => typeof one === "string") &&
    [createdAt, ttlSeconds].every(isTime) &&
    [expiresAt, lastUsedAt].every((time) => time === null || isTime(time)) &&
    [digest, mac, nextMac ?? mac].every(isDigest) &&
    isArrayWith(former, isFormer)
  );
}

function isFormer(entry: unknown): boolean {
  const { digest, until } = entryMembers(entry);
  return isDigest(digest) && isTime(until);
}

function isParent(entry: unknown): entry is Parent {
  const { name, digest } = entryMembers(entry);
  return isText(name, tokenName) && isDigest(digest);
}

export function isEnded(entry: unknown): entry is EndedToken {
  const { digest, name, reason, at } = entryMembers(entry);
  const isReason = endReasons.some((known) => known === reason);
  return isDigest(digest) && isText(name, tokenName) && isReason && isTime(at);
}

function entryMembers(entry: unknown): Members {
  return typeof entry === "object" && entry !== null ? (entry as Members) : {};
}

function isText(value: unknown, pattern: RegExp): boolean {
  return typeof value === "string" && pattern.test(value);
}

function isArrayWith(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem);
}

/** Whether the value is a digest of 32 bytes in base64url. */
function isDigest(value: unknown): boolean {
  return isText(value, /^[A-Za-z0-9_-]{43}$/);
}

function isTime(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
