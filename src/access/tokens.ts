/** Client tokens: creation, rotation, revocation. A revoked token ends in memory first, then on disk. */
import { hash, randomBytes } from "node:crypto";
import type { Clock } from "../clock.js";
import { scopes } from "../contract/names.js";
import { VaultError } from "../errors.js";
import { ChildLimits, type LivingChildren } from "./child-limits.js";
import type { ClientCaller, Credentials, ParentValue } from "./credentials.js";
import type { Scope } from "./scopes.js";
import type { DocumentChange } from "./stored-tokens.js";
import {
  documentName,
  isShortLived,
  maxDepth,
  type Parent,
  type TokenDocument,
  type TokenRecord,
  type UnsignedRecord,
} from "./token-record.js";
import { rootName, type TokenRequest } from "./token-request.js";
import {
  endedValues,
  formerValues,
  type LedgerOptions,
  type TokenChange,
  TokenLedger,
  withRecord,
} from "./token-store.js";
import { newChildValue, newTokenValue } from "./token-value.js";

/** A document of the vault. */
type NamedDocument = { readonly name: string; readonly bytes: Uint8Array<ArrayBuffer> };

/** A record without its digests. Times are ISO 8601 UTC with milliseconds. `parent`: only of child tokens. */
export type ShownToken = Pick<TokenRecord, "name" | "can" | "paths"> & {
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly lastUsedAt: string | null;
  readonly parent?: string;
};

/** `can` null: what the parent can. */
export type ChildRequest = {
  readonly label: string;
  readonly can: readonly Scope[] | null;
  readonly ttlSeconds: number;
};

/** Lifetime in seconds. */
type Lifetime = { readonly left: number | null; readonly whole: number | null };

/** `text` is shown once. */
export type NewToken = { readonly text: string; readonly shown: ShownToken };

export type TokensOptions = LedgerOptions & { readonly maxLiving?: LivingChildren };

/** 4,000 children take about half of the document. */
const mostLiving: LivingChildren = { ofTree: 1000, inAll: 4000 };

export class ClientTokens {
  readonly #ledger: TokenLedger;
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  /** Names of tokens that are revoked only in memory, because the disk refused the change. */
  readonly #unsaved = new Set<string>();

  readonly #limits: ChildLimits;

  private constructor(ledger: TokenLedger, { credentials, clock, maxLiving = mostLiving }: TokensOptions) {
    this.#ledger = ledger;
    this.#credentials = credentials;
    this.#clock = clock;
    this.#limits = new ChildLimits(clock, credentials, maxLiving);
  }

  static async open(options: TokensOptions): Promise<ClientTokens> {
    return new ClientTokens(await TokenLedger.open(options), options);
  }

  /**
   * `listener`: called with the name of each token that is revoked, with its parent or with its vault too, once it has ended
   * here: another server's revocation is seen by the next `refresh`.
   */
  onRevoked(listener: (name: string) => void): void {
    this.#ledger.onRevoked(listener);
  }

  /** Returns the tokens in ascending order of their names, including tokens that expired within the last 30 days. */
  list(): readonly ShownToken[] {
    const records = this.#ledger
      .existing(this.#ledger.state.tokens)
      .filter((record) => this.#parentEnd(record) !== undefined);
    return records.map((record) => this.#shown(record)).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The number of tokens, including tokens that expired within the last 30 days. */
  get count(): number {
    return this.#ledger.existing(this.#ledger.state.tokens).length;
  }

  /** See `TokenLedger.refresh`. */
  refresh(): Promise<void> | undefined {
    return this.#ledger.refresh();
  }

  /** See `TokenLedger.readMissed`. @throws VaultError UNAVAILABLE, INTEGRITY */
  readMissed(): Promise<void> | undefined {
    return this.#ledger.readMissed();
  }

  show({ token }: ClientCaller): ShownToken {
    return this.#shown(token);
  }

  /** Returns how long a token lives from now on, and in all; null: without end. */
  tokenTimes({ createdAt, expiresAt }: Pick<ShownToken, "createdAt" | "expiresAt">): Lifetime {
    const [now, made] = [this.#clock.now(), Date.parse(createdAt)];
    if (expiresAt === null) return { left: null, whole: null };
    const end = Date.parse(expiresAt);
    return { left: Math.max(0, Math.ceil((end - now) / 1000)), whole: Math.round((end - made) / 1000) };
  }

  /**
   * Checks that the token's record is the vault's own; only the key can tell, so not before the first unlock after a start.
   * @throws VaultError VAULT_LOCKED
   */
  mustBeGenuine({ token }: ClientCaller): void {
    if (!this.#ledger.isGenuine(token)) throw new VaultError("VAULT_LOCKED", unchecked);
  }

  touch({ token }: ClientCaller): void {
    this.#ledger.touch(token.name);
  }

  /** `permit`: called in the change's turn. @throws VaultError ALREADY_EXISTS, VAULT_LOCKED, BAD_REQUEST, INTEGRITY, UNAVAILABLE */
  async create({ name, can, paths, ttlSeconds, session }: TokenRequest, permit: () => void): Promise<NewToken> {
    await this.refresh(); // another server may have revoked the token of this name
    let text = "";
    const record = await this.#ledger.change((state) => {
      permit();
      if (name === rootName || this.#find(state, name) !== undefined)
        throw new VaultError(
          "ALREADY_EXISTS",
          `a token named ${name} already exists: choose another name, or rotate it`,
        );
      const createdAt = this.#clock.now();
      this.#ledger.forgetUse(name); // of an earlier token
      const times = { createdAt, ttlSeconds, expiresAt: expiryTime(createdAt, ttlSeconds) };
      text = session ? newChildValue(times.expiresAt) : newTokenValue("client");
      const members = { name, can, paths, ...times, digest: valueDigest(text), former: [] };
      return this.#signed(state, { ...members, ...(session && { session }) });
    });
    return { text, shown: this.#shown(record) };
  }

  /**
   * Makes a token that can do no more than its parent, and ends with the value that it is made with. `text`: that value.
   * @throws VaultError UNAUTHORIZED, FORBIDDEN for what the parent may not do, RATE_LIMITED, … as create
   */
  async createChild(text: string, { label, can, ttlSeconds }: ChildRequest): Promise<NewToken> {
    await this.refresh();
    this.#limits.spendCreation(this.#findParent(text).parent);
    let value = "";
    const record = await this.#ledger.change((state) => {
      const { parent, rights, until } = this.#findParent(text);
      const foreign = can?.find((scope) => !rights.can.includes(scope));
      if (foreign !== undefined)
        throw new VaultError("FORBIDDEN", `the token ${parent.name} cannot ${foreign}, so its child cannot`);
      this.#limits.refuseTooMany(state.tokens, parent);
      const createdAt = this.#clock.now();
      const expiresAt = earlier(expiryTime(createdAt, ttlSeconds), until);
      const name = this.#childName(state, parent.name, label);
      const times = { createdAt, ttlSeconds, expiresAt };
      const members = { name, can: can ?? rights.can, paths: rights.paths, ...times, former: [], parent };
      value = newChildValue(expiresAt);
      return this.#signed(state, { ...members, inherits: true, digest: valueDigest(value) });
    });
    return { text: value, shown: this.#shown(record) };
  }

  /**
   * Replaces the token's value. The new one has the lifetime that the token was created with; the old one stays valid for
   * the overlap.
   * @throws VaultError NOT_FOUND, VAULT_LOCKED, INTEGRITY, UNAVAILABLE; BAD_REQUEST when it would end an earlier overlap
   */
  async rotate(name: string, overlapSeconds: number, permit: () => void): Promise<NewToken> {
    await this.refresh();
    let text = "";
    const record = await this.#ledger.change((state) => {
      permit();
      const old = this.#find(state, name);
      if (old === undefined) throw noSuchToken(name);
      const now = this.#clock.now();
      const until = Math.min(now + overlapSeconds * 1000, old.expiresAt ?? Number.POSITIVE_INFINITY);
      const [former, dropped] = formerValues([{ digest: old.digest, until }, ...old.former], name, now);
      const end = expiryTime(now, old.ttlSeconds);
      const expiresAt = old.parent === undefined ? end : earlier(end, old.expiresAt);
      text = isShortLived(old) ? newChildValue(expiresAt) : newTokenValue("client");
      const renewed = { expiresAt, digest: valueDigest(text), former };
      return this.#signed({ ...state, ended: [...state.ended, ...dropped] }, { ...old, ...renewed });
    });
    return { text, shown: this.#shown(record) };
  }

  /**
   * Also works while the vault is locked.
   * @throws VaultError NOT_FOUND; UNAVAILABLE when the disk refuses, INTEGRITY for a damaged document: the token stays
   * revoked until the server restarts
   */
  async revoke(name: string, permit: () => void = () => {}): Promise<void> {
    await this.#ledger.readMissed()?.catch(() => {}); // a token that is known here must end in any case
    permit();
    const wasLive = this.#end(name);
    const isRefused = this.#ledger.state.refused.some((entry) => isNamed(entry, name));
    if (!wasLive && !isRefused && !this.#unsaved.has(name)) throw noSuchToken(name);
    this.#unsaved.add(name);
    await this.#storeEnd(async () => {
      this.#end(name); // a rotation may have come before this turn
      return { state: withoutRefused(this.#ledger.state, name), result: null };
    });
    this.#unsaved.delete(name);
  }

  /**
   * Revokes the token of a value as `revoke` does, if it is the token's current value; a former one ends alone, with the child
   * tokens that were made with it: who has only that one must not end its successors.
   */
  async revokeValue({ key }: Pick<ClientCaller, "key">, permit: () => void): Promise<void> {
    await this.#ledger.readMissed()?.catch(() => {});
    permit();
    const digest = Buffer.from(key, "latin1").toString("base64url");
    const current = this.#ledger.state.tokens.find((record) => record.digest === digest);
    if (current !== undefined) return this.revoke(current.name, permit);
    this.#endFormer(digest);
    await this.#storeEnd(async () => {
      this.#endFormer(digest);
      return { state: this.#ledger.state, result: null };
    });
  }

  /** @throws VaultError UNAVAILABLE, INTEGRITY */
  async #storeEnd(makeChange: () => Promise<TokenChange<null>>): Promise<void> {
    try {
      await this.#ledger.change(makeChange);
    } catch (cause) {
      this.#ledger.writeSoon();
      if (cause instanceof VaultError && cause.code === "INTEGRITY") throw cause; // trying again would not help
      throw new VaultError("UNAVAILABLE", notDurable, { cause });
    }
  }

  /** See `TokenLedger.verify`. */
  verify(): Promise<void> | undefined {
    return this.#ledger.verify();
  }

  /** See `RecordStore.documentForRotation`. */
  documentForRotation(): Promise<DocumentChange | null> {
    return this.#ledger.documentForRotation();
  }

  /** See `TokenLedger.resign`. */
  resign(): Promise<void> {
    return this.#ledger.resign();
  }

  /** Returns the documents of a vault that a forced init is about to make: all tokens have ended in it, durably. */
  documentsForNewVault(): readonly NamedDocument[] {
    const at = this.#clock.now();
    const ended = this.#ledger.state.tokens.flatMap((record) => endedValues(record, at));
    const bytes = this.#ledger.documentForNewVault(ended);
    return bytes === null ? [] : [{ name: documentName, bytes }];
  }

  /** Revokes all tokens, because a forced init has replaced their vault. */
  vaultReplaced(): void {
    this.#endAll(this.#ledger.state.tokens);
    this.#unsaved.clear();
    this.#ledger.clear();
  }

  close(): Promise<void> {
    return this.#ledger.close();
  }

  #shown(record: UnsignedRecord): ShownToken {
    const { name, can, paths, createdAt, parent } = record;
    const lastUsedAt = this.#ledger.lastUsedAt(name);
    const expiresAt = earlier(record.expiresAt, this.#parentEnd(record) ?? null);
    const times = { createdAt: iso(createdAt), expiresAt: expiresAt === null ? null : iso(expiresAt) };
    const used = { lastUsedAt: lastUsedAt === null ? null : iso(lastUsedAt) };
    return { name, can, paths, ...times, ...used, ...(parent && { parent: parent.name }) };
  }

  /** Returns when the parent's value ends; null: never, or there is no parent; undefined: it has ended. */
  #parentEnd({ parent }: UnsignedRecord): number | null | undefined {
    return parent === undefined ? null : this.#credentials.tokenEnd(parent.digest);
  }

  /** @throws VaultError UNAUTHORIZED, FORBIDDEN, BAD_REQUEST */
  #findParent(text: string): { readonly parent: Parent; readonly rights: Rights; readonly until: number | null } {
    const value = this.#credentials.parentValue(text);
    if (value === null) throw new VaultError("UNAUTHORIZED", "the token is wrong", { credential: "token" });
    const { caller, digest, until, depth } = value;
    if (depth === maxDepth) throw new VaultError("BAD_REQUEST", `child tokens are at most ${maxDepth} deep`);
    const rights = parentRights(caller);
    return { parent: { name: rights.name, digest }, rights, until };
  }

  /** Returns a name that says whose child it is. */
  #childName(state: TokenDocument, parent: string, label: string): string {
    for (;;) {
      const ending = `.${label.slice(0, maxLabel)}-${randomBytes(4).toString("hex")}`;
      const name = `${parent.slice(0, maxName - ending.length)}${ending}`;
      if (!state.tokens.some((record) => record.name === name)) return name;
    }
  }

  async #signed(state: TokenDocument, unsigned: UnsignedRecord): Promise<TokenChange<TokenRecord>> {
    const record = await this.#ledger.sign(unsigned);
    return { state: withRecord(withoutRefused(state, record.name), record), result: record };
  }

  #find(state: TokenDocument, name: string): TokenRecord | undefined {
    const named = state.tokens.find((record) => record.name === name);
    return named && this.#ledger.existing([named])[0];
  }

  /** Ends the token in memory; returns whether there was one. */
  #end(name: string): boolean {
    const record = this.#find(this.#ledger.state, name);
    if (record !== undefined) this.#endAll(withDescendants([record], this.#ledger.state.tokens));
    return record !== undefined;
  }

  #endFormer(digest: string): void {
    const { tokens } = this.#ledger.state;
    const owner = tokens.find(({ former }) => former.some((one) => one.digest === digest));
    if (owner === undefined) return;
    this.#endAll(withDescendants([{ ...owner, digest, former: [] }], tokens)); // as if it were a token of its own
  }

  #endAll(records: readonly TokenRecord[]): void {
    const at = this.#clock.now();
    this.#ledger.end(records.flatMap((record) => endedValues(record, at)));
  }
}

/** Maximum length of a token's name, and of the part of it that a client chooses. */
const maxName = 64;
const maxLabel = 24;

const notDurable =
  "the token is revoked until the server restarts, but the change could not be stored: free some space on the disk, and revoke it again";

const unchecked = "this token cannot be checked before the vault is unlocked: unlock it first, or use the root token";

function valueDigest(text: string): string {
  return hash("sha256", text, "base64url");
}

/** The children of these tokens end with them, and theirs. */
function withDescendants(ended: readonly TokenRecord[], all: readonly TokenRecord[]): readonly TokenRecord[] {
  const digests = new Set(ended.flatMap(({ digest, former }) => [digest, ...former.map((one) => one.digest)]));
  const known = new Set(ended);
  const found = all.filter((one) => one.parent !== undefined && digests.has(one.parent.digest) && !known.has(one));
  return found.length === 0 ? ended : withDescendants([...ended, ...found], all);
}

type Rights = Pick<TokenRecord, "name" | "can" | "paths">;

/** @throws VaultError FORBIDDEN */
function parentRights(caller: ParentValue["caller"]): Rights {
  if (caller === "root") return { name: rootName, can: scopes, paths: [] };
  if (caller.session) throw new VaultError("FORBIDDEN", "the review page's token cannot create tokens");
  return caller.token;
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

function expiryTime(from: number, ttlSeconds: number): number | null {
  return ttlSeconds === 0 ? null : from + ttlSeconds * 1000;
}

function withoutRefused(state: TokenDocument, name: string): TokenDocument {
  return { ...state, refused: state.refused.filter((entry) => !isNamed(entry, name)) };
}

function isNamed(entry: unknown, name: string): boolean {
  return typeof entry === "object" && entry !== null && "name" in entry && entry.name === name;
}

function iso(time: number): string {
  return new Date(time).toISOString();
}

function noSuchToken(name: string): VaultError {
  return new VaultError("NOT_FOUND", `there is no token ${name}: GET /v1/tokens lists them`);
}
