/**
 * Token store: the vault's client tokens, each change of which is stored durably; their records' MACs; and the tokens that
 * authenticate. A value that was revoked in memory stays so, whatever a document says.
 */
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import { Mutex, sharedRuns } from "../locks.js";
import type { Log } from "../log.js";
import { type NameRange, scopeRanges } from "../paths/path-scope.js";
import { type ClientEntry, type Credentials, rememberedMs } from "./credentials.js";
import { type DocumentChange, type DocumentVault, StoredTokens } from "./stored-tokens.js";
import { changed } from "./token-changes.js";
import {
  type EndedToken,
  type FormerValue,
  isShortLived,
  noTokens,
  signedText,
  type TokenDocument,
  type TokenRecord,
  type UnsignedRecord,
  validRecords,
  writeDocument,
} from "./token-record.js";
import { rootName } from "./token-request.js";

/** Members of the vault that client tokens need. */
interface TokenVault extends RecordVault, DocumentVault {
  /** Resolves once the header that another server has made is loaded. */
  refresh(): Promise<void>;
  /** Runs work while no other vault takes this one's place. */
  hold<T>(work: () => Promise<T>): Promise<T>;
}

export type LedgerOptions = {
  readonly vault: TokenVault;
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly log: Log;
};

/** The document after a change, and what the change returns to its caller. */
export type TokenChange<T> = { readonly state: TokenDocument; readonly result: T };
type MakeChange<T> = (state: TokenDocument) => Promise<TokenChange<T>>;

/** Longest time, in milliseconds, until a token's last use, or a write that the disk refused, is written. */
const writeDelayMs = 60_000;

/** Attempts at a change while another program also changes the document. */
const maxAttempts = 5;

export class TokenLedger {
  readonly #vault: TokenVault;
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  readonly #log: Log;
  #state = noTokens;
  readonly #stored: StoredTokens;
  /** Times of the last use by token name. */
  readonly #lastUsed = new Map<string, number>();
  readonly #genuine: GenuineRecords;
  readonly #inTurn = new Mutex();
  readonly #readChanges = sharedRuns(() => this.#vault.hold(() => this.#inTurn.run(() => this.#readIfChanged())));
  /** No child token is without its parent's value before. */
  #orphansFrom = 0;
  #cancelWrite: (() => void) | null = null;
  #onRevoked: (name: string) => void = () => {};

  private constructor({ vault, credentials, clock, log }: LedgerOptions) {
    this.#vault = vault;
    this.#credentials = credentials;
    this.#clock = clock;
    this.#log = log;
    this.#stored = new StoredTokens(vault);
    this.#genuine = new GenuineRecords(vault, log);
  }

  /** Reads the document. An unreadable document blocks neither a start nor an unlock, which tries again. */
  static async open(options: LedgerOptions): Promise<TokenLedger> {
    const ledger = new TokenLedger(options);
    await ledger.#readOrLog();
    return ledger;
  }

  /** See `ClientTokens.onRevoked`. */
  onRevoked(listener: (name: string) => void): void {
    this.#onRevoked = listener;
  }

  /** Returns the tokens that exist for a user: an expired token for 30 days more, a child token until it ends. */
  existing(tokens: readonly TokenRecord[]): readonly TokenRecord[] {
    const now = this.#clock.now();
    return tokens.filter((record) => now < childEnd(record) && !isForgotten(record.expiresAt, now));
  }

  /** The current document. */
  get state(): TokenDocument {
    return this.#merged(this.#state);
  }

  /** Milliseconds since 1970, or null. */
  lastUsedAt(name: string): number | null {
    return this.#lastUsed.get(name) ?? null;
  }

  /** Records a use; it is written within a minute. */
  touch(name: string): void {
    this.#lastUsed.set(name, this.#clock.now());
    this.writeSoon();
  }

  forgetUse(name: string): void {
    this.#lastUsed.delete(name);
  }

  /** @throws VaultError VAULT_LOCKED */
  sign(unsigned: UnsignedRecord): Promise<TokenRecord> {
    return this.#genuine.sign(unsigned);
  }

  /**
   * Makes one change at a time. The changed document is stored durably before it counts.
   * @throws VaultError INTEGRITY for a damaged document, UNAVAILABLE, BAD_REQUEST for too many tokens
   */
  change<T>(make: MakeChange<T>): Promise<T> {
    return this.#vault.hold(() => this.#inTurn.run(() => this.#changeNow(make)));
  }

  /**
   * Reads the document if another server has changed it. Returns undefined where no other server can.
   * @throws VaultError UNAVAILABLE, INTEGRITY
   */
  refresh(): Promise<void> | undefined {
    return this.#vault.isShared ? this.#readCurrent() : undefined;
  }

  /** Like `refresh`; where no other server changes the document, reads it if it could not be read before. */
  readMissed(): Promise<void> | undefined {
    return this.#stored.isStale ? this.#readChanges() : this.refresh();
  }

  /** Ends these values in memory, immediately. */
  end(texts: readonly EndedToken[]): void {
    this.#adopt({ ...this.#state, ended: [...this.#state.ended, ...texts] });
  }

  /** Whether the record's MAC was checked, or made here: not before the first unlock after a start. */
  isGenuine(record: TokenRecord): boolean {
    return this.#genuine.has(record);
  }

  /**
   * Checks the records that were read from the document, once the key worker holds the key; reads first what could not be
   * read before. Returns undefined when there is nothing to do.
   * @throws VaultError VAULT_LOCKED, also when there is nothing left to check
   */
  verify(): Promise<void> | undefined {
    const { tokens, refused } = this.#state;
    if (!this.#stored.isStale && tokens.length + refused.length === 0) return undefined;
    const verify = async () => {
      await this.#readMissedOrLog();
      this.#adopt(await this.#genuine.withoutForged(this.#state, this.#lastUsed));
    };
    return this.#vault.hold(() => this.#inTurn.run(verify));
  }

  /** See `RecordStore.documentForRotation`. A damaged document has no genuine record. */
  async documentForRotation(): Promise<DocumentChange | null> {
    try {
      if (await this.#stored.hasChanged()) this.#adopt(await this.#checkedIfUnlocked(await this.#read()));
      const records = await this.#genuine.resigned(this.state);
      return await this.#stored.change({ ...this.state, tokens: records, lastUsed: this.#lastUsed });
    } catch (error) {
      if (error instanceof VaultError && error.code === "INTEGRITY") return null;
      throw error;
    }
  }

  /**
   * Makes new MACs, durably, which replace those of the start of the rotation that now ends. DANGER: in a rotation that an
   * earlier program began there are none, and a record that this does not see, because another server made it or because the
   * document could not be read, is lost with the old key. A damaged document has none.
   * @throws VaultError VAULT_LOCKED, UNAVAILABLE
   */
  async resign(): Promise<void> {
    try {
      await this.refresh();
      if (!this.#stored.isStale && this.#state.tokens.length === 0) return;
      await this.change(async (state) => ({ state: await this.#genuine.signedAgain(state), result: null }));
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== "INTEGRITY") throw error;
    }
  }

  /** Returns the document for a vault that is about to replace this one: without tokens, but these have ended in it. */
  documentForNewVault(ended: readonly EndedToken[]): Uint8Array<ArrayBuffer> | null {
    const next = withEnded({ ...noTokens, ended: this.#state.ended }, ended, this.#clock.now());
    return next.ended.length === 0 ? null : writeDocument(next);
  }

  /** Forgets the records, because another vault has replaced theirs. */
  clear(): void {
    this.#state = { ...noTokens, ended: this.#state.ended };
    this.#stored.forget();
    if (this.#state.ended.length > 0) this.writeSoon();
  }

  writeSoon(): void {
    this.#cancelWrite ??= this.#clock.after(writeDelayMs, () => void this.#write());
  }

  /** Writes what is still unwritten. */
  async close(): Promise<void> {
    if (this.#cancelWrite !== null) await this.#write();
    this.#cancelWrite?.();
  }

  /** Reads twice when the first answer is that another server has replaced the vault or its header. */
  async #readCurrent(): Promise<void> {
    try {
      await this.#readChanges();
    } catch (error) {
      if (!isLocked(error)) throw error;
      await this.#vault.refresh();
      await this.#readChanges();
    }
  }

  async #readIfChanged(): Promise<void> {
    if (await this.#stored.hasChanged()) this.#adopt(await this.#checkedIfUnlocked(await this.#read()));
  }

  async #changeNow<T>(make: MakeChange<T>, write: "write" | "writeWhole" = "write"): Promise<T> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      if (this.#stored.isStale) this.#adopt(await this.#checkedIfUnlocked(await this.#read()));
      const { state, result } = await make(this.#withoutOrphans());
      if (await this.#store(this.#merged(state), write)) return result;
    }
    throw new VaultError("UNAVAILABLE", "another program keeps changing the tokens: try again");
  }

  /** Searches for orphans only where there may be some. */
  #withoutOrphans(): TokenDocument {
    const { state } = this;
    const now = this.#clock.now();
    if (now < this.#orphansFrom) return state;
    this.#orphansFrom = firstFormerEnd(state.tokens, now);
    return withoutOrphans(state, now);
  }

  /** Returns false when another program has changed the document. */
  async #store(state: TokenDocument, write: "write" | "writeWhole"): Promise<boolean> {
    const makeRoom = (document: TokenDocument) => this.#withoutForgotten(document);
    const isStored = await this.#stored[write]({ ...state, lastUsed: this.#lastUsed }, makeRoom);
    if (isStored) this.#adopt(state);
    return isStored;
  }

  async #read(): Promise<TokenDocument> {
    const recognized = (read: readonly TokenRecord[]) => this.#genuine.recognized(this.#state.tokens, read);
    const stored = await this.#stored.read(recognized);
    this.#orphansFrom = 0;
    const document = { ...stored, tokens: recognized(stored.tokens) };
    for (const [name, at] of document.lastUsed) this.#lastUsed.set(name, Math.max(at, this.lastUsedAt(name) ?? 0));
    return document;
  }

  /** Another server may have signed the records again, or made others: those before would pass for forged ones. */
  async #readMissedOrLog(): Promise<void> {
    const isMissed = this.#vault.isShared ? await this.#stored.hasChanged() : this.#stored.isStale;
    if (isMissed) await this.#readOrLog();
  }

  async #readOrLog(): Promise<void> {
    try {
      this.#adopt(await this.#read());
    } catch (error) {
      this.#log.error({ event: "tokens-unreadable", error, hint: "no client token is valid" });
    }
  }

  /** Costs little where little has changed. */
  #adopt(next: TokenDocument): void {
    const before = this.#state;
    this.#state = this.#merged(next);
    const tokens = changed(before.tokens, this.#state.tokens);
    const ended = changed(before.ended, this.#state.ended);
    this.#orphansFrom = Math.min(this.#orphansFrom, firstFormerEnd(tokens.added, 0));
    this.#credentials.forgetEnded(ended.gone.map(({ digest }) => digest));
    this.#credentials.changeClients(tokens.gone.flatMap(recordDigests), [
      ...tokens.added.flatMap(entriesOfToken),
      ...ended.added.map(({ digest, at, reason }) => ({ digest, owner: null, until: at, ending: reason })),
    ]);
    for (const name of revokedNames(tokens.gone, this.#state)) {
      if (!this.#state.tokens.some((record) => record.name === name)) this.#lastUsed.delete(name);
      this.#onRevoked(name);
    }
  }

  /** Forgets tokens that expired more than 30 days ago: for a document that has no room for them. */
  #withoutForgotten(document: TokenDocument): TokenDocument {
    const tokens = this.existing(document.tokens);
    const count = document.tokens.length - tokens.length;
    if (count > 0) this.#log.warn({ event: "tokens-forgotten", count, hint: "expired long ago, to make room" });
    return { ...document, tokens };
  }

  #merged(next: TokenDocument): TokenDocument {
    return withEnded(next, this.#state.ended, this.#clock.now());
  }

  async #checkedIfUnlocked(state: TokenDocument): Promise<TokenDocument> {
    try {
      return await this.#genuine.withoutForged(state, this.#lastUsed);
    } catch (error) {
      if (isLocked(error)) return state; // the next unlock checks them
      throw error;
    }
  }

  /** Tries again a minute later when the disk refuses. */
  async #write(): Promise<void> {
    this.#cancelWrite?.();
    this.#cancelWrite = null;
    try {
      const same: MakeChange<null> = async (state) => ({ state, result: null });
      await this.#vault.hold(() => this.#inTurn.run(() => this.#changeNow(same, "writeWhole")));
    } catch (error) {
      this.#log.warn({ event: "tokens-not-written", error, hint: "the server tries again in a minute" });
      this.writeSoon();
    }
  }
}

/** Returns the names of tokens that are gone; a revoked token may have a namesake since. */
function revokedNames(gone: readonly TokenRecord[], { tokens, ended }: TokenDocument): readonly string[] {
  const { digests } = indexEnded(ended);
  const isRevoked = ({ digest }: TokenRecord) => digests.has(digest);
  const names = new Set(gone.every(isRevoked) ? [] : tokens.map(({ name }) => name));
  return gone.filter((record) => isRevoked(record) || !names.has(record.name)).map(({ name }) => name);
}

function recordDigests({ digest, former }: TokenRecord): string[] {
  return [digest, ...former.map((one) => one.digest)];
}

function isLocked(error: unknown): boolean {
  return error instanceof VaultError && error.code === "VAULT_LOCKED";
}

/** The vault's MACs of records. */
interface RecordVault {
  /** @throws VaultError VAULT_LOCKED */
  signRecords(texts: readonly string[]): Promise<readonly string[]>;
  /** @throws VaultError VAULT_LOCKED */
  verifyRecords(texts: readonly string[], macs: readonly string[]): Promise<readonly boolean[]>;
  /** Returns MACs under a proposed key; null for a text that the current one has not signed. @throws VaultError VAULT_LOCKED */
  resignRecords(texts: readonly string[], macs: readonly string[]): Promise<readonly (string | null)[]>;
}

class GenuineRecords {
  readonly #vault: RecordVault;
  readonly #log: Log;
  readonly #known = new WeakSet<TokenRecord>();

  constructor(vault: RecordVault, log: Log) {
    this.#vault = vault;
    this.#log = log;
  }

  /** Whether the record's MAC was checked, or made here. */
  has(record: TokenRecord): boolean {
    return this.#known.has(record);
  }

  /** Returns the records of a document, with the known records in place of their copies. */
  recognized(known: readonly TokenRecord[], read: readonly TokenRecord[]): readonly TokenRecord[] {
    const own = new Map(known.map((record) => [record.name, record]));
    return read.map((record) => {
      const before = own.get(record.name);
      if (before === record) return before;
      const isSame = before !== undefined && before.mac === record.mac && before.nextMac === record.nextMac;
      return isSame && this.has(before) && signedText(before) === signedText(record) ? before : record;
    });
  }

  /** @throws VaultError VAULT_LOCKED */
  async sign(unsigned: UnsignedRecord): Promise<TokenRecord> {
    const [mac = ""] = await this.#vault.signRecords([signedText(unsigned)]);
    return this.#remember({ ...unsigned, mac });
  }

  /** Returns the records; the genuine ones also with a MAC under the proposed key. @throws VaultError VAULT_LOCKED */
  async resigned({ tokens }: TokenDocument): Promise<TokenRecord[]> {
    const before = tokens.map(({ nextMac, ...record }): TokenRecord => record);
    const macs = before.map(({ mac }) => mac);
    const next = await this.#vault.resignRecords(before.map(signedText), macs);
    return before.map((record, i) => ({ ...record, ...(next[i] && { nextMac: next[i] }) }));
  }

  /** Returns the document with new MACs, without records that were not checked. @throws VaultError VAULT_LOCKED */
  async signedAgain(document: TokenDocument): Promise<TokenDocument> {
    const genuine = document.tokens.filter((record) => this.#known.has(record));
    const macs = await this.#vault.signRecords(genuine.map(signedText));
    const tokens = genuine.map(({ nextMac, ...record }, i) => this.#remember({ ...record, mac: macs[i] ?? "" }));
    return { ...document, tokens };
  }

  /** Checks the records not yet known, and moves the forged ones to `refused`. @throws VaultError VAULT_LOCKED */
  async withoutForged(document: TokenDocument, lastUsed: TokenDocument["lastUsed"]): Promise<TokenDocument> {
    const unknown = document.tokens.filter((record) => !this.#known.has(record));
    const genuine = await validRecords(unknown, (texts, macs) => this.#vault.verifyRecords(texts, macs));
    const checked = new Map(unknown.map((record, i) => [record, genuine[i] ?? null]));
    const tokens = document.tokens.flatMap((record) => checked.get(record) ?? (checked.has(record) ? [] : [record]));
    for (const record of tokens) this.#remember(record);
    const forged = unknown.filter((record) => checked.get(record) === null);
    const refused = [
      ...document.refused,
      ...forged.map((one) => ({ ...one, lastUsedAt: lastUsed.get(one.name) ?? null })),
    ];
    if (refused.length > 0) this.#log.warn({ event: "tokens-refused", count: refused.length, hint: refusedHint });
    return { ...document, refused, tokens };
  }

  #remember(record: TokenRecord): TokenRecord {
    this.#known.add(record);
    return record;
  }
}

const refusedHint = "added or changed outside the server, they are not accepted: strongroom doctor --open names them";

const maxEnded = 10_000;

/** Limit for ended child tokens and sessions: programs end thousands, which must not displace revoked tokens. */
const maxEndedChildren = 2_000;

/** Earlier values that a record keeps. */
const maxFormer = 8;

/** `end`: milliseconds since 1970; null: never. */
function isForgotten(end: number | null, now: number): boolean {
  return end !== null && now >= end + rememberedMs;
}

/** Digests of a list of ended values, which never changes, and when the first of them is forgotten. */
type EndedIndex = { readonly digests: ReadonlySet<string>; readonly oldest: number };

const knownIndexes = new WeakMap<readonly EndedToken[], EndedIndex>();

function indexEnded(ended: readonly EndedToken[]): EndedIndex {
  const known = knownIndexes.get(ended);
  if (known !== undefined) return known;
  const oldest = ended.reduce((first, { at }) => Math.min(first, at), Number.POSITIVE_INFINITY);
  const index = { digests: new Set(ended.map(({ digest }) => digest)), oldest };
  knownIndexes.set(ended, index);
  return index;
}

/**
 * Adds ended values to those of the document, and drops their tokens. An expired token stays, however long ago: were
 * the clock ahead, the token would be lost for good. An expired child token is dropped. Costs little where little changes.
 */
function withEnded(document: TokenDocument, ended: readonly EndedToken[], now: number): TokenDocument {
  const all = mergeEnded(document.ended, ended);
  const { oldest } = indexEnded(all);
  const remembered = knownRemembered.has(all) && !isForgotten(oldest, now) ? all : rememberedValues(all, now);
  return { ...document, tokens: living(document.tokens, all, remembered, now), ended: remembered };
}

/** Lists in which no token has ended before `until`, when the first child token expires. */
const knownLiving = new WeakMap<
  readonly TokenRecord[],
  { readonly ended: readonly EndedToken[]; readonly until: number }
>();

/** Returns the document with a record in place of one with its name. */
export function withRecord(document: TokenDocument, record: TokenRecord): TokenDocument {
  const { tokens } = document;
  const others = tokens.filter(({ name }) => name !== record.name);
  const known = knownLiving.get(tokens);
  const next = [...others, record];
  if (known !== undefined) knownLiving.set(next, { ...known, until: Math.min(known.until, childEnd(record)) });
  return { ...document, tokens: next };
}

/** @param remembered what is left of `ended` */
function living(
  tokens: readonly TokenRecord[],
  ended: readonly EndedToken[],
  remembered: readonly EndedToken[],
  now: number,
): readonly TokenRecord[] {
  const known = knownLiving.get(tokens);
  if (known?.ended === ended && now < known.until) return tokens;
  const { digests } = indexEnded(ended);
  let until = Number.POSITIVE_INFINITY;
  const left = tokens.filter((one) => {
    const end = childEnd(one);
    if (digests.has(one.digest) || end <= now) return false;
    until = Math.min(until, end);
    return true;
  });
  const found = left.length === tokens.length ? tokens : left;
  knownLiving.set(found, { ended: remembered, until });
  return found;
}

/** Returns one of the lists itself where it has all that the other has. */
function mergeEnded(stored: readonly EndedToken[], ended: readonly EndedToken[]): readonly EndedToken[] {
  if (ended === stored) return stored;
  const { digests } = indexEnded(stored);
  if (ended.every(({ digest }) => digests.has(digest))) return stored;
  return [...new Map([...stored, ...ended].map((one) => [one.digest, one])).values()];
}

/** Lists within their limits. */
const knownRemembered = new WeakSet<readonly EndedToken[]>();

function rememberedValues(all: readonly EndedToken[], now: number): readonly EndedToken[] {
  const kept = all.filter(({ at }) => !isForgotten(at, now));
  const [children, others] = [kept.filter(({ child }) => child), kept.filter(({ child }) => !child)];
  const remembered = [...others.slice(-maxEnded), ...children.slice(-maxEndedChildren)];
  knownRemembered.add(remembered);
  return remembered;
}

/** Returns when a child token or session expires and is dropped: its value says that it has expired. Other tokens stay. */
function childEnd(record: TokenRecord): number {
  return (isShortLived(record) ? record.expiresAt : null) ?? Number.POSITIVE_INFINITY;
}

/** Returns the digests of parents' values that are not valid. */
function missingParents(tokens: readonly TokenRecord[], now: number): ReadonlySet<string> {
  const missing = new Set<string>();
  for (const { parent } of tokens) if (parent !== undefined && parent.name !== rootName) missing.add(parent.digest);
  for (const { digest, former } of tokens) {
    if (missing.size === 0) break;
    missing.delete(digest);
    for (const one of former) if (now < one.until) missing.delete(one.digest);
  }
  return missing;
}

/** Returns the first time after `after` when a value that a rotation has replaced ends. */
function firstFormerEnd(tokens: readonly TokenRecord[], after: number): number {
  let first = Number.POSITIVE_INFINITY;
  for (const { former } of tokens) for (const { until } of former) if (until > after) first = Math.min(first, until);
  return first;
}

/** Drops child tokens that have ended with the former value of a token that they were made with. */
function withoutOrphans(document: TokenDocument, now: number): TokenDocument {
  const missing = missingParents(document.tokens, now);
  if (missing.size === 0) return document;
  const orphans = document.tokens.filter(({ parent }) => parent !== undefined && missing.has(parent.digest));
  const ended = orphans.flatMap((record) => endedValues(record, now));
  return withoutOrphans(withEnded(document, ended, now), now);
}

export function endedValues(record: TokenRecord, at: number): EndedToken[] {
  const { name } = record;
  const kind = isShortLived(record) ? ({ child: true } as const) : {};
  return recordDigests(record).map((digest) => ({ digest, name, reason: "revoked", at, ...kind }));
}

function entriesOfToken(token: TokenRecord): ClientEntry[] {
  const owner = { token, ranges: rangesFor(token.paths) };
  const former = token.former.map((one) => ({ ...one, owner, ending: "rotated" as const }));
  return [...former, { digest: token.digest, owner, until: token.expiresAt, ending: "expired" }];
}

const knownRanges = new WeakMap<readonly string[], readonly NameRange[]>();

/** A child token has its parent's list of paths. */
function rangesFor(paths: readonly string[]): readonly NameRange[] {
  const ranges = knownRanges.get(paths) ?? scopeRanges(paths);
  knownRanges.set(paths, ranges);
  return ranges;
}

/**
 * Returns the replaced values that a record keeps: first the valid ones, then the newest of the others; and the values
 * that it has no place for.
 * @throws VaultError BAD_REQUEST when too many are still valid
 */
export function formerValues(all: readonly FormerValue[], name: string, now: number): [FormerValue[], EndedToken[]] {
  const valid = all.filter(({ until }) => until > now);
  if (valid.length > maxFormer) throw tooManyOverlaps(name, valid.slice(1)); // without the one that is to be added
  const ended = all.filter(({ until }) => until <= now && !isForgotten(until, now));
  const former = [...valid, ...ended];
  const dropped = former.slice(maxFormer).map(({ digest }) => ({ digest, name, reason: "rotated" as const, at: now }));
  return [former.slice(0, maxFormer), dropped];
}

function tooManyOverlaps(name: string, valid: readonly FormerValue[]): VaultError {
  const next = new Date(Math.min(...valid.map(({ until }) => until))).toISOString();
  const problem = `the token ${name} has ${valid.length} earlier values that are still valid`;
  return new VaultError(
    "BAD_REQUEST",
    `${problem}: wait until ${next}, when one ends, or rotate it without an overlap`,
  );
}
