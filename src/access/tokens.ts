/** Client tokens: creation, rotation, revocation. A revoked token ends in memory first, then on disk. */
import { hash } from "node:crypto";
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { ClientCaller } from "./credentials.js";
import {
  documentName,
  type EndedToken,
  type TokenDocument,
  type TokenRecord,
  type UnsignedRecord,
} from "./token-record.js";
import { rootName, type TokenRequest } from "./token-request.js";
import { formerValues, type LedgerOptions, type Outcome, TokenLedger } from "./token-store.js";
import { newTokenValue } from "./token-value.js";

/** A document of the vault. */
type NamedDocument = { readonly name: string; readonly bytes: Uint8Array<ArrayBuffer> };

/** A record without its digests. Times are ISO 8601 UTC with milliseconds. */
type ShownToken = Pick<TokenRecord, "name" | "can" | "paths"> & {
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly lastUsedAt: string | null;
};

/** `text` is shown once. */
export type NewToken = { readonly text: string; readonly shown: ShownToken };

export class ClientTokens {
  readonly #ledger: TokenLedger;
  readonly #clock: Clock;
  /** Names of tokens that are revoked only in memory, because the disk refused the change. */
  readonly #unsaved = new Set<string>();

  private constructor(ledger: TokenLedger, clock: Clock) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  static async open(options: LedgerOptions): Promise<ClientTokens> {
    return new ClientTokens(await TokenLedger.open(options), options.clock);
  }

  /** Returns the tokens in ascending order of their names, including those that expired within the last 30 days. */
  list(): readonly ShownToken[] {
    const shown = this.#ledger.existing(this.#ledger.state).map((record) => this.#shown(record));
    return shown.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The number of tokens, including those that expired within the last 30 days. */
  get count(): number {
    return this.#ledger.existing(this.#ledger.state).length;
  }

  /** See `TokenLedger.refresh`. */
  refresh(): Promise<void> | undefined {
    return this.#ledger.refresh();
  }

  show({ token }: ClientCaller): ShownToken {
    return this.#shown(token);
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

  /** @throws VaultError ALREADY_EXISTS, VAULT_LOCKED, BAD_REQUEST, INTEGRITY, UNAVAILABLE */
  async create({ name, can, paths, ttlSeconds }: TokenRequest): Promise<NewToken> {
    await this.refresh(); // another server may have revoked the token of this name
    const text = newTokenValue("client");
    const record = await this.#ledger.change((state) => {
      if (name === rootName || this.#find(state, name) !== undefined) throw alreadyExists(name);
      const createdAt = this.#clock.now();
      this.#ledger.forgetUse(name); // of an earlier token
      const times = { createdAt, ttlSeconds, expiresAt: endOf(createdAt, ttlSeconds) };
      return this.#signed(state, { name, can, paths, ...times, digest: digestOf(text), former: [] });
    });
    return { text, shown: this.#shown(record) };
  }

  /**
   * Replaces the token's value. The new one has the lifetime that the token was created with; the old one stays valid for
   * the overlap.
   * @throws VaultError NOT_FOUND, VAULT_LOCKED, INTEGRITY, UNAVAILABLE; BAD_REQUEST when it would end an earlier overlap
   */
  async rotate(name: string, overlapSeconds: number): Promise<NewToken> {
    await this.refresh();
    const text = newTokenValue("client");
    const record = await this.#ledger.change((state) => {
      const old = this.#find(state, name);
      if (old === undefined) throw noSuchToken(name);
      const now = this.#clock.now();
      const until = Math.min(now + overlapSeconds * 1000, old.expiresAt ?? Number.POSITIVE_INFINITY);
      const [former, dropped] = formerValues([{ digest: old.digest, until }, ...old.former], name, now);
      const renewed = { expiresAt: endOf(now, old.ttlSeconds), digest: digestOf(text), former };
      return this.#signed({ ...state, ended: [...state.ended, ...dropped] }, { ...old, ...renewed });
    });
    return { text, shown: this.#shown(record) };
  }

  /**
   * Also works while the vault is locked.
   * @throws VaultError NOT_FOUND; UNAVAILABLE when the disk refuses, INTEGRITY for a damaged document: the token stays
   * revoked until the server restarts
   */
  async revoke(name: string): Promise<void> {
    await this.#ledger.readMissed()?.catch(() => {}); // a token that is known here must end in any case
    const wasLive = this.#end(name);
    const isRefused = this.#ledger.state.refused.some((entry) => isNamed(entry, name));
    if (!wasLive && !isRefused && !this.#unsaved.has(name)) throw noSuchToken(name);
    this.#unsaved.add(name);
    try {
      await this.#ledger.change(async () => {
        this.#end(name); // a rotation may have come before this turn
        return { state: withoutRefused(this.#ledger.state, name), result: null };
      });
      this.#unsaved.delete(name);
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

  /** See `TokenLedger.resign`. */
  resign(): Promise<void> {
    return this.#ledger.resign();
  }

  /** Returns the documents of a vault that a forced init is about to make: all tokens have ended in it, durably. */
  documentsForNewVault(): readonly NamedDocument[] {
    const at = this.#clock.now();
    const ended = this.#ledger.state.tokens.flatMap((record) => revokedTexts(record, at));
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

  #shown({ name, can, paths, createdAt, expiresAt }: UnsignedRecord): ShownToken {
    const lastUsedAt = this.#ledger.lastUsedAt(name);
    const times = { createdAt: iso(createdAt), expiresAt: expiresAt === null ? null : iso(expiresAt) };
    return { name, can, paths, ...times, lastUsedAt: lastUsedAt === null ? null : iso(lastUsedAt) };
  }

  async #signed(state: TokenDocument, unsigned: UnsignedRecord): Promise<Outcome<TokenRecord>> {
    const record = await this.#ledger.sign(unsigned);
    const others = state.tokens.filter(({ name }) => name !== record.name);
    return { state: { ...withoutRefused(state, record.name), tokens: [...others, record] }, result: record };
  }

  #find(state: TokenDocument, name: string): TokenRecord | undefined {
    return this.#ledger.existing(state).find((record) => record.name === name);
  }

  /** Ends the token in memory; returns whether there was one. */
  #end(name: string): boolean {
    const record = this.#find(this.#ledger.state, name);
    if (record !== undefined) this.#endAll([record]);
    return record !== undefined;
  }

  #endAll(records: readonly TokenRecord[]): void {
    const at = this.#clock.now();
    this.#ledger.end(records.flatMap((record) => revokedTexts(record, at)));
  }
}

const notDurable =
  "the token is revoked until the server restarts, but the change could not be stored: free some space on the disk, and revoke it again";

const unchecked = "this token cannot be checked before the vault is unlocked: unlock it first, or use the root token";

function digestOf(text: string): string {
  return hash("sha256", text, "base64url");
}

function revokedTexts({ name, digest: current, former }: TokenRecord, at: number): EndedToken[] {
  const digests = [current, ...former.map(({ digest }) => digest)];
  return digests.map((digest) => ({ digest, name, reason: "revoked", at }));
}

function endOf(from: number, ttlSeconds: number): number | null {
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

function alreadyExists(name: string): VaultError {
  return new VaultError("ALREADY_EXISTS", `there is a token ${name} already: choose another name, or rotate it`);
}
