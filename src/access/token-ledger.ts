/**
 * Records of client tokens: the vault's document, which every change replaces durably, and what of it is valid. What was
 * revoked in memory stays so, whatever a document says; a record that was added or edited by hand opens nothing.
 */
import type { Clock } from "../clock.js";
import { VaultError } from "../errors.js";
import type { Log } from "../log.js";
import { rangesOf } from "../paths/path-scope.js";
import { type ClientEntry, type Credentials, rememberedMs } from "./credentials.js";
import { oneAtATime, sharedRuns } from "./in-turn.js";
import {
  documentName,
  type EndedToken,
  readDocument,
  signedText,
  type TokenDocument,
  type TokenRecord,
  type UnsignedRecord,
  writeDocument,
} from "./token-record.js";

/** What client tokens need of the vault. */
export interface TokenVault {
  /** Other servers change the documents, too. */
  readonly isShared: boolean;
  documentTag(name: string): Promise<string | null>;
  readDocument(name: string): Promise<{ readonly bytes: Uint8Array; readonly tag: string } | null>;
  /** Returns the new tag, or null unless the present one is `expected`. */
  writeDocument(name: string, bytes: Uint8Array<ArrayBuffer>, expected: string | null): Promise<string | null>;
  /** Runs work while no other vault takes this one's place. */
  hold<T>(work: () => Promise<T>): Promise<T>;
  /** @throws VaultError VAULT_LOCKED */
  signRecords(texts: readonly string[]): Promise<readonly string[]>;
  /** @throws VaultError VAULT_LOCKED */
  verifyRecords(texts: readonly string[], macs: readonly string[]): Promise<readonly boolean[]>;
}

export type LedgerOptions = {
  readonly vault: TokenVault;
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly log: Log;
};

/** What a change makes of the records. */
export type Outcome<T> = { readonly state: TokenDocument; readonly result: T };
type Change<T> = (state: TokenDocument) => Promise<Outcome<T>>;

/** Longest time, in milliseconds, until a use, or what a disk has refused, is written. */
const writeDelayMs = 60_000;

/** The limit of a vault's document. */
const maxBytes = 4 * 2 ** 20;
const maxEnded = 10_000;

/** Attempts at a change while another program changes the document, too. */
const maxAttempts = 5;

const nothing: TokenDocument = { tokens: [], ended: [], refused: [], lastUsed: new Map() };

export class TokenLedger {
  readonly #vault: TokenVault;
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  readonly #log: Log;
  #state = nothing;
  /** Of the stored document. */
  #tag: string | null = null;
  /** The stored document may differ from the one in memory: it is read before the next change. */
  #stale = false;
  /** By name. */
  readonly #lastUsed = new Map<string, number>();
  /** Records whose MAC was checked, or made here. */
  readonly #genuine = new WeakSet<TokenRecord>();
  readonly #inTurn = oneAtATime();
  readonly #readChanges = sharedRuns(() => this.#vault.hold(() => this.#inTurn(() => this.#readIfChanged())));
  #cancelWrite: (() => void) | null = null;

  private constructor({ vault, credentials, clock, log }: LedgerOptions) {
    this.#vault = vault;
    this.#credentials = credentials;
    this.#clock = clock;
    this.#log = log;
  }

  /** Reads the document. One that cannot be read does not prevent a start: no client token is valid then. */
  static async open(options: LedgerOptions): Promise<TokenLedger> {
    const ledger = new TokenLedger(options);
    try {
      ledger.#adopt(await ledger.#read());
    } catch (error) {
      ledger.#stale = true;
      options.log.error({ event: "tokens-unreadable", error, hint: "no client token is valid" });
    }
    return ledger;
  }

  /** Without what is forgotten by now. */
  get state(): TokenDocument {
    return this.#merged(this.#state);
  }

  /** Milliseconds since 1970, or null. */
  lastUsedAt(name: string): number | null {
    return this.#lastUsed.get(name) ?? null;
  }

  /** Notes a use; it is written within a minute. */
  touch(name: string): void {
    this.#lastUsed.set(name, this.#clock.now());
    this.writeSoon();
  }

  forgetUse(name: string): void {
    this.#lastUsed.delete(name);
  }

  /** @throws VaultError VAULT_LOCKED */
  async sign(unsigned: UnsignedRecord): Promise<TokenRecord> {
    const [mac = ""] = await this.#vault.signRecords([signedText(unsigned)]);
    const record = { ...unsigned, mac };
    this.#genuine.add(record);
    return record;
  }

  /**
   * Makes one change after the other; what it makes of the records is durable before it counts.
   * @throws VaultError INTEGRITY for a damaged document, UNAVAILABLE, BAD_REQUEST for too many tokens
   */
  change<T>(make: Change<T>): Promise<T> {
    return this.#vault.hold(() => this.#inTurn(() => this.#changeNow(make)));
  }

  /**
   * Reads the document if another server has changed it. Undefined: no other server can.
   * @throws VaultError UNAVAILABLE, INTEGRITY, VAULT_LOCKED when another server has replaced the vault
   */
  refresh(): Promise<void> | undefined {
    return this.#vault.isShared ? this.#readChanges() : undefined;
  }

  /** Ends these texts in memory, at once. */
  end(texts: readonly EndedToken[]): void {
    this.#adopt({ ...this.#state, ended: [...this.#state.ended, ...texts] });
  }

  /**
   * Checks the records that were read from the document, once the key worker holds the key. Undefined: there are none.
   * @throws VaultError VAULT_LOCKED, also when nothing was left to check
   */
  verify(): Promise<void> | undefined {
    if (this.#state.tokens.length + this.#state.refused.length === 0) return undefined;
    const verify = async () => this.#adopt(await this.#withoutForged(this.#state));
    return this.#vault.hold(() => this.#inTurn(verify));
  }

  /** Makes the MACs anew, durably: the master key is being rotated. @throws VaultError VAULT_LOCKED, UNAVAILABLE */
  async resign(): Promise<void> {
    if (this.#state.tokens.length === 0) return;
    await this.change(async (state) => {
      const genuine = state.tokens.filter((record) => this.#genuine.has(record));
      const macs = await this.#vault.signRecords(genuine.map(signedText));
      const tokens = genuine.map((record, i) => ({ ...record, mac: macs[i] ?? "" }));
      for (const record of tokens) this.#genuine.add(record);
      return { state: { ...state, tokens }, result: null };
    });
  }

  /** Forgets the records: another vault has taken the place of theirs. */
  clear(): void {
    this.#state = { ...nothing, ended: this.#state.ended };
    this.#tag = null;
    this.#stale = false;
    if (this.#state.ended.length > 0) this.writeSoon();
  }

  writeSoon(): void {
    this.#cancelWrite ??= this.#clock.after(writeDelayMs, () => void this.#write());
  }

  /** Writes what is left to write. */
  async close(): Promise<void> {
    if (this.#cancelWrite !== null) await this.#write();
    this.#cancelWrite?.();
  }

  isForgotten(end: number | null): boolean {
    return end !== null && this.#clock.now() >= end + rememberedMs;
  }

  async #readIfChanged(): Promise<void> {
    if (!this.#stale && (await this.#vault.documentTag(documentName)) === this.#tag) return;
    this.#adopt(await this.#checkedIfUnlocked(await this.#read()));
  }

  async #changeNow<T>(make: Change<T>): Promise<T> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      if (this.#stale) this.#adopt(await this.#checkedIfUnlocked(await this.#read()));
      const { state, result } = await make(this.state);
      if (await this.#store(this.#merged(state))) return result;
    }
    throw new VaultError("UNAVAILABLE", "another program keeps changing the tokens: try again");
  }

  /** Returns false when another program has changed the document. */
  async #store(state: TokenDocument): Promise<boolean> {
    const bytes = writeDocument({ ...state, lastUsed: this.#lastUsed });
    if (bytes.length > maxBytes) throw new VaultError("BAD_REQUEST", "there are too many tokens: revoke some");
    this.#stale = true;
    this.#tag = await this.#vault.writeDocument(documentName, bytes, this.#tag);
    this.#stale = this.#tag === null;
    if (!this.#stale) this.#adopt(state);
    return !this.#stale;
  }

  async #read(): Promise<TokenDocument> {
    const stored = await this.#vault.readDocument(documentName);
    const document = stored === null ? nothing : readDocument(stored.bytes);
    if (document === null) throw new VaultError("INTEGRITY", damaged);
    this.#tag = stored?.tag ?? null;
    this.#stale = false;
    for (const [name, at] of document.lastUsed) this.#lastUsed.set(name, Math.max(at, this.lastUsedAt(name) ?? 0));
    return document;
  }

  #adopt(next: TokenDocument): void {
    this.#state = this.#merged(next);
    const live = this.#state.tokens.flatMap(entriesOf);
    this.#credentials.setClients([...live, ...this.#state.ended.map(entryOfEnded)]);
  }

  #merged(next: TokenDocument): TokenDocument {
    const known = new Map([...next.ended, ...this.#state.ended].map((one) => [one.digest, one]));
    const ended = [...known.values()].filter(({ at }) => !this.isForgotten(at)).slice(-maxEnded);
    const tokens = next.tokens.filter(({ digest, expiresAt }) => !known.has(digest) && !this.isForgotten(expiresAt));
    return { ...next, tokens, ended };
  }

  async #checkedIfUnlocked(state: TokenDocument): Promise<TokenDocument> {
    try {
      return await this.#withoutForged(state);
    } catch (error) {
      if (error instanceof VaultError && error.code === "VAULT_LOCKED") return state; // the next unlock checks them
      throw error;
    }
  }

  async #withoutForged(state: TokenDocument): Promise<TokenDocument> {
    const unknown = state.tokens.filter((record) => !this.#genuine.has(record));
    const macs = unknown.map(({ mac }) => mac);
    const valid = await this.#vault.verifyRecords(unknown.map(signedText), macs);
    const forged = unknown.filter((_, i) => !valid[i]);
    for (const record of unknown) if (!forged.includes(record)) this.#genuine.add(record);
    const refused = [...state.refused, ...forged.map((one) => ({ ...one, lastUsedAt: this.lastUsedAt(one.name) }))];
    if (refused.length > 0) this.#log.warn({ event: "tokens-refused", count: refused.length, hint: refusedHint });
    return { ...state, refused, tokens: state.tokens.filter((record) => !forged.includes(record)) };
  }

  /** A disk that refuses is asked again a minute later. */
  async #write(): Promise<void> {
    this.#cancelWrite?.();
    this.#cancelWrite = null;
    try {
      await this.change(async (state) => ({ state, result: null }));
    } catch (error) {
      this.#log.warn({ event: "tokens-not-written", error, hint: "the server tries again in a minute" });
      this.writeSoon();
    }
  }
}

const damaged = "the document of the client tokens is damaged: strongroom doctor shows where it is; move it away";
const refusedHint = "added or changed outside of the server, they open nothing: strongroom doctor --open names them";

function entriesOf(token: TokenRecord): ClientEntry[] {
  const owner = { token, ranges: rangesOf(token.paths) };
  const former = token.former.map((one) => ({ ...one, owner, ending: "rotated" as const }));
  return [...former, { digest: token.digest, owner, until: token.expiresAt, ending: "expired" }];
}

function entryOfEnded({ digest, at, reason }: EndedToken): ClientEntry {
  return { digest, owner: null, until: at, ending: reason };
}
